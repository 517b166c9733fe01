"""A mirror's artifacts and sets of packages as one signed file. Python 3.6 and later, standard library only.

A tar file: bundle.json (path, sha256 and size of every file, in their order), bundle.json.asc (its OpenPGP signature), then the
files. Nothing is written before the signature is checked with the given key alone, and nothing gets its name before the
last byte of the bundle is. An artifact appears by a rename, a set of packages as package_sets.Maker publishes one.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile

from . import atomic_files, mirror_files, processes, replaced_directory
from .mirror_index import MirrorError

MANIFEST, SIGNATURE = "bundle.json", "bundle.json.asc"
LIMITS = {MANIFEST: 50 * 10**6, SIGNATURE: 10**5}  # bytes
PATH = re.compile(r"^(wheels|files|rpm/[A-Za-z0-9][\w.-]*)(/[A-Za-z0-9][\w.+^~-]*)+$")
SHA256 = re.compile(r"^[0-9a-f]{64}$")
UNCHANGED = "Nothing of the mirror was changed."
GPG_TIME = 300  # seconds


def gpg(home, *arguments):
    """Run gpg in the caller's key ring, or in a directory of its own."""
    own = ["--homedir", home] if home else []
    return processes.run(["gpg", "--batch", "--no-tty", "--status-fd", "1"] + own + list(arguments), GPG_TIME)


def trust(home, key):
    """Give a new key ring these public keys alone; their fingerprints."""
    path = os.path.join(home, "key.asc")
    atomic_files.write_whole(path, key.encode("utf-8"))
    answer = gpg(home, "--import", path)
    fingerprints = re.findall(r"^\[GNUPG:\] IMPORT_OK \d+ ([0-9A-F]+)", answer.output, re.M)
    if answer.status != 0 or not fingerprints:
        raise MirrorError(
            "mirror_bundle_key must be an OpenPGP public key, but gpg cannot read it: %s. %s"
            % (answer.problem, UNCHANGED)
        )
    return fingerprints


def check(home, manifest, signature):
    """Refuse what none of the trusted keys signed."""
    for name, data in ((MANIFEST, manifest), (SIGNATURE, signature)):
        atomic_files.write_whole(os.path.join(home, name), data)
    answer = gpg(home, "--verify", os.path.join(home, SIGNATURE), os.path.join(home, MANIFEST))
    states = re.findall(r"^\[GNUPG:\] ([A-Z]+)", answer.output, re.M)
    if answer.status != 0 or "GOODSIG" not in states or "VALIDSIG" not in states:
        raise MirrorError(
            "The bundle must be signed with mirror_bundle_key, but gpg reports: %s. %s Compare the key with that of the machine which wrote the "
            "bundle." % (" ".join((answer.error or answer.problem or "no good signature").split())[-300:], UNCHANGED)
        )


@contextlib.contextmanager
def key_ring():
    """A directory for gpg, which this account alone may enter."""
    home = tempfile.mkdtemp()
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


# --- write ---------------------------------------------------------------------------------------------------------


def paths_of(root, artifacts, sets):
    """The files of artifacts and of complete sets, relative to the root."""
    paths = ["%(folder)s/%(name)s" % artifact for artifact in artifacts]
    for name in sets:
        place = os.path.join(root, "rpm", name)
        for parent, _, names in os.walk(place):
            paths += [os.path.relpath(os.path.join(parent, file), root) for file in names]
    return sorted(paths)


