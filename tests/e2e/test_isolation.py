"""Data nodes have no internet: all that they run came from the mirror."""

import socket

import pytest
from waiting import until

from hadoop_dl_dev.demo.shell import output

HOSTS = ["master1", "data1", "data2", "edge1"]
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


@pytest.fixture(scope="module")
def outside(cluster):
    """A server on the network through which this machine's containers reach the world: its address and port."""
    image = output("docker", "inspect", "--format", "{{.Config.Image}}", cluster.container("mirror1"))
    serve = ("--entrypoint", "python3", image, "-m", "http.server", "8000")
    server = output("docker", "run", "--detach", "--rm", *serve)
    try:
        template = "{{.NetworkSettings.Networks.bridge.IPAddress}}"
        address = output("docker", "inspect", "--format", template, server), 8000
        until(lambda: socket.socket().connect_ex(address) == 0, 30, f"the server at {address} must answer within 30 s")
        yield address
    finally:
        output("docker", "rm", "--force", server)


def connects(shell, host: str, address: str, port: int) -> bool:
    code, text = shell(host, f"python3 -c '{CONNECT}' {address} {port}")
    assert code in (0, 1), text
    return code == 0


def test_the_mirror_host_has_a_way_out(shell, outside):
    assert connects(shell, "mirror1", *outside)


@pytest.mark.parametrize("host", HOSTS)
def test_there_is_no_way_out(shell, outside, host):
    assert not connects(shell, host, *outside)
