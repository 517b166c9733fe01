"""scripts/stack data: the comparison with PyPI, and the table of GPUs from NVIDIA's lists."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import trees

from hadoop_dl.data import compat
from hadoop_dl_dev import data_check, gpu_table

DATA = compat.load()
README = """\
## Compatible GPUs

| Product Name    | PCI ID         |
| --------------- | -------------- |
{rows}
"""
PCI_IDS = """\
# pci.ids as https://pci-ids.ucw.cz/ has it, shortened
#	Version: 2026.08.22
0e8d  MediaTek Corp.
	26b9  Not NVIDIA's
10de  NVIDIA Corporation
	1db4  GV100GL [Tesla V100 PCIe 16GB]
	1eb8  TU104GL [Tesla T4]
	26b9  AD102GL [L40S]
	2717  AD103M / GN21-X11 [GeForce RTX 4090 Laptop GPU]
	27b6  AD104GL [L2]
	1aef  GA102 High Definition Audio Controller
	2900  GB100 [Reserved Dev ID A]
		10de 0001  a subsystem
10df  Emulex Corporation
	26b8  Not NVIDIA's
"""


def page_of(project: str) -> list[dict[str, Any]]:
    """The index as the data expects it."""
    names = []
    for row in DATA.rows("tensorflow", "releases"):
        for wheel in row["wheels"]:
            if wheel["package"] == project:
                names += [
                    f"{project.replace('-', '_')}-{row['version']}-{abi.rstrip('mu')}-{abi}-manylinux2010_x86_64.whl"
                    for abi in wheel["abis"]
                ]
    for name, subject, rows, read in data_check.RELEASES:
        if name == project:
            names += [f"{project}-{text}.tar.gz" for row in DATA.rows(subject, rows) for text in read(row)]
    if project == "nvidia-cudnn-cu12":
        names = [
            f"nvidia_cudnn_cu12-{row['version']}-py3-none-manylinux1_x86_64.whl" for row in DATA.rows("cuda", "cudnn")
        ]
    return [{"name": name, "url": f"https://index.example/{name}", "size": 400_000_000} for name in names]


def metadata_of(offer: Any) -> str:
    """METADATA that says what the data says."""
    text = offer["name"].split("-")[1]
    row = next(row for row in DATA.rows("tensorflow", "releases") if row["version"] == text)
    lines = []
    for requirements, marker in ((row.get("requires") or {}, ""), (row.get("and_cuda") or {}, "; extra == 'and-cuda'")):
        for name, limits in requirements.items():
            lines += [
                f"Requires-Dist: {name} {part.partition(';')[0].strip()}{marker}" for part in str(limits).split("|")
            ]
    return "\n".join(["Metadata-Version: 2.1", *lines, ""])


def told(offers: Any = page_of, metadata: Any = metadata_of) -> list[str]:
    return [str(difference) for difference in data_check.differences(DATA, offers, metadata)]


def test_data_that_agrees_with_the_index_has_no_differences() -> None:
    assert told() == []


@pytest.mark.parametrize(
    ("project", "change", "words"),
    [
        ("pyspark", lambda found: [*found, {"name": "pyspark-9.0.0.tar.gz"}], "newer: pyspark 9.0.0"),
        ("pyspark", lambda found: [*found, {"name": "pyspark-9.0.0.dev1.tar.gz"}], ""),
        ("tensorflowonspark", lambda found: [*found, {"name": "tensorflowonspark-1.0.1.tar.gz"}], "missing: tensorflowonspark 1.0.1"),
        ("pyspark", lambda found: [one for one in found if "3.1.1" not in one["name"]], "wrong: pyspark 3.1.1"),
        ("nvidia-cudnn-cu12", lambda found: [*found, {"name": "nvidia_cudnn_cu12-9.99.0.1-py3-none-manylinux1_x86_64.whl"}], "newer: cuDNN 9.99.0.1"),
        ("cuda-toolkit", lambda found: [*found, {"name": "cuda_toolkit-13.9.1-py2.py3-none-any.whl"}], "newer: CUDA 13.9 is on PyPI (cuda-toolkit 13.9.1)"),
        ("cuda-toolkit", lambda found: [*found, {"name": "cuda_toolkit-12.9.1-py2.py3-none-any.whl"}], ""),
        ("nvidia-ml-py", lambda found: [*found, {"name": "nvidia_ml_py-13.999.71-py3-none-any.whl"}], "newer: driver branch 999 has a nvidia-ml-py on PyPI (13.999.71)"),
        ("tensorflow", lambda found: [one for one in found if "2.15.1-cp311" not in one["name"]], "wrong: tensorflow 2.15.1 has ['cp310', 'cp39']"),
        ("tensorflow", lambda found: [*found, {"name": "tensorflow-2.99.0-cp311-cp311-manylinux_2_27_x86_64.whl", "url": "", "size": None}], "newer: tensorflow 2.99.0"),
    ],
)  # fmt: skip
def test_what_differs_is_named_by_its_kind(project: str, change: Any, words: str) -> None:
    sentences = told(lambda name: change(page_of(name)) if name == project else page_of(name))
    assert [words in text for text in sentences] == ([True] if words else [])


def test_requirements_that_the_wheel_does_not_have_are_wrong() -> None:
    sentences = told(
        metadata=lambda offer: metadata_of(offer).replace(
            "Requires-Dist: keras <2.16,>=2.15.0", "Requires-Dist: keras <2.17"
        )
    )
    assert any("tensorflow 2.15.1 requires keras <2.17 on PyPI" in text for text in sentences)


# Lines of the driver's own table: cards have a subsystem vendor in small letters, or none.
NAMES = """
    { 0x1EB8, 0x0000, 0x0000, "Tesla T4" },
    { 0x1EB8, 0x130a, 0x10DE, "GRID T4-2B" },
    { 0x1EB8, 0x1309, 0x10DE, "GRID T4-1B" },
    { 0x1EB8, 0x130b, 0x10DE, "GRID T4-1Q" },
    { 0x1EB8, 0x1345, 0x10DE, "GRID T4-2B4" },
    { 0x1EB8, 0x1367, 0x10de, "NVIDIA T4-PG150" },
