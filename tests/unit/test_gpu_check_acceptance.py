"""gpu-check --accept: what is measured, what it is compared with, and when it refuses."""

import io
import json
import os
import pwd
import sys
import time

import pytest
from cuda_stand_in import Cuda, Nccl, cards
from gpu_check import acceptance, bandwidth, cli, collective
from gpu_check.host import Host
from gpu_check_hosts import host, results

from hadoop_dl.data import typed
from hadoop_dl.hosts import gpu_acceptance


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(bandwidth, "BLOCK", 64 << 10)
    monkeypatch.setattr(bandwidth, "MEMORY_BLOCK", 128 << 10)
    monkeypatch.setattr(collective, "BLOCK", 64 << 10)
    monkeypatch.setattr(collective, "COPIES", 2)


NOTHING_LEFT = dict.fromkeys(("memory", "contexts", "events", "peers", "streams"), [])


def near(number, expected):
    return abs(number - expected) <= expected / 1000


def test_copies_of_a_gpu_have_its_speeds_and_its_memory_the_limit_of_its_bus():
    library = Cuda(cards(1))
    answer = bandwidth.measure(library)
    (gpu,) = answer["gpus"]
    assert (gpu["gpu"], gpu["problem"], answer["peers"]) == ("0000:3b:00.0", None, [])
    assert near(gpu["copies"]["host to GPU"], 12_300)
    assert near(gpu["copies"]["GPU to host"], 13_100)
    assert near(gpu["copies"]["memory"], 240_000)  # every byte is read and written
    assert gpu["memory_limit"] == 320_064  # a T4: 320 GB/s by its data sheet
    assert library.left() == NOTHING_LEFT


def test_each_pair_is_measured_in_both_directions_directly_where_it_can():
    library = Cuda(cards(3), peers={(0, 1): 48_000, (1, 0): 24_000})
    peers = {(peer["gpu"][5:7], peer["peer"][5:7]): peer for peer in bandwidth.measure(library)["peers"]}
    assert len(peers) == 6
    assert near(peers["3b", "3c"]["speed"], 48_000)
    assert near(peers["3c", "3b"]["speed"], 24_000)
    assert near(peers["3b", "3d"]["speed"], 5_000)
    assert [pair for pair, peer in peers.items() if peer["direct"]] == [("3b", "3c"), ("3c", "3b")]
    assert [peer["problem"] for peer in peers.values()] == [None] * 6
    assert library.left() == NOTHING_LEFT


@pytest.mark.parametrize("sent", [os.urandom, bytes], ids=["random", "zeros"])
def test_data_that_is_lost_on_its_way_is_a_problem_of_that_way_alone(monkeypatch, sent):
    monkeypatch.setattr(os, "urandom", sent)
    library = Cuda(cards(2), peers={(0, 1): 48_000, (1, 0): 48_000})
    library.lost = {(1, 0)}
    problems = {peer["gpu"][5:7]: peer["problem"] for peer in bandwidth.measure(library)["peers"]}
    assert problems == {"3b": None, "3c": "what arrived is not what was sent"}


@pytest.mark.parametrize("sent", [os.urandom, bytes], ids=["random", "zeros"])
@pytest.mark.parametrize("kind", ["in", "out"])
def test_data_that_is_lost_between_host_and_gpu_is_a_problem_of_the_gpu(monkeypatch, kind, sent):
    monkeypatch.setattr(os, "urandom", sent)
    gpus = cards(2)
    gpus[1].loses = frozenset({kind})
    answer = bandwidth.measure(Cuda(gpus))
    assert [gpu["problem"] for gpu in answer["gpus"]] == [None, "what arrived is not what was sent"]
    assert answer["peers"] == []  # its own copies are wrong already


