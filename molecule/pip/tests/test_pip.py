import json

ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"
PYTHON = f"{ENVIRONMENT}/bin/python"


def is_el7(host) -> bool:
    return 'VERSION_ID="7' in host.file("/etc/os-release").content_string


def test_the_environment_has_the_python_of_its_stack(host):
    version = host.check_output(f"{PYTHON} -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")
    assert version == ("2.7" if is_el7(host) else "3.11")


def test_pip_on_python_2_7_is_the_last_one_for_it(host):
    version = host.check_output(f"{PYTHON} -m pip --version").split()[1]
    assert (version == "20.3.4") == is_el7(host)


def test_the_component_is_marked_as_whole(host):
    marker = json.loads(host.file(f"{ENVIRONMENT}/.deeplearning/pip.json").content_string)
    assert marker["component"] == "pip"
    assert len(marker["lock_sha256"]) == 64


def test_nothing_is_active_before_it_is_proved(host):
    assert not host.file("/opt/deeplearning/current").exists


def test_only_root_can_write_to_the_environment(host):
    found = host.check_output(f"find {ENVIRONMENT}/ '(' -not -user root -o -perm /022 ')' -not -type l")
    assert found == ""
