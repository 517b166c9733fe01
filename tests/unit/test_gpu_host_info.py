"""The reader that decides about drivers, on trees as hosts have them, and the rule about initramfs images."""

import os
from pathlib import Path

import gpu_host_info
import initramfs
import pytest
from ansible.module_utils.hadoop_dl_host import host_reader, processes
from gpu_check.host import Host
from python_files import write_script
from trees import TREES, build, write

from hadoop_dl.data import gpu_host, typed

OLD, NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.18.1.el9_4.x86_64"
PACKAGES = f"kernel {OLD[:-7]}\nkernel {NEW[:-7]}\nnvidia-kmod-common 3:535.104.05-1.el9\nbash 5.1-1\n"


def tree(root, files):
    write(root, files)
    return gpu_host_info.Host(str(root), answers())


def answers(**more):
    outputs = {
        "uname": OLD + "\n",
        "rpm": PACKAGES,
        "/usr/sbin/grubby --default-kernel": f"/boot/vmlinuz-{NEW}\n",
        "grubby --info=ALL": f'kernel="/boot/vmlinuz-{OLD}"\nargs="ro quiet"\nkernel="/boot/vmlinuz-{NEW}"\nargs="ro modprobe.blacklist=nouveau"\n',
        "modinfo": f"version:  535.104.05\nlicense: NVIDIA\nvermagic: {OLD} SMP mod_unload\n",
        **more,
    }
    return lambda argv: outputs.get(" ".join(argv[:2]), outputs.get(argv[0]))


@pytest.fixture
def rhel(tmp_path):
    return tree(
        tmp_path,
        {
            "/etc/redhat-release": "Red Hat Enterprise Linux release 9.4 (Plow)",
            "/etc/os-release": 'ID="rhel"\nVERSION_ID="9.4"\n',
            "/usr/bin/dnf": "",
            "/usr/sbin/grubby": "",
            "/etc/dnf/plugins/versionlock.conf": "[main]\nenabled = 1\n",
            f"/boot/vmlinuz-{OLD}": "",
            f"/boot/vmlinuz-{NEW}": "",
            f"/usr/src/kernels/{OLD}/Makefile": "",
            f"/lib/modules/{OLD}/extra/nvidia.ko": "",
        },
    )


def test_both_the_running_kernel_and_the_one_of_the_next_boot_are_needed(rhel):
    facts = rhel.read()
    kernels, modules = facts["kernels"], facts["modules"]
    assert kernels["needed"] == [OLD, NEW]
    assert kernels["headers"][OLD].endswith(OLD)
    assert modules[OLD]["version"] == "535.104.05"
    assert (kernels["headers"][NEW], modules[NEW]) == (None, None), "it has neither"


GRUBENV = {"/boot/grub2/grubenv": f"# GRUB Environment Block\nsaved_entry=0123456789abcdef-{OLD}\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [({}, NEW), (GRUBENV, OLD), ({**GRUBENV, "/usr/sbin/grubby": ""}, NEW)],  # grubby also reads grub's configuration
    ids=["the newest", "what grub saved", "grubby's answer"],
)
def test_plan_role_and_gpu_check_agree_on_the_kernel_of_the_next_boot(tmp_path, files, expected):
    role = tree(tmp_path, {f"/boot/vmlinuz-{OLD}": "", f"/boot/vmlinuz-{NEW}": "", **files})
    reader = host_reader.Reader(str(tmp_path))
    reader.output = lambda argv, accepted=(0,): role.run(argv)
    check = Host(str(tmp_path), lambda argv, seconds=None: (0, role.run(argv)))
    kernels = {reader.read()["kernel"]["default_boot"], role.kernels()["default_boot"], check.default_kernel()}
    assert kernels == {expected}