@pytest.mark.parametrize("call", ["cuInit", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain", "cuDeviceGetPCIBusId"])
def test_cuda_that_does_not_start_is_an_error_with_its_meaning(call):
    assert bandwidth.measure(Cuda(cards(1), {call: 802})) == {
        "error": f"{call} returned 802 (the GPUs wait for the fabric of their NVLinks: gpu-check fabric_manager)"
    }


def test_the_host_memory_is_that_of_the_gpus_processors(tmp_path, monkeypatch):
    cpu_sets = []
    monkeypatch.setattr(bandwidth, "DEVICES", str(tmp_path))
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: cpu_sets.append(cpus))
    (tmp_path / "0000:3c:00.0").mkdir()
    (tmp_path / "0000:3c:00.0" / "local_cpulist").write_text("0-2,8\n")
    bandwidth.measure(Cuda(cards(2)))
    assert cpu_sets == [[0, 1, 2, 8]]  # sysfs has no list for the other one


# nvidia-smi of two V100 with two NVLinks between them. Its words: github.com/Azure/azhpc-diagnostics/issues/73 (nvlink -s),
# github.com/NVIDIA/nccl/issues/1617 (topo -m).
CARDS = """00000000:3B:00.0, Tesla V100-SXM2-16GB, 3, 16
00000000:3C:00.0, Tesla V100-SXM2-16GB, 3, 16
"""
TOPOLOGY = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-15\nGPU1\tNV2\t X \t0-15\n"
LINKS = """GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-0)
\t Link 0: 25.781 GB/s
\t Link 1: 25.781 GB/s
GPU 1: Tesla V100-SXM2-16GB (UUID: GPU-1)
\t Link 0: 25.781 GB/s
\t Link 1: <inactive>
"""
LISTING = "nvidia-smi --query-gpu=pci.bus_id,name,pcie.link.gen.max,pcie.link.width.max"
APPLICATIONS = "nvidia-smi --query-compute-apps=pid,process_name"
NVLINKS = {(0, 1): 48_000, (1, 0): 48_000}
PASSED = ["PASS"] * 4


def accept(root, library, answers=None, gpus=2, **given):
    buses = ("00000000:3B:00.0", "00000000:3C:00.0")[:gpus]
    outputs = {
        "ldconfig": (0, "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1\n"),
        LISTING: (0, "".join(CARDS.splitlines(True)[:gpus])),
        "nvidia-smi --query-gpu=index,pci.bus_id": (0, "".join(f"{n}, {bus}\n" for n, bus in enumerate(buses))),
        "nvidia-smi --query-gpu=index,mig.mode.current": (0, "".join(f"{n}, [N/A]\n" for n in range(gpus))),
        "nvidia-smi topo": (0, TOPOLOGY),
        "nvidia-smi nvlink": (0, LINKS),
        APPLICATIONS: (0, ""),
        **(answers or {}),
    }
    machine = host(root, gpus=gpus, answers=outputs, load=lambda path: library, **given)
    run = acceptance.Run(machine)
    return run, {check["name"]: check for check in results(run, (), acceptance.STEPS)}


def outcomes(found):
    """Of the copies."""
    return [check["outcome"] for name, check in found.items() if name != "nccl_all_reduce"]


def v100(**values):
    return cards(2, clock=877_000, width=4096, speeds={"in": 12_300, "out": 13_100, "memory": 360_000}, **values)


def test_healthy_gpus_pass_with_everything_that_was_measured(tmp_path):
    run, checks = accept(tmp_path, Cuda(v100(), peers={**NVLINKS, (1, 0): 26_000}))
    assert outcomes(checks) == PASSED, checks
    assert checks["idle_gpus_measured"]["message"] == "2 GPUs"
    pcie = "of 15.8 GB/s (PCIe 3 x16)"
    assert checks["host_copies"]["message"] == f"GPU to host 13.1 {pcie}; host to GPU 12.3 {pcie}"
    assert checks["memory_copies"]["message"] == "memory 720.0 of 898.0 GB/s"
    assert checks["peer_copies"]["message"] == "GPU to GPU 26.0 to 48.0 of 51.6 GB/s (NV2)"
    assert len(run.measures) == 8
    names = dict.fromkeys(["0000:3b:00.0", "0000:3c:00.0"], "Tesla V100-SXM2-16GB")
    assert acceptance.report(run, [])["cards"] == names


@pytest.mark.parametrize(
    ("gpu", "speed", "failed", "words"),
    [
        (1, {"out": 6_200}, "host_copies", "but: GPU 0000:3c:00.0 GPU to host 6.2 of 15.8 GB/s (PCIe 3 x16). Ask "),
        (0, {"memory": 200_000}, "memory_copies", "GPU 0000:3b:00.0 memory 400.0 of 898.0 GB/s"),
    ],
)
def test_half_of_the_lanes_and_slow_memory_fail_with_their_numbers(tmp_path, gpu, speed, failed, words):
    gpus = v100()
    gpus[gpu].speeds = {**gpus[gpu].speeds, **speed}
    _, checks = accept(tmp_path, Cuda(gpus, peers=NVLINKS))
    assert [name for name, check in checks.items() if check["outcome"] == "FAIL"] == [failed]
    assert outcomes(checks).count("PASS") == 3
    assert words in checks[failed]["message"]


def test_nvlinks_that_carry_less_than_half_fail_and_copies_without_nvlink_have_no_limit(tmp_path):
    _, checks = accept(tmp_path, Cuda(v100(), peers={(0, 1): 48_000, (1, 0): 24_000}))
    assert "but: GPU 0000:3c:00.0 to 0000:3b:00.0 24.0 of 51.6 GB/s (NV2)" in checks["peer_copies"]["message"]
    run, checks = accept(tmp_path, Cuda(v100()), {"nvidia-smi topo": (0, TOPOLOGY.replace("NV2", "SYS"))})
    assert outcomes(checks) == PASSED
    assert checks["peer_copies"]["message"] == "GPU to GPU 5.0 GB/s (SYS through the host)"
    assert {measure["limit"] for measure in run.measures if measure["peer"]} == {0}


def test_copies_between_gpus_that_do_not_arrive_fail_with_the_way_out(tmp_path):
    library = Cuda(v100(), peers=NVLINKS)
    library.lost = {(0, 1)}
    _, checks = accept(tmp_path, library)
    assert outcomes(checks) == ["PASS", "PASS", "PASS", "FAIL"]
    message = checks["peer_copies"]["message"]
    assert "GPU 0000:3b:00.0 to 0000:3c:00.0: what arrived is not what was sent. On a host without virtual" in message


def computing(number):
    """nvidia-smi's list of processes."""
    return {APPLICATIONS: (0, "".join(f"{4000 + at}, /usr/bin/python{at}\n" for at in range(number)))}


ONE = "The GPUs must be idle but 1 processes compute there: 4000, /usr/bin/python0. "
MANY = "7 processes compute there: 4000, /usr/bin/python0; "
DIVIDED = {"nvidia-smi --query-gpu=index,mig.mode.current": (0, "0, Enabled\n1, Disabled\n")}
ITS_HOST = "run it there: /opt/deeplearning/bin/gpu-check --accept"


@pytest.mark.parametrize(
    ("answers", "container", "given", "outcome", "words"),
    [
        (computing(1), "", {}, "FAIL", [ONE]),
        (computing(7), "", {}, "FAIL", [MANY, "; 4004, /usr/bin/python4; .... "]),
        ({APPLICATIONS: (255, "Unable to determine the device handle")}, "", {}, "FAIL", ["status 255"]),
        (DIVIDED, "", {}, "SKIP", ["MIG divides a GPU"]),
        ({}, "", {"gpu_count": "0"}, "SKIP", ["this host must have no GPU"]),
        ({}, "container_1_0001_01_000001", {}, "SKIP", [ITS_HOST]),  # it does not know who else computes
    ],
)
def test_gpus_that_are_not_idle_whole_and_of_this_host_are_left_alone(
    tmp_path, monkeypatch, answers, container, given, outcome, words
):
    monkeypatch.setenv("CONTAINER_ID", container)
    library = Cuda(v100())
    run, checks = accept(tmp_path, library, answers, **given)
    assert outcomes(checks) == [outcome, "SKIP", "SKIP", "SKIP"]
    assert [word for word in words if word not in checks["idle_gpus_measured"]["message"]] == []
    assert checks["host_copies"]["message"] == "nothing was measured: idle_gpus_measured has the reason"
    assert (library.initialized, run.measures) == (False, [])


def test_a_process_that_starts_meanwhile_makes_the_measures_void(tmp_path):
    run, _ = accept(tmp_path, Cuda(v100()))
    answers, execute = iter([(0, ""), (0, "4711, python3\n")]), run.host.execute
    run = acceptance.Run(run.host)
    run.host.execute = lambda argv, seconds=None: next(answers) if "compute-apps" in argv[1] else execute(argv)
    first = next(iter(results(run, (), acceptance.STEPS)))
    assert first["outcome"] == "FAIL"
    assert "but 1 processes compute there, which started meanwhile: 4711, python3" in first["message"]
    assert run.measures == []


NCCL = "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1\n\tlibnccl.so.2 (libc6,x86-64) => /usr/lib64/libnccl.so.2\n"


def reduced(root, nccl, **given):
    """The run on a host that has NCCL."""
    run, _ = accept(root, nccl.cuda, {"ldconfig": (0, NCCL)}, gpus=len(nccl.cuda.gpus), **given)
    run.host.load = lambda name: nccl if "nccl" in name else nccl.cuda
    run = acceptance.Run(run.host)
    return run, {check["name"]: check for check in results(run, (), acceptance.STEPS)}["nccl_all_reduce"]


@pytest.mark.parametrize("gpus", [2, 3])
def test_nccl_adds_up_numbers_of_all_gpus_and_gives_back_what_it_took(gpus):
    library = Cuda(cards(gpus))
    measure = collective.all_reduce(library, nccl := Nccl(library))
    assert near(measure["speed"], 90_000)
    assert measure["gpu"] == "0000:3b:00.0"
    assert library.left() == NOTHING_LEFT
    assert nccl.comms == {}


def test_the_all_reduce_of_a_host_is_a_measure_without_a_limit(tmp_path):
    run, nccl_check = reduced(tmp_path, Nccl(Cuda(v100(), peers=NVLINKS)))
    assert (nccl_check["outcome"], nccl_check["message"]) == ("PASS", "all-reduce 90.0 GB/s (2 GPUs)")
    (measure,) = [measure for measure in run.measures if measure["kind"] == "all-reduce"]
    assert (measure["link"], measure["limit"], measure["peer"]) == ("2 GPUs", 0, "")
    assert typed.read(gpu_acceptance.Acceptance, acceptance.report(run, [])).measures[-1].kind == "all-reduce"


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"wrong": 1}, "what arrived is not what was sent"),
        ({"refused": {"ncclCommInitAll": 2}}, "ncclCommInitAll returned 2 (a call of the system failed"),
        ({"refused": {"ncclGroupEnd": 3}}, "ncclGroupEnd returned 3 (NCCL itself failed)"),
    ],
)
def test_sums_that_are_wrong_and_a_nccl_that_fails_are_failures(tmp_path, faults, words):
    run, nccl_check = reduced(tmp_path, Nccl(Cuda(v100(), peers=NVLINKS), **faults))
    assert nccl_check["outcome"] == "FAIL"
    assert nccl_check["message"].startswith("NCCL must add up numbers of 2 GPUs but: ")
    assert words in nccl_check["message"]
    assert [measure for measure in run.measures if measure["kind"] == "all-reduce"] == []


