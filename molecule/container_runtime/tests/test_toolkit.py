import json

testinfra_hosts = ["ansible://container_runtime-el9"]


def test_docker_knows_the_runtime_of_the_toolkit(host):
    assert "nvidia" in json.loads(host.check_output("docker info --format '{{json .Runtimes}}'"))


def test_the_sites_own_keys_of_daemon_json_are_as_they_were(host):
    settings = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert settings.pop("runtimes") == {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}
    assert settings == {"bridge": "none", "iptables": False, "storage-driver": "vfs", "log-opts": {"max-size": "10m"}}
    assert host.file("/etc/docker/daemon.json").mode == 0o640


def test_docker_was_not_restarted_for_it(host):
    assert host.check_output("systemctl show --property NRestarts --value docker") == "0"
    assert "Reloaded" in host.check_output("journalctl --unit docker --no-pager")