@pytest.mark.parametrize(
    "place",
    [
        "extra/nvidia.ko.xz",  # dkms on RHEL
        "extra/drivers/video/nvidia/nvidia.ko",  # NVIDIA's precompiled packages
        "kernel/drivers/video/nvidia.ko",  # the .run file
        "updates/dkms/nvidia.ko.zst",  # Ubuntu
        "updates/dkms/nvidia-current.ko",  # Debian
        "updates/dkms/nvidia-current-open.ko",
    ],
)
def test_the_module_is_found_wherever_a_package_puts_it(tmp_path, place):
    host = tree(tmp_path, {f"/lib/modules/{OLD}/{place}": "", f"/lib/modules/{NEW}/extra/nvidia-uvm.ko": ""})
    modules = host.modules([OLD, NEW])
    assert modules[OLD]["path"].endswith(place)
    assert modules[NEW] is None
    check = Host(str(tmp_path), lambda argv, seconds=None: (0, f"version: 535.104.05\nvermagic: {OLD} SMP\n"))
    assert check.module_of(OLD) == ("535.104.05", OLD)


def test_of_two_modules_the_one_that_depmod_searches_first_counts(tmp_path):
    places = ("extra/nvidia.ko", "updates/dkms/nvidia.ko", "kernel/drivers/video/nvidia.ko", "weak-updates/x/nvidia.ko")
    host = tree(tmp_path, {f"/lib/modules/{OLD}/{place}": "" for place in places})
    assert host.modules([OLD])[OLD]["path"].endswith(places[1])
    module_paths = []
    Host(str(tmp_path), lambda argv, seconds=None: module_paths.append(argv[-1]) or (0, "")).module_of(OLD)
    assert module_paths[0].endswith(places[1])


OF_THE_DRIVER = (
    *("kmod-nvidia-latest-dkms", "akmod-nvidia", "dkms-nvidia", "libnvidia-ml", "nvidia-x11-drv"),
    *("nvidia-open", "nvidia-open-580", "libnvidia-nscq", "libnvidia-nscq-535", "nvidia-imex-570", "libnvsdm"),
)
OTHERS = ("nvidia-container-toolkit", "kernel-modules", "nvidia-settings", "nvidia-driver-assistant")


@pytest.mark.parametrize("package", [*OF_THE_DRIVER, *OTHERS])
def test_packages_of_the_driver_are_known_whoever_made_them(package):
    assert bool(gpu_host_info.DRIVER_PACKAGES.match(package)) is (package in OF_THE_DRIVER)


def test_arguments_are_told_for_every_boot_entry(rhel):
    assert rhel.boot_arguments() == {OLD: ["ro", "quiet"], NEW: ["ro", "modprobe.blacklist=nouveau"]}


@pytest.mark.parametrize("recorded", [True, False])
def test_dcgm_is_locked_with_the_driver_only_where_this_project_installed_it(tmp_path, recorded):
    record = {"/opt/deeplearning/etc/nvidia-driver-dcgm-before.json": "[]\n"} if recorded else {}
    host = tree(tmp_path, {"/usr/bin/dnf": "", "/etc/redhat-release": "", **record})
    host.run = lambda argv: "datacenter-gpu-manager-4-core 1:4.5.2-1\n" if argv[0] == "rpm" else None
    facts = host.read()
    assert facts["dcgm_packages"] == {"datacenter-gpu-manager-4-core": ["1:4.5.2-1"]}
    assert (facts["locks"]["lines"] == ["datacenter-gpu-manager-4-core-1:4.5.2-1.*"]) is recorded


def test_lock_lines_for_dnf_carry_epochs(rhel):
    locks = rhel.read()["locks"]
    assert locks["plugin"] is True
    assert "nvidia-kmod-common-3:535.104.05-1.el9.*" in locks["lines"]
    assert f"kernel-0:{OLD[:-7]}.*" in locks["lines"]


DEVEL = f"kernel-devel {OLD[:-7]}\nkernel-devel-matched {OLD[:-7]}\nkernel-headers {NEW[:-7]}\n"