def test_a_nccl_that_waits_for_ever_ends_after_the_limit(tmp_path, monkeypatch):
    nccl = Nccl(Cuda(v100(), peers=NVLINKS))
    nccl.ncclGroupEnd = lambda: time.sleep(60)
    monkeypatch.setattr(acceptance, "NCCL_SLOW", 0.5)
    _, nccl_check = reduced(tmp_path, nccl)
    assert "GPUs wait for each other in NCCL" in nccl_check["message"]


def test_one_gpu_and_a_host_without_nccl_are_a_skip_with_the_reason(tmp_path):
    _, checks = accept(tmp_path / "a", Cuda(v100()[:1]), gpus=1)
    assert (checks["nccl_all_reduce"]["outcome"], checks["nccl_all_reduce"]["message"]) == ("SKIP", "one GPU")
    _, checks = accept(tmp_path / "b", Cuda(v100(), peers=NVLINKS))
    assert checks["nccl_all_reduce"]["outcome"] == "SKIP"
    assert "NCCL is not installed for the host (no libnccl.so.2)" in checks["nccl_all_reduce"]["message"]


def test_a_corrupted_inforom_does_not_stop_the_run(tmp_path):
    warning = "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n"
    _, checks = accept(tmp_path, Cuda(v100(), peers=NVLINKS), {APPLICATIONS: (14, warning)})
    assert outcomes(checks) == PASSED