def pack(target, root, paths, key):
    """Write the bundle and sign it with the secret key that belongs to `key`, which is the public one; the fingerprint."""
    draft = target + ".part"
    try:
        with key_ring() as home, open(draft, "wb") as stream:
            fingerprints = trust(home, key)
            rows = [row_of(root, path) for path in paths]
            manifest = atomic_files.json_text({"schema": 1, "files": rows}).encode("utf-8")
            signature, signer = signed(home, manifest, fingerprints)
            check(home, manifest, signature)
            with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for name, data in ((MANIFEST, manifest), (SIGNATURE, signature)):
                    add(archive, name, len(data), io.BytesIO(data))
                for row in rows:
                    with open(os.path.join(root, row["path"]), "rb") as file:
                        add(archive, row["path"], row["size"], file)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(draft, target)
        atomic_files.sync_path(os.path.dirname(os.path.abspath(target)))
    except (OSError, tarfile.TarError) as error:
        raise MirrorError(
            "The bundle %s must be written of %s, but: %s. Free some space or correct that, then run again."
            % (target, root, error)
        ) from error
    finally:
        replaced_directory.discard(draft)
    return signer


def row_of(root, path):
    if not PATH.match(path):
        raise MirrorError("A mirror's files must have plain names, but there is %r. Remove it." % path)
    file = os.path.join(root, path)
    return {"path": path, "sha256": atomic_files.sha256_of(file), "size": os.path.getsize(file)}


def add(archive, name, size, stream):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    archive.addfile(entry, stream)


def signed(home, manifest, fingerprints):
    """The signature by the first of these keys whose secret one is in the caller's key ring, and its fingerprint."""
    data, signature, problem = os.path.join(home, MANIFEST), os.path.join(home, SIGNATURE), None
    atomic_files.write_whole(data, manifest)
    for fingerprint in fingerprints:
        replaced_directory.discard(signature)
        answer = gpg(None, "--armor", "--local-user", fingerprint, "--output", signature, "--detach-sign", data)
        if answer.status == 0:
            with open(signature, "rb") as stream:
                return stream.read(), fingerprint
        problem = " ".join((answer.error or answer.problem).split())[-300:]
    raise MirrorError(
        "The bundle must be signed with the secret key of mirror_bundle_key (%s), but gpg reports: %s. Import it here (gpg --import), or make a key "
        "(gpg --quick-generate-key NAME) and let mirror_bundle_key name its public one (gpg --armor --export NAME). No bundle was written."
        % (", ".join(fingerprints), problem)
    )


# --- read ----------------------------------------------------------------------------------------------------------


def unpack(source, root, key, artifacts=(), dry=False):
    """Make the mirror hold the bundle's files; the paths that it lacked. `artifacts` must be in the bundle, or it is another site's."""
    try:
        with tarfile.open(source, mode="r:") as archive:
            rows = rows_of(archive, key)
            require(rows, artifacts)
            if dry:
                return missing(rows, root)
            mirror_files.prepare(root)
            with mirror_files.only_one(root):
                replaced_directory.discard(staging_of(root))  # of a run that was killed
                for place in places_of(rows):
                    replaced_directory.recover(*exchanged(root, place))
                lacking = missing(rows, root)
                if lacking:
                    fill(archive, rows, lacking, root)
                mirror_files.write_manifest(
                    [artifact_of(row) for row in rows if not row["path"].startswith("rpm/")], root
                )
                return lacking
    except (OSError, EOFError, tarfile.TarError) as error:
        if isinstance(error, OSError) and error.filename != source:
            raise MirrorError(mirror_files.disk_problem(error, root)) from error
        raise MirrorError(
            "The bundle %s must be a complete file that can be read, but: %s. %s Compare its size and sha256 with those of the machine which wrote "
            "it, and copy it again." % (source, error, UNCHANGED)
        ) from error


def rows_of(archive, key):
    """What the signed list has, once its signature was checked."""
    texts = [member(archive, name, LIMITS[name]).read() for name in (MANIFEST, SIGNATURE)]
    with key_ring() as home:
        trust(home, key)
        check(home, *texts)
    try:
        rows = json.loads(texts[0].decode("utf-8"))["files"]
        well_formed = all(
            PATH.match(row["path"]) and SHA256.match(row["sha256"]) and isinstance(row["size"], int) for row in rows
        )
    except (ValueError, KeyError, TypeError):
        rows, well_formed = [], False
    if not well_formed or len(set(row["path"] for row in rows)) != len(rows):
        raise MirrorError("The bundle must be of this release, but its list has another form. %s" % UNCHANGED)
    return rows