@pytest.mark.parametrize(
    ("packages", "locked", "free"),
    [
        (PACKAGES + DEVEL, [f"kernel-devel-0:{OLD[:-7]}.*", f"kernel-devel-matched-0:{OLD[:-7]}.*"], "kernel-headers-"),
        # The headers of an installed kernel may still come.
        (PACKAGES + DEVEL, [f"kernel-devel-0:{NEW[:-7]}.*"], f"kernel-devel-matched-0:{NEW[:-7]}"),
        (PACKAGES, [f"kernel-devel-0:{OLD[:-7]}.*", f"kernel-devel-0:{NEW[:-7]}.*"], "kernel-devel-matched"),
        # Those of a kernel that is not installed any more stay.
        (PACKAGES + "kernel-devel 5.14.0-70.13.1.el9_0\n", ["kernel-devel-0:5.14.0-70.13.1.el9_0.*"], "matched"),
        ("bash 5.1-1\n", [], "kernel-devel"),
    ],
)
def test_headers_are_locked_to_installed_kernels(rhel, packages, locked, free):
    rhel.run = answers(rpm=packages)
    lines = rhel.read()["locks"]["lines"]
    assert [line for line in locked if line not in lines] == []
    assert not any(free in line for line in lines)


def test_headers_are_no_part_of_the_kernel_that_must_not_move(rhel):
    rhel.run = answers(rpm=PACKAGES + DEVEL)
    facts = rhel.read()
    assert list(facts["kernel_packages"]) == ["kernel"]
    assert sorted(facts["header_packages"]) == ["kernel-devel", "kernel-devel-matched"]


@pytest.mark.parametrize(
    ("text", "ours"), [("bash-0:5.1-1.*\n", False), ("# BEGIN deeplearning nvidia_driver\n", True)]
)
def test_locks_of_the_site_are_told_from_ours(rhel, tmp_path, text, ours):
    (tmp_path / "etc/dnf/plugins/versionlock.list").write_text(text)
    assert rhel.read()["locks"]["ours"] is ours


def test_lock_lines_for_yum_have_their_own_order(tmp_path):
    plugin = {"/etc/yum/pluginconf.d/versionlock.conf": "[main]\nenabled = 1\n"}
    locks = tree(tmp_path, {"/etc/redhat-release": "", **plugin}).locks({"nvidia-kmod-common": ["3:535.104.05-1.el9"]})
    assert "3:nvidia-kmod-common-535.104.05-1.el9.*" in locks["lines"]


def test_a_disabled_lock_plugin_locks_nothing(tmp_path):
    plugin = {"/usr/bin/dnf": "", "/etc/dnf/plugins/versionlock.conf": "[main]\nenabled=0\n"}
    assert tree(tmp_path, {"/etc/redhat-release": "", **plugin}).locks({})["plugin"] is False


def test_a_runfile_counts_before_packages(tmp_path):
    names = ("/usr/bin/nvidia-uninstall", "/var/lib/nvidia/log", "/usr/lib64/libcuda.so.470.82.01")
    host = tree(tmp_path, dict.fromkeys(names, ""))
    assert host.source({}) == ("runfile", "470.82.01")


def test_processes_that_hold_a_gpu_are_named_and_the_daemon_is_not(tmp_path):
    # The device plugin of Kubernetes and of CDSW holds every GPU: github.com/NVIDIA/k8s-device-plugin, cmd/nvidia-device-plugin
    daemons = {"/proc/8/comm": "nvidia-persiste\n", "/proc/10/comm": "nvidia-device-p\n"}
    host = tree(tmp_path, {"/proc/7/comm": "python\n", **daemons, "/proc/9/comm": "bash\n"})
    # A look of YARN is none of its users; somebody's own is, also below a program that only names the class.
    manager = "/usr/bin/java\0-Xmx1000m\0" + gpu_host_info.WATCHERS[0] + "\0"
    timer = "/usr/bin/python3\0-E\0-s\0/opt/deeplearning/bin/gpu-check\0--yarn-health\0"
    looks_of = range(11, 15)
    looks = {f"/proc/{pid}/comm": "nvidia-smi\n" for pid in looks_of}
    parents = {11: (20, manager), 12: (21, "bash\0"), 13: (22, f"grep {gpu_host_info.WATCHERS[0]}\0")}
    parents[14] = (23, timer)
    for pid, (parent, command) in parents.items():
        looks |= {f"/proc/{pid}/status": f"Name:\tnvidia-smi\nPPid:\t{parent}\n", f"/proc/{parent}/cmdline": command}
    tree(tmp_path, looks)
    held = tuple((pid, "/dev/nvidia0") for pid in looks_of)
    for pid, target in (*held, (7, "/dev/nvidia0"), (8, "/dev/nvidia0"), (9, "/dev/null"), (10, "/dev/nvidia0")):
        (tmp_path / f"proc/{pid}/fd").mkdir()
        os.symlink(target, tmp_path / f"proc/{pid}/fd/3")
    users = [(7, "python"), (12, "nvidia-smi"), (13, "nvidia-smi")]
    assert host.users() == [{"pid": pid, "name": name} for pid, name in users]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (None, None)],
    ids=["on", "off", "no EFI"],
)
def test_secure_boot_is_the_fifth_byte(tmp_path, value, wanted):
    if value is not None:
        place = tmp_path / "sys/firmware/efi/efivars/SecureBoot-8be4df61"
        place.parent.mkdir(parents=True)
        place.write_bytes(value)
    assert gpu_host_info.Host(str(tmp_path), answers()).read()["secure_boot"] is wanted