def test_a_gpu_that_cannot_be_measured_fails_and_the_other_is_reported(tmp_path):
    gpus = v100()
    gpus[0].memory = 100 << 10
    run, checks = accept(tmp_path, Cuda(gpus))
    assert outcomes(checks) == ["FAIL", "PASS", "PASS", "SKIP"]
    words = "GPU 0000:3b:00.0: cuMemAlloc_v2 returned 2 (out of memory: something fills the GPU)"
    assert words in checks["idle_gpus_measured"]["message"]
    assert {measure["gpu"] for measure in run.measures} == {"0000:3c:00.0"}


def test_a_gpu_that_cuda_does_not_list_fails(tmp_path):
    _, checks = accept(tmp_path, Cuda(v100()[:1]))
    assert checks["idle_gpus_measured"]["message"].startswith("CUDA must list 2 GPUs but lists 1")


def test_a_gpu_that_never_answers_ends_after_the_limit(tmp_path, monkeypatch):
    library = Cuda(v100())
    library.cuInit = lambda flags: time.sleep(60)
    monkeypatch.setattr(acceptance, "SLOW", 0.5)
    _, checks = accept(tmp_path, library)
    assert "must be measured within" in checks["idle_gpus_measured"]["message"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")
def test_root_measures_as_nobody(open_directory):
    uids = open_directory / "seen"
    uids.mkdir()
    uids.chmod(0o777)
    library = Cuda(v100(), peers=NVLINKS)
    library.cuInit = lambda flags: (uids / str(os.geteuid())).touch() or setattr(library, "initialized", True) or 0
    _, checks = accept(open_directory, library)
    assert outcomes(checks) == PASSED, checks
    assert [path.name for path in uids.iterdir()] == [str(pwd.getpwnam("nobody").pw_uid)]


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """A run on a host that is well, which is the host of the command and of the playbook's script."""
    run, _ = accept(tmp_path, Cuda(v100(), peers=NVLINKS))
    monkeypatch.setattr(cli, "Host", lambda named: run.host)
    monkeypatch.setattr(acceptance, "Host", lambda: run.host)
    monkeypatch.chdir("/")


def test_the_command_prints_a_line_for_each_step_and_json(whole, capsys):
    assert cli.main(["--accept"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"{'SKIP' if name == 'nccl_all_reduce' else 'PASS'}  {name}" for name, _ in acceptance.STEPS
    ]
    assert cli.main(["--accept", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert sorted(report) == ["cards", "measures", "results"]
    assert len(report["measures"]) == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--accept", "xid"], "--accept measures everything and takes no question, but got xid"),
        (["--acept"], "--acept"),
        (["xid", "--junit"], "does not know --junit"),
    ],
)
def test_misuse_is_a_sentence(arguments, words, capsys):
    assert cli.main(arguments) == 2
    assert words in capsys.readouterr().err


def test_a_name_that_the_locale_lacks_is_printed(whole, monkeypatch):
    """As of a process in /home/josé, in a cron job."""
    answer = {"name": "xid", "question": "", "outcome": "PASS", "message": "josé"}
    monkeypatch.setattr(cli, "results", lambda *_: [answer])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert cli.main(["xid"]) == 0
    assert sys.stdout.buffer.getvalue().decode() == "PASS  xid: josé\n"


def test_a_torn_file_is_a_sentence(whole, tmp_path, monkeypatch, capsys):
    (tmp_path / "opt/deeplearning/etc/gpu-check.json").write_text("{")
    monkeypatch.setattr(cli, "Host", lambda named: Host(str(tmp_path)))
    assert cli.main(["xid"]) == 1
    assert "gpu-check.json must be JSON but is not" in capsys.readouterr().err


def test_the_playbooks_script_prints_one_line_of_json_with_what_the_inventory_promises(whole, capsys):
    acceptance.main("3")
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert report["results"][0]["message"].startswith("CUDA must list 3 GPUs but lists 2")
    kinds = {"GPU to GPU", "GPU to host", "host to GPU", "memory"}
    assert {measure["kind"] for measure in report["measures"]} == kinds
    assert len(typed.read(gpu_acceptance.Acceptance, report).measures) == 8