def member(archive, name, limit):
    """The next file of the archive, which must be this one."""
    entry = archive.next()
    if entry is None or entry.name != name or not entry.isreg() or entry.size > limit:
        raise tarfile.ReadError("%s is required next, but there is %s" % (name, entry.name if entry else "the end"))
    return archive.extractfile(entry)


def require(rows, artifacts):
    held = set((row["path"], row["sha256"]) for row in rows)
    lost = [
        "%(folder)s/%(name)s" % item
        for item in artifacts
        if (item["folder"] + "/" + item["name"], item["sha256"]) not in held
    ]
    if lost:
        raise MirrorError(
            "The bundle must have every artifact that the planned hosts need, but lacks %d: %s. It is another site's, or older than this inventory's "
            "stacks. %s Write it again with this inventory: scripts/mirror fetch -i INVENTORY --plan FILE --bundle FILE"
            % (len(lost), ", ".join(lost[:5]), UNCHANGED)
        )


def artifact_of(row):
    folder, _, name = row["path"].rpartition("/")
    return dict(folder=folder, name=name, sha256=row["sha256"], size=row["size"])


def set_of(path):
    """The directory of the set that has this file; empty for an artifact."""
    return "/".join(path.split("/")[:2]) if path.startswith("rpm/") else ""


def places_of(rows):
    return sorted(set(set_of(row["path"]) for row in rows) - {""})


def staging_of(root):
    return os.path.join(root, ".staging", "bundle")


def exchanged(root, place):
    """The directory of a set, and where the older one is during an exchange."""
    return os.path.join(root, place), os.path.join(root, "rpm", ".%s.old" % place.partition("/")[2])


def missing(rows, root):
    """The files that the mirror does not have. A set lacks all of them if one differs or is too many."""

    paths = set(row["path"] for row in rows)
    lacking = set(row["path"] for row in rows if mirror_files.problem_of(artifact_of(row), root))
    more = set(paths_of(root, (), [place.partition("/")[2] for place in places_of(rows)])) - paths
    broken = set(set_of(path) for path in lacking | more) - {""}
    return [row["path"] for row in rows if row["path"] in lacking or set_of(row["path"]) in broken]


def fill(archive, rows, lacking, root):
    """Write what is lacking beside its place, and put everything in its place once the last file was right."""
    staging = staging_of(root)
    mirror_files.check_space([row for row in rows if row["path"] in lacking], root)
    try:
        for row in rows:
            stream = member(archive, row["path"], row["size"])
            if row["path"] in lacking:
                receive(stream, os.path.join(staging, row["path"]), row)
        if archive.next() is not None:
            raise tarfile.ReadError("it has more files than its list")
        atomic_files.sync_tree(staging)
        publish(staging, lacking, root)
    finally:
        replaced_directory.discard(staging)


def receive(stream, path, row):
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with open(path, "wb") as handle:
        for chunk in iter(lambda: stream.read(atomic_files.CHUNK), b""):
            digest.update(chunk)
            handle.write(chunk)
            size += len(chunk)
    if (size, digest.hexdigest()) != (row["size"], row["sha256"]):
        raise tarfile.ReadError("%s has other bytes than its list" % row["path"])
    os.chmod(path, 0o644)


def publish(staging, lacking, root):
    for path in lacking:
        if not set_of(path):
            atomic_files.make_directory(os.path.dirname(os.path.join(root, path)))
            os.rename(os.path.join(staging, path), os.path.join(root, path))
    for place in places_of([{"path": path} for path in lacking]):
        target, old = exchanged(root, place)
        atomic_files.make_directory(os.path.dirname(target))
        replaced_directory.put(os.path.join(staging, place), target, old)
