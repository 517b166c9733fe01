"""GPUs and operating systems by every name that people use."""

import pytest
from requests_of import refuse

from hadoop_dl.data import compat, host_facts
from hadoop_dl.resolver import compose
from hadoop_dl.resolver.gpus import Gpu, find_gpu
from hadoop_dl.resolver.hosts import System, find_system

DATA = compat.load()


@pytest.mark.parametrize(
    "name",
    [
        "P100",
        "p100",
        "Tesla P100-PCIE-16GB",
        "NVIDIA Tesla P100",
        "10de:15f8",
        "15f8",
        "0x15f8",
        "P100-SXM2",
        "NVIDIA Corporation GP100GL [Tesla P100 PCIe 16GB] (rev a1)",  # as lspci prints it
    ],
)
def test_a_gpu_is_known_by_every_name_that_people_use(name: str) -> None:
    assert refuse(gpu=name, driver_module="open").conflicts[0].message.startswith("P100 (Pascal)")


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-40GB", "NVIDIA A100 80GB PCIe", "a100", "A100-SXM-80GB"])
def test_an_a100_is_not_an_a10(name: str) -> None:
    assert "A100 (compute capability 8.0)" in refuse(gpu=name, tensorflow="1.15").problems[0]


@pytest.mark.parametrize(
    ("name", "meanings"),
    [
        (
            "RTX 6000",
            {"10de:1e30": "Quadro RTX 6000, Turing", "10de:1e78": "Quadro RTX 8000, Turing", "10de:26b1": "RTX 6000 Ada Generation, Ada"},
        ),
        ("GTX 750 Ti", {"10de:11c7": "GeForce GTX 750 Ti, Kepler", "10de:1380": "GeForce GTX 750 Ti, Maxwell"}),
        ("Titan X", {"10de:17c2": "GeForce GTX TITAN X, Maxwell", "10de:1b00": "TITAN X Pascal, Pascal"}),
    ],
)  # fmt: skip
def test_a_name_of_several_generations_is_asked_back_with_pci_ids(name: str, meanings: dict[str, str]) -> None:
    answer = refuse(gpu=["T4", name], os="rhel-9.4", tensorflow="2.15")
    assert all(f"{means} ({pci_id})" in answer.problems[0] for pci_id, means in meanings.items())
    request = {"os": "rhel-9.4", "tensorflow": "2.15"}
    assert list(answer.which) == [({**request, "gpu": f"T4,{pci_id}"}, means) for pci_id, means in meanings.items()]
    assert not answer.nearest


@pytest.mark.parametrize(
    ("typed", "pci_ids"),
    [
        ("K40", {"10de:1023", "10de:1024"}),
        ("1080Ti", {"10de:1b06"}),
        ("GTX1080Ti", {"10de:1b06"}),
        ("3090", {"10de:2204"}),
        ("3080 ti", {"10de:2208"}),
        ("A6000", {"10de:2230"}),
        ("RTXA6000", {"10de:2230"}),
        # As nvidia-smi prints it: that product alone.
        ("NVIDIA H200", {"10de:2335"}),
        ("NVIDIA H200 NVL", {"10de:233b"}),
        ("NVIDIA A100-SXM4-80GB", {"10de:20b2"}),
    ],
)
def test_a_name_is_known_as_people_type_it(typed: str, pci_ids: set[str]) -> None:
    gpu = find_gpu(DATA, typed)
    assert isinstance(gpu, Gpu)
    assert {device.pci_id for device in gpu.devices} == pci_ids


@pytest.mark.parametrize(
    ("name", "cc"),
    [
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("GeForce GTX 1080", "6.1"),
        ("NVIDIA GeForce RTX 3090", "8.6"),
        ("RTX A6000", "8.6"),
        ("10de:2230", "8.6"),
        ("TITAN V", "7.0"),
        ("10de:2336", "9.0"),
        ("L2", "8.9"),
    ],
)
def test_workstation_and_other_cards_are_known_by_name_and_by_id(name: str, cc: str) -> None:
    gpu = find_gpu(DATA, name)
    assert isinstance(gpu, Gpu)
    assert gpu.cc == cc


