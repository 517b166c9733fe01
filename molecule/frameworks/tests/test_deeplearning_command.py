"""What people who train do with the environments of a host, as one of them: nobody."""

import json
import shlex

import pytest

NAME = "scenario-0123456789ab"
USER = "runuser -u nobody -- env HOME=/tmp"
EVENTS = """
import tensorflow as tf
writer = tf.summary.FileWriter("/tmp/events/run1")
writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)]), 1)
writer.close()
"""
ASK = "import urllib; print(urllib.urlopen('http://127.0.0.1:6010/data/plugin/scalars/tags').read())"
PAGE = f"""
deeplearning tensorboard --port 6010 /tmp/events 2> /tmp/tensorboard.log & program=$!
for _ in $(seq 90); do
    answer=$(/usr/bin/python2.7 -c "{ASK}" 2> /dev/null) && [ "$answer" != "{{}}" ] && break
    sleep 1
done
echo "$answer"
kill -TERM $program; wait $program; echo "status $?"
"""


def is_el7(host) -> bool:
    return 'VERSION_ID="7' in host.file("/etc/os-release").content_string


def test_the_environment_is_listed_as_the_default(host):
    lines = host.check_output(f"{USER} deeplearning list").splitlines()
    assert lines[0].split()[0] == "STACK"
    python = "2.7" if is_el7(host) else "3.11"
    assert lines[1].split()[:2] == ["*", "scenario"]
    assert python in lines[1].split()
    assert lines[1].split()[-1] == NAME


def test_own_packages_are_on_top_of_the_environment(host):
    host.check_output(f"rm -rf /tmp/own && {USER} deeplearning venv /tmp/own")
    listed = json.loads(host.check_output(f"{USER} /tmp/own/bin/pip list --format=json"))
    assert "keras" in {entry["name"].lower() for entry in listed}
    assert (
        host.check_output(f"{USER} deeplearning python --venv /tmp/own -c 'import sys; print(sys.prefix)'")
        == "/tmp/own"
    )
    completed = host.run(f"{USER} /tmp/own/bin/pip install --no-index keras==1.0")
    assert completed.rc == 1
    assert "keras==1.0" in completed.stderr


def test_own_packages_come_from_the_index_of_the_site(host):
    """It is the scenario's mirror: the nodes reach no PyPI that has this address."""
    assert host.file("/etc/pip.conf").linked_to == "/opt/deeplearning/etc/pip.conf"
    host.check_output(f"rm -rf /tmp/own && {USER} deeplearning venv /tmp/own")
    answer = host.check_output(f"{USER} /tmp/own/bin/pip download --no-cache-dir --no-deps --dest /tmp/fetched wheel")
    assert "Looking in indexes: http://127.0.0.1:8000/simple" in answer


def test_tensorboard_shows_events_of_the_same_tensorflow_and_ends_with_the_command(host):
    if not is_el7(host):
        pytest.skip("only the node with RHEL 7 has TensorFlow here; make e2e shows events of TensorFlow 2")
    host.check_output(f"rm -rf /tmp/events && {USER} deeplearning python --gpus none -c {shlex.quote(EVENTS)}")
    answer, status = host.check_output(f"{USER} sh -c {shlex.quote(PAGE)}").splitlines()
    assert list(json.loads(answer)["run1"]) == ["loss"]
    assert status == "status 0"
    assert host.run("pgrep -f 'tensorboar[d].*6010'").rc == 1
    assert "ssh -N -L 6010:127.0.0.1:6010 nobody@" in host.file("/tmp/tensorboard.log").content_string
