import json

import pytest


@pytest.fixture
def driver(host):
    return host.ansible.get_variables()["driver"]


def kernels(host):
    return host.check_output("cd /boot && ls -d vmlinuz-* | sed s/vmlinuz-//").split()


def test_every_kernel_that_may_run_has_the_module(host, driver):
    for kernel in kernels(host):
        words = host.check_output(
            f"modinfo -k {kernel} -F version nvidia; modinfo -k {kernel} -F vermagic nvidia"
        ).split()
        assert words[:2] == [driver, kernel]


def test_no_initramfs_holds_nouveau(host):
    for kernel in kernels(host):
        assert "nouveau.ko" not in host.check_output(f"lsinitrd /boot/initramfs-{kernel}.img")


@pytest.mark.parametrize("argument", ["modprobe.blacklist=nouveau", "rd.driver.blacklist=nouveau"])
def test_every_boot_entry_has_the_argument(host, argument):
    info = host.check_output("grubby --info=ALL")
    assert info.count(argument) == len(kernels(host))


def test_an_update_does_not_bring_another_driver_and_keeps_kernels_and_headers(host, driver):
    before = host.check_output("rpm -qa 'kernel*' | sort")
    assert "kernel-devel" in before
    # best: as RHEL 8 and 9 have it. The limit lets an update that adds headers remove those of the oldest kernel, which runs.
    host.check_output(
        "dnf -y --best --setopt=installonly_limit=2 --repofrompath=gpu,file:///srv/gpu-packages --nogpgcheck update"
    )
    installed = host.check_output("rpm -qa --qf '%{NAME} %{VERSION}\\n' '*nvidia*'").splitlines()
    versions = {name: version for name, version in map(str.split, installed) if not name.endswith("-plugin-nvidia")}
    assert set(versions.values()) == {driver}, versions
    assert host.check_output("rpm -qa 'kernel*' | sort") == before


def test_the_lock_is_what_holds_it(host):
    offered = host.check_output(
        "dnf --disableplugin=versionlock --repofrompath=gpu,file:///srv/gpu-packages --repo=gpu -q list --upgrades"
    )
    assert "kmod-nvidia-latest-dkms" in offered


def test_the_lock_is_what_holds_the_headers(host):
    simulated = host.run(
        "dnf --disableplugin=versionlock --repofrompath=gpu,file:///srv/gpu-packages --repo=gpu --assumeno update kernel-devel"
    )
    assert "Installing:" in simulated.stdout
    assert "kernel-devel" in simulated.stdout


def test_locks_of_the_site_are_there(host):
    assert "stand-in-base-0:1-1" in host.file("/etc/dnf/plugins/versionlock.list").content_string


def test_gpu_check_passes_where_no_gpu_is_promised(host):
    completed = host.run("/opt/deeplearning/bin/gpu-check --json")
    outcomes = {answer["name"]: answer["outcome"] for answer in json.loads(completed.stdout)}
    assert completed.rc == 0
    assert (
        outcomes["versions_agree"]
        == outcomes["module_for_boot_kernel"]
        == outcomes["linker_finds_the_driver"]
        == "PASS"
    )


def test_persistence_starts_at_boot(host):
    assert host.service("nvidia-persistenced").is_enabled


def test_the_linker_finds_nvml(host, driver):
    assert host.check_output("readlink -f $(ldconfig -p | awk '$1 == \"libnvidia-ml.so.1\" {print $NF}')").endswith(
        driver
    )


def test_dcgm_is_of_its_version_locked_and_starts_at_boot(host):
    variables = host.ansible.get_variables()
    version, names = variables["nvidia_driver_dcgm_version"], ["datacenter-gpu-manager"]
    if variables["gpu_system"] == "el9":
        names = ["datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda12"]
    assert sorted(host.check_output("rpm -qa 'datacenter-gpu-manager*'").splitlines()) == [
        f"{name}-{version}-1.x86_64" for name in names
    ]
    locked = host.file("/etc/dnf/plugins/versionlock.list").content_string
    assert all(f"{name}-1:{version}-1.*" in locked for name in names)
    assert host.service("nvidia-dcgm").is_enabled
