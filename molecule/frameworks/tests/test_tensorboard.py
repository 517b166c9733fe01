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


def test_a_program_that_has_the_port_is_not_taken_for_the_service(host):
    """It answers on the port from the first moment; systemd must say that the service did not start."""
    host.check_output("systemctl stop deeplearning-tensorboard-scenario")
    host.check_output("systemd-run --unit other-program python3 -m http.server --bind 127.0.0.1 6100")
    try:
        host.check_output("for _ in $(seq 50); do curl -s http://127.0.0.1:6100 && break; sleep 0.2; done")
        assert host.run("systemctl start deeplearning-tensorboard-scenario").rc != 0
        log = host.check_output("journalctl -u deeplearning-tensorboard-scenario -n 20 -o cat --no-pager")
        assert "a free port is required" in log
    finally:
        host.check_output("systemctl stop other-program; systemctl reset-failed deeplearning-tensorboard-scenario")
    host.check_output("systemctl start deeplearning-tensorboard-scenario")
