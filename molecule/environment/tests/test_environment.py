import json

ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"


def test_current_leads_to_the_environment(host):
    assert host.check_output("readlink -f /opt/deeplearning/current") == ENVIRONMENT


def test_it_is_sealed(host):
    seal = json.loads(host.file(f"{ENVIRONMENT}/.deeplearning/sealed.json").content_string)
    assert (seal["stack"], seal["digest"]) == ("scenario", "0123456789ab")
    assert seal["files"] > 100
    assert len(seal["tree_sha256"]) == 64


def test_every_user_can_use_it_and_none_can_change_it(host):
    assert host.run("runuser -u nobody -- /opt/deeplearning/current/bin/python -c 'import pip'").rc == 0
    assert host.run("runuser -u nobody -- touch /opt/deeplearning/current/bin/planted").rc != 0
