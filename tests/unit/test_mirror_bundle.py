"""A mirror as one signed file: what it carries, and that nothing of a wrong, damaged or other bundle reaches the mirror. gpg is the real one."""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import mirror_bundle, package_sets, replaced_directory
from ansible.module_utils.hadoop_dl_host.mirror_index import MirrorError
from host_modules import run
from killed_steps import killed

from hadoop_dl_dev.demo import shell

pytestmark = pytest.mark.skipif(
    not (shutil.which("gpg") and shutil.which("gpg-agent")), reason="gpg signs bundles, and gnupg is not installed"
)
WHEEL, JAR, RPM = "wheels/six-1.16.0-py2.py3-none-any.whl", "files/spark.tgz", "rpm/gpu-el9/dkms-3.1.8-1.el9.noarch.rpm"
FILES = {WHEEL: b"wheel", JAR: b"spark" * 1000, RPM: b"rpm", "rpm/gpu-el9/repodata/repomd.xml": b"<repomd/>"}
SET = {"request": "1", "packages": {RPM.rpartition("/")[2]: hashlib.sha256(b"rpm").hexdigest()}, "elsewhere": []}


def artifact(path: str, content: bytes | None = None) -> dict[str, Any]:
    folder, _, name = path.rpartition("/")
    return {"folder": folder, "name": name, "sha256": hashlib.sha256(content or FILES[path]).hexdigest()}


ARTIFACTS = [artifact(WHEEL), artifact(JAR)]


