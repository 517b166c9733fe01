"""The events that the training job of make demo wrote on YARN: in a browser on the controller by the ssh line that users get, and as a service."""

import re
import socket
import subprocess

import browser
import pytest
import tensorboard_page

from hadoop_dl_dev.demo import kerberos, services
from hadoop_dl_dev.demo.cluster import ssh

EVENTS = "hdfs:///user/analyst/model-spark"
# TensorBoard ends with its input, so it cannot outlive this test.
START = "deeplearning tensorboard --port {port} {events} & cat > /dev/null; kill $!; wait $!"


@pytest.fixture
def page(cluster, tmp_path):
    """The page's address on the controller."""
    browser.program()
    if cluster.kerberos:
        kerberos.log_in(cluster)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    edge = ["docker", "exec", "--interactive", cluster.container("edge1"), "su", "-", "analyst", "-c"]
    log = tmp_path / "log"

    def announced():
        return re.search(r"  ssh (-N -L \S+) analyst@", log.read_text())

    with log.open("wb") as stream:
        command = [*edge, START.format(port=port, events=EVENTS)]
        board = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream, stderr=subprocess.STDOUT)
        try:
            services.until("the ssh line", lambda: None if announced() else log.read_text(), seconds=30)
            program, *options = ssh(cluster, "edge1")
            forwarding = subprocess.Popen([program, *announced()[1].split(), *options], stdout=stream, stderr=stream)
            try:
                tensorboard_page.wait(f"http://127.0.0.1:{port}")
                yield f"http://127.0.0.1:{port}"
            finally:
                forwarding.terminate()
                forwarding.wait(timeout=10)
        finally:
            board.stdin.close()
            board.wait(timeout=30)
            print(log.read_text())  # pytest shows it after a failure


def test_a_browser_shows_the_curves_and_the_graph_of_the_job(cluster, page, tmp_path):
    content = tensorboard_page.seen(page, tmp_path / "profile")
    assert tensorboard_page.problems(content, cluster.stack) == [], content


def test_the_sites_service_shows_the_same_job(shell):
    """With Kerberos it logged in by itself: its ticket is its own."""
    assert shell("edge1", "curl -s http://127.0.0.1:6100/data/runs") == (0, '["events"]')