def test_gpus_and_switches_are_told_apart_by_class(tmp_path):
    facts = gpu_host_info.Host(str(build(tmp_path, TREES["a100_nvswitch"])), answers()).read()
    assert (facts["gpus"], facts["nvswitches"]) == (["10de:20b2"] * 8, 6)


@pytest.mark.parametrize(
    ("listing", "holds"),
    [
        ("usr/lib/modules/5/kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz", True),
        ("usr/lib/modules/5/nouveau.ko", True),
        ("usr/lib/modprobe.d/systemd.conf", False),
    ],
)
def test_an_image_that_holds_nouveau_is_found(tmp_path, monkeypatch, listing, holds):
    (tmp_path / "image").write_text(listing)
    module = Kernel(0, "")
    monkeypatch.setattr(processes, "run", module.run)
    assert initramfs.Images(module).holds_module(str(tmp_path / "image")) is holds


class Kernel:
    """Stands for a host: dracut ends with this status, and lsinitrd lists what dracut wrote."""

    def __init__(self, status, written):
        self.params = {"rebuild": False}
        self.status, self.written = status, written

    def run(self, argv, seconds):
        if argv[0] != "dracut":
            return processes.Answer(0, Path(argv[1]).read_text(), "", False, None)
        Path(argv[2]).write_text(self.written)
        problem = f"dracut ended with status {self.status}: No space left on device" if self.status else None
        return processes.Answer(self.status, "", "", False, problem)

    def fail_json(self, msg):
        raise SystemExit(msg)


def rebuild(tmp_path, monkeypatch, status, written):
    monkeypatch.setattr(initramfs, "IMAGE", str(tmp_path / "initramfs-%s.img"))
    (tmp_path / "initramfs-5.img").write_text("old")
    module = Kernel(status, written)
    monkeypatch.setattr(processes, "run", module.run)
    initramfs.Images(module).rebuild("5")


@pytest.mark.parametrize(
    ("status", "written", "words"),
    [
        (
            1,
            "",
            "The initramfs of kernel 5 must be rebuilt, but dracut ended with status 1: No space left on device. "
            "The old image is in place.",
        ),
        (
            0,
            "usr/lib/modules/5/nouveau.ko",
            "after a rebuild it still holds the module nouveau; the old image is in place",
        ),
    ],
)
def test_a_full_boot_or_a_wrong_image_leaves_the_old_one(tmp_path, monkeypatch, status, written, words):
    with pytest.raises(SystemExit) as refusal:
        rebuild(tmp_path, monkeypatch, status, written)
    assert words in str(refusal.value)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"initramfs-5.img": "old"}


def test_a_new_image_is_on_the_disk_before_it_has_the_name(tmp_path, monkeypatch, disk_events):
    rebuild(tmp_path, monkeypatch, 0, "etc/hostname")
    assert (tmp_path / "initramfs-5.img").read_text() == "etc/hostname"
    assert disk_events == [".initramfs-5.img.new", "rename to initramfs-5.img", tmp_path.name]


