import json

ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"


def test_current_points_to_the_environment(host):
    assert host.check_output("readlink /opt/deeplearning/current") == "envs/scenario-0123456789ab"


def test_the_environment_is_its_first_tree(host):
    assert host.check_output("readlink -f /opt/deeplearning/current") == f"{ENVIRONMENT}.1"


def test_its_python_knows_it_by_the_name_that_all_hosts_have(host):
    assert host.check_output(f"{ENVIRONMENT}/bin/python -c 'import sys; print(sys.prefix)'") == ENVIRONMENT


def test_pip_of_the_environment_starts(host):
    assert "scenario-0123456789ab" in host.check_output(f"{ENVIRONMENT}/bin/pip --version")


def test_it_is_sealed(host):
    seal = json.loads(host.file(f"{ENVIRONMENT}/.deeplearning/sealed.json").content_string)
    assert (seal["stack"], seal["digest"]) == ("scenario", "0123456789ab")
    assert seal["files"] > 100
    assert len(seal["tree_sha256"]) == 64


def test_every_user_can_use_it_and_none_can_change_it(host):
    assert host.run("runuser -u nobody -- /opt/deeplearning/current/bin/python -c 'import pip'").rc == 0
    assert host.run("runuser -u nobody -- touch /opt/deeplearning/current/bin/planted").rc != 0