def filled(root: Path, **changes: bytes) -> Path:
    """A mirror with two artifacts and a set, and a file of the site."""
    record = json.dumps(SET).encode()
    for path, content in {**FILES, "rpm/gpu-el9/set.json": record, "wheels/other.whl": b"not asked for"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(changes.get(path, content))
    return root


def files(root: Path) -> dict[str, bytes]:
    """What the mirror shows: no pages, and nothing whose name begins with a point."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {
        name: path.read_bytes()
        for name, path in names.items()
        if not name.startswith((".", "simple/", "rpm/.", "manifest.json"))
    }


IN_2020 = ("--faked-system-time", "20200102T120000")
CARRIED = {**FILES, "rpm/gpu-el9/set.json": json.dumps(SET).encode()}


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The key rings of two sites, each with the file of its public key."""
    directory = tmp_path_factory.mktemp("keys")
    made = {}
    for name, validity in {"ours": "never", "theirs": "never", "expired": "2020-01-03"}.items():
        home = directory / name
        home.mkdir(mode=0o700)
        identity = (*IN_2020, "--quick-generate-key", f"{name}@example.com", "ed25519", "sign", validity)
        shell.run("gpg", "--homedir", str(home), "--batch", "--passphrase", "", *identity)
        public = shell.run("gpg", "--homedir", str(home), "--armor", "--export").stdout
        (home / "public.asc").write_text(public)
        made[name] = home
    yield made
    for home in made.values():
        shell.run("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")


@pytest.fixture
def bundle(tmp_path: Path, homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundle that our site wrote."""
    monkeypatch.setenv("GNUPGHOME", str(homes["ours"]))
    root = filled(tmp_path / "carried")
    target = tmp_path / "mysite.bundle"
    paths = mirror_bundle.paths_of(str(root), ARTIFACTS, ["gpu-el9"])
    mirror_bundle.pack(str(target), str(root), paths, key(homes))
    assert not list(tmp_path.glob("*.part"))
    return target


def key(homes: dict[str, Path], name: str = "ours") -> str:
    return (homes[name] / "public.asc").read_text()


def unpacked(bundle: Path, root: Path, key_text: str, artifacts: Any = ARTIFACTS, **more: Any) -> dict[str, Any]:
    arguments = {"bundle": str(bundle), "root": str(root), "key": key_text, "artifacts": artifacts}
    return run("mirror_artifacts", state="unpacked", **arguments, **more)


def test_a_bundle_makes_the_mirror_of_the_other_side(bundle, homes, tmp_path):
    root = tmp_path / "mirror"
    root.mkdir()
    assert unpacked(bundle, root, key(homes), _ansible_check_mode=True)["changed"] is True
    assert files(root) == {}
    result = unpacked(bundle, root, key(homes))
    assert (result["changed"], sorted(result["unpacked"])) == (True, sorted(CARRIED))
    assert files(root) == CARRIED
    assert package_sets.record_of(str(root / "rpm/gpu-el9")) == SET
    assert set(json.loads((root / "manifest.json").read_text())["artifacts"]) == {WHEEL, JAR}
    assert (root / "simple/six/index.html").exists()
    assert unpacked(bundle, root, key(homes))["changed"] is False


def test_only_what_differs_is_written_again_and_a_set_comes_whole(bundle, homes, tmp_path):
    root = filled(tmp_path / "mirror")
    (root / JAR).write_bytes(b"damaged")
    (root / "rpm/gpu-el9/older-1.rpm").write_bytes(b"of an older set")
    wheel = (root / WHEEL).stat().st_ino
    result = unpacked(bundle, root, key(homes))
    assert sorted(result["unpacked"]) == sorted(CARRIED.keys() - {WHEEL})
    assert (root / WHEEL).stat().st_ino == wheel
    assert files(root) == {**CARRIED, "wheels/other.whl": b"not asked for"}


def test_during_a_change_of_keys_either_key_signs(bundle, homes, tmp_path):
    assert unpacked(bundle, tmp_path / "mirror", key(homes, "theirs") + key(homes))["changed"] is True


def rewritten(bundle: Path, change: Any) -> Path:
    """The bundle with other members. change: gets and returns a list of name and content."""
    with tarfile.open(bundle) as archive:
        members = [(entry.name, archive.extractfile(entry).read()) for entry in archive]
    other = bundle.with_suffix(".other")
    with tarfile.open(other, "w") as archive:
        for name, content in change(members):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return other


def damaged(members: Any) -> Any:
    """The artifact that comes last is another one of the same size."""
    return [(name, content.replace(b"wheel", b"WHEEL") if name == WHEEL else content) for name, content in members]


def listed_too(members: Any) -> Any:
    """Also the list names it."""
    sums = (hashlib.sha256(content).hexdigest().encode() for content in (b"wheel", b"WHEEL"))
    return [
        (name, content.replace(*sums)) if name == "bundle.json" else (name, content)
        for name, content in damaged(members)
    ]


def unsigned(members: Any) -> Any:
    return [pair for pair in members if pair[0] != "bundle.json.asc"]


def one_more(members: Any) -> Any:
    return [*members, ("files/more", b"more")]


def exchanged(members: Any) -> Any:
    return [*members[:2], *reversed(members[2:])]


def outside(members: Any) -> Any:
    return [(name.replace("wheels/", "../wheels/"), content) for name, content in members]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (damaged, f"{WHEEL} has other bytes than its list"),
        (listed_too, "must be signed with mirror_bundle_key, but gpg reports"),
        (unsigned, "bundle.json.asc is required next"),
        (one_more, "has more files than its list"),
        (exchanged, "is required next, but there is"),
        (outside, "is required next, but there is ../wheels/"),
    ],
)
def test_a_bundle_that_somebody_changed_leaves_the_mirror_as_it_was(bundle, homes, tmp_path, change, words):
    root = tmp_path / "mirror"
    root.mkdir()
    result = unpacked(rewritten(bundle, change), root, key(homes))
    assert words in result["msg"]
    assert "Nothing of the mirror was changed" in result["msg"]
    assert files(root) == {}
    assert not (root / ".staging/bundle").exists()


def test_a_bundle_that_another_key_signs_is_refused(bundle, homes, tmp_path, monkeypatch):
    result = unpacked(bundle, tmp_path / "mirror", key(homes, "theirs"))
    assert "must be signed with mirror_bundle_key" in result["msg"]
    assert not (tmp_path / "mirror").exists()
    monkeypatch.setenv("GNUPGHOME", str(homes["theirs"]))
    other, root = tmp_path / "signed-again.bundle", filled(tmp_path / "other")
    mirror_bundle.pack(str(other), str(root), [WHEEL], key(homes, "theirs"))
    assert "must be signed with mirror_bundle_key" in unpacked(other, tmp_path / "mirror", key(homes), [])["msg"]


def test_a_key_that_has_expired_signs_nothing_any_more(homes, tmp_path, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", str(homes["expired"]))
    root, bundle, gpg = filled(tmp_path / "carried"), tmp_path / "old.bundle", mirror_bundle.gpg
    with monkeypatch.context() as earlier:
        earlier.setattr(mirror_bundle, "gpg", lambda home, *arguments: gpg(home, *IN_2020, *arguments))
        mirror_bundle.pack(str(bundle), str(root), [WHEEL], key(homes, "expired"))
    result = unpacked(bundle, tmp_path / "mirror", key(homes, "expired"), [])
    assert "must be signed with mirror_bundle_key" in result["msg"]
    assert not (tmp_path / "mirror").exists()


def test_a_bundle_of_another_site_is_refused_by_what_this_one_needs(bundle, homes, tmp_path):
    needed = [*ARTIFACTS, artifact("wheels/numpy-1.26.4-cp39-none-any.whl", b"numpy")]
    result = unpacked(bundle, tmp_path / "mirror", key(homes), needed)
    assert "lacks 1: wheels/numpy-1.26.4-cp39-none-any.whl. It is another site's, or older" in result["msg"]
    assert not (tmp_path / "mirror").exists()


@pytest.mark.parametrize("share", [0, 0.02, 0.5, 0.99])
def test_half_a_file_is_refused(bundle, homes, tmp_path, share):
    root = tmp_path / "mirror"
    root.mkdir()
    half = tmp_path / "half.bundle"
    content = bundle.read_bytes().rstrip(b"\0")
    half.write_bytes(content[: int(len(content) * share)])
    result = unpacked(half, root, key(homes))
    assert "must be a complete file that can be read" in result["msg"]
    assert files(root) == {}


def test_a_file_that_is_no_key_and_one_that_is_missing_are_sentences(bundle, homes, tmp_path):
    assert "must be an OpenPGP public key" in unpacked(bundle, tmp_path / "mirror", "no key")["msg"]
    assert "No such file" in unpacked(tmp_path / "lost", tmp_path / "mirror", key(homes))["msg"]


def test_a_signed_list_of_another_form_and_a_mirror_that_is_no_directory_are_sentences(
    bundle, homes, tmp_path, monkeypatch
):
    root, other = tmp_path / "carried", tmp_path / "other.bundle"
    (tmp_path / "file").write_text("no directory")
    assert "must be writable" in unpacked(bundle, tmp_path / "file" / "mirror", key(homes))["msg"]
    row_of = mirror_bundle.row_of
    monkeypatch.setattr(mirror_bundle, "row_of", lambda *place: {**row_of(*place), "sha256": "0"})
    mirror_bundle.pack(str(other), str(root), [WHEEL], key(homes))
    assert "its list has another form" in unpacked(other, tmp_path / "mirror", key(homes), [])["msg"]


def test_without_the_secret_key_no_bundle_is_written(homes, tmp_path, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", str(homes["theirs"]))
    root, target = filled(tmp_path / "carried"), tmp_path / "mysite.bundle"
    with pytest.raises(MirrorError, match="must be signed with the secret key of mirror_bundle_key"):
        mirror_bundle.pack(str(target), str(root), [WHEEL], key(homes))
    assert not list(tmp_path.glob("mysite.*"))


def test_a_bundle_whose_writing_is_killed_has_no_name_until_it_is_complete(homes, tmp_path, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", str(homes["ours"]))
    root, target, number = filled(tmp_path / "carried"), tmp_path / "mysite.bundle", 1

    def write() -> None:
        mirror_bundle.pack(str(target), str(root), [WHEEL], key(homes))

    while killed(write, number, ("rename",)):
        assert not target.exists()
        number += 1
    assert number > 2
    assert unpacked(target, tmp_path / "mirror", key(homes), [])["unpacked"] == [WHEEL]
    assert [path.name for path in tmp_path.glob("mysite*")] == ["mysite.bundle"]


def packages_of(shown: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in shown.items() if name.startswith("rpm/")}


def test_a_run_that_is_killed_at_any_step_leaves_nothing_half_valid_and_the_next_one_finishes(bundle, homes, tmp_path):
    """Each file that has its name is as it was or as it comes. A set is one of both, or is missing between two renames."""
    sets = [packages_of({**CARRIED, RPM: b"old"}), packages_of(CARRIED), {}]
    root, number, was_killed = tmp_path / "mirror", 0, True

    def unpack() -> None:
        mirror_bundle.unpack(str(bundle), str(root), key(homes), ARTIFACTS)

    while was_killed:
        number += 1
        shutil.rmtree(root, ignore_errors=True)
        filled(root, **{RPM: b"old"})
        (root / WHEEL).unlink()
        was_killed = killed(unpack, number)
        assert packages_of(files(root)) in sets
        assert files(root).get(WHEEL) in (None, b"wheel")
        unpack()
        assert files(root) == {**CARRIED, "wheels/other.whl": b"not asked for"}
        assert not (root / ".staging/bundle").exists()
        assert not replaced_directory.is_left(str(root / "rpm/.gpu-el9.old"))
    assert number > 20
