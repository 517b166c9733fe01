"""TensorBoard as a service of the host: what the role left there, and what the page answers."""

import json
import shlex

testinfra_hosts = ["ansible://frameworks-el7"]
EVENTS = """
import tensorflow as tf
writer = tf.summary.FileWriter("/srv/events/run1")
writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)]), 1)
writer.close()
"""
ASK = """for _ in $(seq 30); do
    answer=$(curl -s http://127.0.0.1:6100/data/plugin/scalars/tags) && [ "$answer" != "{}" ] && break
    sleep 1
done
echo "$answer" """


def test_the_service_shows_what_its_user_writes(host):
    host.check_output(f"runuser -u nobody -- env HOME=/tmp deeplearning python --gpus none -c {shlex.quote(EVENTS)}")
    assert list(json.loads(host.check_output(ASK))["run1"]) == ["loss"]


def test_it_runs_as_its_user_and_starts_at_boot(host):
    service = host.service("deeplearning-tensorboard-scenario")
    assert (service.is_running, service.is_enabled) == (True, True)
    process = host.check_output("systemctl show -p MainPID deeplearning-tensorboard-scenario").partition("=")[2]
    assert host.process.get(pid=int(process)).user == "nobody"


def test_it_listens_on_this_host_alone(host):
    assert host.check_output("ss -Hltn 'sport = :6100'").split()[3] == "127.0.0.1:6100"


def test_a_service_that_is_not_requested_any_more_is_gone(host):
    assert not host.file("/etc/systemd/system/deeplearning-tensorboard-gone.service").exists
    assert not host.service("deeplearning-tensorboard-gone").is_running