def test_a_gpu_of_which_only_the_capability_is_known_is_answered_with_a_warning() -> None:
    resolution = compose({"gpu": "cc=8.6", "os": "rhel-9.4"})
    assert resolution.ok
    assert any("only the compute capability is known" in finding.text for finding in resolution.warnings)
    read = host_facts.Gpu("10de", "ffff", compute_cap="9.0")
    assert compose({}, host_facts.HostProfile(gpus=(read.name,))).ok


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100 MIG 3g.20gb"])
def test_a_slice_has_the_capability_of_its_gpu_and_a_warning_where_it_is_scheduled(name: str) -> None:
    assert "A100 (compute capability 8.0)" in refuse(gpu=name, tensorflow="1.15").problems[0]
    resolution = compose({"gpu": name, "yarn_gpu": "true", "hadoop": "cdp-7.1"})
    assert any("slices (MIG)" in finding.text for finding in resolution.warnings)


@pytest.mark.parametrize(("name", "called"), [("NVIDIA A16", "A16"), ("A2", "A2"), ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000")])  # fmt: skip
def test_a_gpu_is_called_as_it_was_named(name: str, called: str) -> None:
    assert called in refuse(gpu=name, tensorflow="1.4").problems[0]


@pytest.mark.parametrize(
    "name",
    [
        "rhel-7.9",
        "rhel7",
        "RHEL 7.9",
        "el7",
        "centos-7",
        "redhat-7.6",
        "ol7.9",
        "oracle-linux-7.9",
        "Red Hat Enterprise Linux Server 7.9 (Maipo)",
        "CentOS Linux 7 (Core)",
        "rhel-7.9-x86_64",
    ],
)
def test_an_operating_system_is_known_by_its_names(name: str) -> None:
    assert "has 2.17" in refuse(os=name, tensorflow="2.21").problems[0]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("SLES-15-SP5", "SLES 15.5"),
        ("SUSE Linux Enterprise Server 12 SP5", "SLES 12.5"),
        ("sles15sp4", "SLES 15.4"),
        ("sles-16.0", "SLES 16.0"),
        ("leap-15.6", "openSUSE 15.6"),
        ("openSUSE Leap 15.6", "openSUSE 15.6"),
    ],
)
def test_a_release_of_suse_is_known_with_its_service_pack(name: str, label: str) -> None:
    system = find_system(DATA, name)
    assert isinstance(system, System), system
    assert system.label == label


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("GRID V100D-8Q", "V100"),
        ("NVIDIA A10-24Q", "A10"),
        ("H100L-2-24C", "H100"),
        ("GRID M60-2B4", "M60"),
        ("A100D-1-10CME", "A100"),
        ("NVIDIA H100XM-80C", "H100"),
        ("GRID V100DX-32C", "V100"),
        ("GRID RTX6000P-24Q", "Quadro RTX 6000"),
        ("DC-32C", "RTX PRO 4500 Blackwell Server Edition"),
    ],
)
def test_a_virtual_gpu_is_a_part_of_its_card(name: str, card: str) -> None:
    gpu = find_gpu(DATA, name)
    assert isinstance(gpu, Gpu)
    assert (gpu.name, gpu.virtual) == (card, name)
    warnings = compose({"gpu": name, "os": "rhel-9.4"}).warnings
    assert any(warning.text.startswith(f"{name} is a virtual GPU") for warning in warnings)


@pytest.mark.parametrize("name", ["V100", "Tesla V100-PCIE-32GB", "A100-SXM4-40GB", "GRID K1"])
def test_a_card_is_no_virtual_gpu(name: str) -> None:
    gpu = find_gpu(DATA, name)
    assert isinstance(gpu, Gpu)
    assert not gpu.virtual
