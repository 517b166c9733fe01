import json

testinfra_hosts = ["ansible://container_runtime-el7"]
DRIVERS = "/var/lib/nvidia-docker/volumes/nvidia_driver"


def test_a_volume_of_docker_is_the_directory_of_the_driver(host):
    volumes = json.loads(host.check_output("docker volume inspect nvidia_driver_418.67"))
    assert (volumes[0]["Driver"], volumes[0]["Mountpoint"]) == ("nvidia-docker", f"{DRIVERS}/418.67")


def test_the_directory_has_hard_links_to_the_drivers_libraries(host):
    inodes = host.check_output(f"stat -c %i {DRIVERS}/418.67/lib64/libcuda.so.418.67 /usr/lib64/libcuda.so.418.67")
    assert len(set(inodes.split())) == 1


def test_the_plugin_starts_with_the_host(host):
    assert host.service("nvidia-docker").is_enabled
    assert host.service("nvidia-docker").is_running


def test_nvidia_docker_leaves_daemon_json_alone(host):
    assert "runtimes" not in host.file("/etc/docker/daemon.json").content_string
