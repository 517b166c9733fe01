"""Sets of RPM packages in a mirror: what is refused before dnf is asked, and what a removal takes. molecule/mirror makes them with dnf, rpm and createrepo_c."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.module_utils.hadoop_dl_host import mirror_removal, package_sets

URL = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64"
RPM = "dkms-3.1.8-1.el9.noarch.rpm"
REQUEST = {"packages": ["dkms"], "repositories": [URL], "key": "text"}


def made(root: Path, name: str = "el9") -> Path:
    """A set as package_sets.Maker leaves it."""
    place = root / "rpm" / name
    (place / "repodata").mkdir(parents=True)
    (place / "repodata" / "repomd.xml").write_text("<repomd/>")
    (place / "dkms-3.1.8-1.el9.noarch.rpm").write_bytes(b"package")
    packages = {"dkms-3.1.8-1.el9.noarch.rpm": hashlib.sha256(b"package").hexdigest()}
    record = {"request": package_sets.digest(REQUEST), "packages": packages, "elsewhere": ["kernel-devel"]}
    (place / package_sets.RECORD).write_text(json.dumps(record))
    return place


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda place: None, ""),
        (lambda place: (place / "set.json").unlink(), "there is no complete set"),
        (lambda place: (place / "set.json").write_text("[]"), "there is no complete set"),
        (lambda place: (place / RPM).unlink(), f"{RPM} is missing or differs"),
        (lambda place: (place / RPM).write_bytes(b"PACKAGE"), f"{RPM} is missing or differs"),
        (lambda place: (place / "repodata/repomd.xml").unlink(), "its metadata is missing"),
    ],
)
def test_a_set_is_made_again_where_a_byte_of_it_is_not_as_it_was(tmp_path, damage, words):
    place = made(tmp_path)
    damage(place)
    assert package_sets.difference(str(place), REQUEST) == words


def test_a_package_is_taken_from_the_served_set_only_with_the_bytes_of_the_metadata(tmp_path):
    """dnf would write another package of that name into the file that hosts are reading."""
    place = made(tmp_path)
    draft = tmp_path / "draft"
    draft.mkdir()
    maker = package_sets.Maker(str(tmp_path), "el9", ["dkms"], [], "text")
    checksum = (2, hashlib.sha256(b"signed again").digest())
    package = SimpleNamespace(location="d/dkms-3.1.8-1.el9.noarch.rpm", chksum=checksum)
    maker.keep(str(draft), [package])
    assert list(draft.iterdir()) == []
    package.chksum = (2, hashlib.sha256(b"package").digest())
    maker.keep(str(draft), [package])
    assert (draft / "dkms-3.1.8-1.el9.noarch.rpm").samefile(place / "dkms-3.1.8-1.el9.noarch.rpm")


def test_other_inputs_make_another_set(tmp_path):
    place = made(tmp_path)
    assert package_sets.difference(str(place), {**REQUEST, "key": "another text"}) == "it was made of other inputs"


def test_a_removal_takes_sets_and_what_a_killed_run_left_and_nothing_else(tmp_path):
    made(tmp_path)
    (tmp_path / "rpm" / "el8").mkdir()
    (tmp_path / "rpm" / "el8" / "site.rpm").write_bytes(b"the site's")
    (tmp_path / "rpm" / "el9" / "site.txt").write_text("the site's")
    for leftover in (".el9.new-4711", ".el9.new-work-4711", ".el9.old"):
        (tmp_path / "rpm" / leftover).mkdir()
    planned_paths = mirror_removal.remove(str(tmp_path), keep_root=False, dry=True)
    assert (tmp_path / "rpm/el9/set.json").exists()
    assert mirror_removal.remove(str(tmp_path), keep_root=False) == planned_paths
    remaining_files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert remaining_files == ["rpm/el8/site.rpm", "rpm/el9/site.txt"]
    assert not list(tmp_path.glob("rpm/.*"))


def test_a_removal_that_was_killed_continues(tmp_path):
    place = made(tmp_path)
    next(place.glob("*.rpm")).unlink()
    mirror_removal.remove(str(tmp_path), keep_root=False)
    assert not tmp_path.exists()