def test_a_dracut_that_does_not_end_is_ended_and_named(tmp_path, monkeypatch):
    """On a disk that does not answer; without a limit it would hold all hosts of the play."""
    write_script(tmp_path / "dracut", "sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(initramfs, "LIMIT", 0.5)
    with pytest.raises(SystemExit, match=r"kernel 5 must be rebuilt, but .*did not end within 0.5 s"):
        initramfs.Images(Kernel(0, "")).rebuild("5")


def test_a_package_manager_that_does_not_answer_is_no_empty_answer(monkeypatch):
    """rpm behind a stale lock: without its answer no kernel and no driver would seem to be installed."""
    monkeypatch.setattr(gpu_host_info, "COMMAND_TIMEOUT", 0.2)
    with pytest.raises(gpu_host_info.Unusable, match="sleep 60 did not end within 0.2 s. Nothing was changed"):
        gpu_host_info.run_command(["sleep", "60"])
    assert gpu_host_info.run_command(["false"]) is None


def test_services_that_hold_a_gpu_without_work_are_those_that_are_active(tmp_path):
    for listing, services in (
        ("dcgm-exporter.service loaded active\nnvidia-dcgm.service loaded active\n", ["nvidia-dcgm", "dcgm-exporter"]),
        (None, []),
    ):
        answer = {"systemctl list-units": listing}
        host = gpu_host_info.Host(str(tmp_path), run=lambda argv, answer=answer: answer.get(" ".join(argv[:2])))
        assert host.services() == services


def test_modules_that_use_the_drivers_are_those_that_are_loaded(tmp_path):
    modules = "nvidia_peermem 16384 0 - Live 0x0\nib_core 1 1 nvidia_peermem, Live 0x0\nnvidia 56 9 gdrdrv,nvidia_peermem, Live 0x0\ngdrdrv 2 0\n"
    assert tree(tmp_path, {"/proc/modules": modules}).loaded()["dependents"] == ["nvidia_peermem", "gdrdrv"]


def test_records_of_earlier_runs_are_read_and_one_that_is_broken_stops_the_run(rhel, tmp_path):
    etc = tmp_path / "opt/deeplearning/etc"
    etc.mkdir(parents=True)
    (etc / "nvidia-driver-packages-before.json").write_text("[]\n")
    (etc / "nvidia-driver-working-versions.json").write_text('{"driver": "535.104.05", "kernel": "5.14"}')
    records = rhel.read()["records"]
    assert records.pop("packages_before") == []  # a record of nothing is a record
    assert records.pop("working_versions") == {"driver": "535.104.05", "kernel": "5.14"}
    assert set(records.values()) == {None}
    (etc / "nvidia-driver-headers.json").write_text("[")
    with pytest.raises(gpu_host_info.Unusable, match=r"nvidia-driver-headers.json must be JSON, but is not"):
        rhel.read()


@pytest.mark.parametrize(("secure_boot", "asked"), [(True, ["mokutil", "dkms"]), (False, [])])
def test_what_secure_boot_decides_is_asked_with_the_certificate(tmp_path, monkeypatch, secure_boot, asked):
    (tmp_path / "site.der").write_bytes(b"\x30\x82")
    host = gpu_host_info.Host(str(tmp_path), answers(), lambda argv: argv[0])
    monkeypatch.setattr(host.reader, "secure_boot", lambda: secure_boot)
    questions = [command for command in (host.signing("/site.der")[name] for name in ("mokutil", "dkms")) if command]
    assert questions == asked
    assert host.signing("/site.der")["certificate"] == "MII="
    assert host.signing("/missing.der")["certificate"] is None
    assert host.read()["signing"] is None


def test_what_a_program_prints_is_read_whatever_its_status():
    assert gpu_host_info.printed(["sh", "-c", "echo is already; echo enrolled >&2; exit 1"]) == "is already enrolled"
    assert gpu_host_info.printed(["true"]) == "true printed nothing"
    assert gpu_host_info.printed(["/nowhere/mokutil"]) == "/nowhere/mokutil cannot be run: No such file or directory"


def test_every_key_of_the_answer_has_a_form(rhel):
    answer = rhel.read(initramfs=True)
    assert set(answer) == set(typed.fields(gpu_host.GpuHost))
    assert typed.as_json(gpu_host.read(answer)) == answer
