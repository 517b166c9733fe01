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


def test_the_locked_keras_and_tensorflowonspark_are_installed(host):
    listed = host.check_output(f"{PYTHON} -m pip list --format=freeze").lower().splitlines()
    assert ("keras==2.3.1" if is_el7(host) else "keras==2.15.0") in listed
    assert ("tensorflowonspark==1.4.4" if is_el7(host) else "tensorflowonspark==2.2.5") in listed


def test_every_user_can_use_it_and_none_can_change_it(host):
    assert host.run("runuser -u nobody -- /opt/deeplearning/current/bin/python -c 'import pip'").rc == 0
    assert host.run("runuser -u nobody -- touch /opt/deeplearning/current/bin/planted").rc != 0
