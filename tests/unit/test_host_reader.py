"""The reader on recorded trees, and the receipts it checks."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import host_reader, host_system
from interpreters import HOST_PYTHONS
from trees import PROPRIETARY, TREES, build, write

from hadoop_dl.data.compat import load
from hadoop_dl.hosts import host_script, verify

SCRIPT = host_script.reader().encode()
PROBE = verify.probe_script({"environment": "/nowhere", "gpu_count": 0}).encode()


def test_a_copy_beside_the_drivers_library_is_not_its_version(tmp_path):
    libraries = ("libcuda.so.1", "libcuda.so.418.67.bak", "libcuda.so.470.82.01")
    write(tmp_path, {f"/usr/lib64/{name}": "" for name in libraries})
    assert host_reader.read(str(tmp_path))["nvidia"]["installed"] == "470.82.01"


def test_a_rhel_7_host_with_two_p100(tmp_path):
    """What test_trees.py does not ask of every tree."""
    node = host_reader.read(str(build(tmp_path, TREES["p100"])))
    assert (node["os"]["short"], node["os"]["family"], node["glibc"]) == ("el7", "RedHat", "2.17")
    assert node["cpu"] == {"features": ["sse4_1", "sse4_2", "avx", "avx2", "fma"]}
    assert node["cuda"] == {"toolkits": {"10.0": "/usr/local/cuda-10.0"}, "cudnn": ["7.6.5"], "nccl": []}
    assert node["pythons"] == {"2.7": "/usr/bin/python2.7", "3.6": "/usr/bin/python3.6"}


def test_an_empty_tree_gives_nulls_and_no_traceback(tmp_path):
    node = host_reader.read(str(tmp_path))
    assert node["os"]["short"] is None
    assert node["secure_boot"] is None
    assert node["hadoop"] is None
    assert node["nvidia"]["gpus"] == []


@pytest.mark.parametrize(
    ("home", "distribution"),
    [
        ("/opt/cloudera/parcels/CDH/lib/hadoop", "cdh"),
        ("/usr/hdp/current/hadoop-client", "hdp"),
        ("/opt/mapr/hadoop/hadoop-2.7.0", "mapr"),
    ],
)
def test_hadoop_distributions_are_known_by_their_places(tmp_path, home, distribution):
    names = (f"{home}/bin/hadoop", f"{home}/hadoop-common-2.6.0-cdh5.16.2.jar", "/etc/hadoop/conf/core-site.xml")
    write(tmp_path, dict.fromkeys(names, ""))
    hadoop = host_reader.read(str(tmp_path))["hadoop"]
    assert (hadoop["distribution"], hadoop["home"], hadoop["version"]) == (distribution, home, "2.6.0-cdh5.16.2")


@pytest.mark.parametrize(
    ("mounts", "place"),
    [
        ("localhost:/mapr /mapr nfs rw,vers=3 0 0", "/mapr/one"),
        ("posix-client-basic /mapr fuse.posix-client-basic rw 0 0", "/mapr/one"),
        ("node1:/mapr/one /mapr/one nfs4 rw 0 0", "/mapr/one"),
        ("node1:/mapr/two /mapr/two nfs4 rw 0 0", None),
        ("/dev/sda1 /mapr ext4 rw 0 0", None),
        ("localhost:/mapr /mapr nfs rw 0 0\ntmpfs /mapr tmpfs rw 0 0", None),
        ("", None),
    ],
)
def test_the_file_system_of_mapr_is_a_directory_where_it_is_mounted(tmp_path, mounts, place):
    files = {"/opt/mapr/hadoop/hadoop-2.7.0/bin/hadoop": "", "/proc/mounts": f"proc /proc proc rw 0 0\n{mounts}\n"}
    write(tmp_path, files)
    assert host_reader.read(str(tmp_path))["mapr_mount"] is None, "without the cluster's name"
    write(
        tmp_path, {"/opt/mapr/conf/mapr-clusters.conf": "one secure=true n1:7222 n2:7222\ntwo secure=false n3:7222\n"}
    )
    assert host_reader.read(str(tmp_path))["mapr_mount"] == place


def test_what_the_roles_recorded_of_cuda_is_read_as_far_as_it_is_whole(tmp_path):
    items = [{"version": "7.6.5.32", "cuda": "10.0", "more": 1}]
    records = {
        "cuda": json.dumps({"cuda": ["10.0", "9.2"]}),
        "cudnn": json.dumps({"cudnn": ["7.6.5.32"], "cudnn_items": items}),
        "nccl": '{"nccl": ["2.4',
    }
    write(tmp_path, {f"/opt/deeplearning/etc/gpu-check-{name}.json": text for name, text in records.items()})
    assert host_reader.read(str(tmp_path))["managed"] == {
        "cuda": ["9.2", "10.0"],
        "cudnn": ["7.6.5.32"],
        "cudnn_items": [{"version": "7.6.5.32", "cuda": "10.0"}],
        "nccl": [],
        "nccl_items": [],
    }


def receipt_of(root: Path, **parts: Any) -> dict[str, Any]:
    write(root, {"/opt/deeplearning/state/thing.json": json.dumps({"component": "thing", "digest": "abc", **parts})})
    return host_reader.read(str(root))["deeplearning"]["receipts"]["thing"]


def test_a_receipt_holds_while_its_files_do(tmp_path):
    write(tmp_path, {"/etc/thing": "hello"})
    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    receipt = receipt_of(tmp_path, files={"/etc/thing": digest}, sizes={"/etc/thing": 5})
    assert receipt == {"digest": "abc", "problem": None}
    write(tmp_path, {"/etc/thing": "other"})
    assert "was changed" in receipt_of(tmp_path, files={"/etc/thing": digest})["problem"]
    assert "not 7 bytes" in receipt_of(tmp_path, sizes={"/etc/thing": 7})["problem"]
    assert "does not point" in receipt_of(tmp_path, links={"/etc/link": "thing"})["problem"]
    assert "missing" in receipt_of(tmp_path, files={"/etc/gone": digest})["problem"]


@pytest.mark.parametrize("content", [b'{"component": "th', b"\xff\xfe\x00", b"", b"[1]"])
def test_a_torn_receipt_is_a_problem_and_not_a_traceback(tmp_path, content):
    path = tmp_path / "opt/deeplearning/state/thing.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert "not readable" in host_reader.read(str(tmp_path))["deeplearning"]["receipts"]["thing"]["problem"]


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize("flags", [[], ["-E", "-s"]], ids=["plain", "isolated"])
@pytest.mark.parametrize(("script", "key"), [(SCRIPT, "os"), (PROBE, "exists")], ids=["reader", "probe"])
def test_root_imports_nothing_from_the_directory_of_the_ssh_user(tmp_path, python, flags, script, key):
    """Whoever may write to that directory would be root at the next plan."""
    for name in ("json", "types", "glob", "subprocess", "threading", "environment_tree", "processes", "gpu_check"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w').write({name!r})\n")
    completed = subprocess.run([python, *flags, "-"], input=script, capture_output=True, cwd=tmp_path, check=True)
    assert key in json.loads(completed.stdout)
    assert completed.stdout.count(b"\n") == 1
    assert not (tmp_path / "pwned").exists()


def test_the_command_leaves_the_directory_and_the_variables_of_the_ssh_user(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w').write('')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    script = b"import json, os, sys\nprint(os.getcwd(), sys.path)\n"
    command = ["/bin/sh", "-c", host_script.command()]
    completed = subprocess.run(command, input=script, capture_output=True, cwd=tmp_path, check=True)
    assert completed.stdout.startswith(b"/ ")
    assert not (tmp_path / "pwned").exists()


def test_a_command_that_hangs_is_reported_and_counts_as_no_answer(monkeypatch):
    monkeypatch.setattr(host_system, "COMMAND_TIMEOUT", 0.2)
    reader = host_reader.Reader("/")
    for command in ("false", f"{os.devnull}-missing"):
        assert reader.output([command]) is None
    assert reader.unanswered == [], "a command that fails answers nothing"
    assert reader.output(["sleep", "60"]) is None
    assert reader.unanswered == ["sleep 60 did not end within 0.2 s"]


def test_a_host_whose_file_system_hangs_is_named_as_unreachable(monkeypatch, capsys):
    monkeypatch.setattr(host_reader, "READ_TIMEOUT", 0.3)
    monkeypatch.setattr(host_reader, "read", lambda names: time.sleep(30))
    host_reader.main()
    with pytest.raises(host_script.NoAnswer, match="no answer within 0.3 s.*state D"):
        host_script.parse(0, capsys.readouterr().out, "")


def test_proxies_of_hosts_with_their_passwords_are_not_read(monkeypatch, tmp_path):
    monkeypatch.setenv("https_proxy", "http://svc:canary@proxy.example.com:3128")
    assert "canary" not in json.dumps(host_reader.read(str(tmp_path)))


CAPABILITY = "00000000:3B:00.0, 12.1\n00000000:AF:00.0, 12.1\n"


@pytest.mark.parametrize(
    ("device", "output", "capability"),
    [
        ("0x4001", CAPABILITY, "12.1"),
        ("0x4001", None, None),  # Field "compute_cap" is not a valid field to query, status 2: nvidia-smi before 470
        ("0x4001", "no such thing\n", None),
        ("0x15f8", CAPABILITY, None),  # the table has it, and nvidia-smi takes its time
    ],
)
def test_a_gpu_that_no_table_can_have_is_read_with_its_capability(device, output, capability, tmp_path, monkeypatch):
    bus = {"vendor": "0x10de", "device": device, "class": "0x030200"}
    files = {f"/sys/bus/pci/devices/0000:3b:00.0/{name}": value for name, value in bus.items()}
    version_text = PROPRIETARY.format("580.95.05")
    write(tmp_path, {**files, "/proc/driver/nvidia/version": version_text, "/usr/bin/nvidia-smi": ""})
    commands: list[list[str]] = []

    def answer(self: Any, argv: list[str], accepted: tuple[int, ...] = (0,)) -> str | None:
        commands.append(argv)
        return output if "--query-gpu=pci.bus_id,compute_cap" in argv else None

    monkeypatch.setattr(host_reader.Reader, "output", answer)
    (gpu,) = host_reader.read(str(tmp_path))["nvidia"]["gpus"]
    assert gpu.get("compute_cap") == capability
    assert any("--query-gpu=pci.bus_id,compute_cap" in argv for argv in commands) is (device == "0x4001")


def test_nvidia_smi_is_asked_about_devices_that_are_newer_than_the_table():
    assert max(row["pci_id"] for row in load().rows("gpu_devices", "devices")) == f"10de:{host_system.NEWEST_DEVICE}"


@pytest.mark.parametrize(("model", "virtual"), [("GRID V100D-8Q", "GRID V100D-8Q"), ("Tesla V100-PCIE-32GB", None)])
def test_a_vgpu_is_recognised_by_the_driver_that_runs(model, virtual, tmp_path):
    """Its form: kernel-open/nvidia/nv-procfs.c of https://github.com/NVIDIA/open-gpu-kernel-modules."""
    bus = {"vendor": "0x10de", "device": "0x1db6", "class": "0x030200", "subsystem_device": "0x1249"}
    bus["subsystem_vendor"] = "0x10de" if virtual else "0x103c"
    files = {f"/sys/bus/pci/devices/0000:00:07.0/{name}": value for name, value in bus.items()}
    information = f"Model: \t\t {model}\nIRQ:   \t\t 37\n"
    write(tmp_path, {**files, "/proc/driver/nvidia/gpus/0000:00:07.0/information": information})
    (gpu,) = host_reader.read(str(tmp_path))["nvidia"]["gpus"]
    assert (gpu.get("virtual"), gpu.get("subsystem")) == (virtual, "1249" if virtual else None)


def test_gpus_that_mig_divides_are_counted_by_their_parts(tmp_path):
    """As NVIDIA's MIG user guide shows the capabilities ("Device Nodes and Capabilities"); without parts mig is empty."""
    parts = ["gpu0/mig/gi1/ci0", "gpu0/mig/gi2/ci0", "gpu1/mig", "gpu3/mig/gi0"]
    write(tmp_path, {f"/proc/driver/nvidia/capabilities/{part}/access": "DeviceFileMinor: 3\n" for part in parts})
    assert host_reader.read(str(tmp_path))["nvidia"]["divided"] == 2