"""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A clone of NVIDIA/open-gpu-kernel-modules: a README for each release, the first without a table."""
    a10, l40s, l2 = "NVIDIA A10 | 2236", "NVIDIA L40S | 26B9 10DE 1851", "NVIDIA L2 | 27B6 10DE 1933"
    lists = {
        "515.43.04": None,
        "515.48.07": [a10],
        "535.43.16": [a10, l40s],  # for developers, and later than 535.104.05
        "535.54.03": [a10],
        "535.104.05": [a10, l40s],
        "535.154.05": [a10, l40s, l2],
        "545.29.06": [a10, l40s],
        "550.54.14": [a10, l40s, l2, "Tesla T4 | 1EB8 10DE 12A2"],
    }
    run = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(tmp_path)]
    subprocess.run([*run, "init", "--quiet"], check=True)
    for release, rows in lists.items():
        text = README.format(rows="\n".join(f"| {row} |" for row in rows)) if rows else "# No list yet"
        trees.write(tmp_path, {"/README.md": f"{release}\n{text}\n", f"/{gpu_table.NAMES}": NAMES})
        subprocess.run([*run, "add", "README.md", gpu_table.NAMES], check=True)
        subprocess.run([*run, "commit", "--quiet", "-m", release], check=True)
        subprocess.run([*run, "tag", release], check=True)
    return tmp_path


def test_the_table_of_gpus_has_the_first_driver_of_each_branch(modules: Path) -> None:
    text = gpu_table.page(modules, PCI_IDS, "2026-11-21")
    rows = [line.strip() for line in text.splitlines() if line.startswith("  - {")]
    assert rows == [
        '- {pci_id: "10de:1db4", names: ["Tesla V100 PCIe 16GB"], chip: GV100, cc: "7.0"}',
        '- {pci_id: "10de:1eb8", names: ["Tesla T4"], chip: TU104, cc: "7.5", vgpus: ["1309-130b", "1345"]}',
        '- {pci_id: "10de:26b9", names: ["L40S"], chip: AD102, cc: "8.9", first_drivers: ["535.104.05"]}',
        '- {pci_id: "10de:2717", names: ["GeForce RTX 4090 Laptop GPU"], chip: AD103, cc: "8.9"}',
        '- {pci_id: "10de:27b6", names: ["L2"], chip: AD104, cc: "8.9", first_drivers: ["535.154.05"], not_in: ["545"]}',
    ]
    assert 'until: "550.54.14"' in text
    assert 'until: "2026.08.22"' in text


def test_every_device_with_a_name_of_this_project_is_in_the_table_with_its_capability() -> None:
    device_rows = {row["pci_id"]: row for row in DATA.rows("gpu_devices", "devices")}
    for row in DATA.rows("gpus", "devices"):
        assert device_rows[row["pci_id"]]["cc"] == row["cc"], row["name"]
    assert len(device_rows) > 700
