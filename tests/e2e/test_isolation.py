"""Data nodes have no internet: what they run came from the mirror."""

import pytest

HOSTS = ["master1", "data1", "data2", "edge1"]
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


def connects(shell, host: str, address: str, port: int) -> bool:
    code, said = shell(host, f"python3 -c '{CONNECT}' {address} {port}")
    assert code in (0, 1), said
    return code == 0


@pytest.mark.parametrize("host", HOSTS)
def test_there_is_no_way_out(shell, host):
    assert shell(host, "ip route show default") == (0, "")
    assert not connects(shell, host, "pypi.org", 443)
    assert not connects(shell, host, "192.0.2.1", 80)


@pytest.mark.parametrize("host", HOSTS)
def test_the_mirror_can_be_reached(shell, host):
    assert connects(shell, host, "mirror1", 8900)
