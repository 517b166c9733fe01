import json

ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"


def test_the_locked_keras_is_installed(host):
    listed = host.check_output(f"{ENVIRONMENT}/bin/python -m pip list --format=freeze").lower().splitlines()
    wanted = "keras==2.3.1" if 'VERSION_ID="7' in host.file("/etc/os-release").content_string else "keras==2.15.0"
    assert wanted in listed


def test_the_component_is_marked_as_whole(host):
    marker = json.loads(host.file(f"{ENVIRONMENT}/.deeplearning/keras.json").content_string)
    assert marker["component"] == "keras"
