"""Fill a mirror directory with artifacts that are known by sha256. Python 3.6 and later, standard library only.

Runs on the mirror host (module mirror_artifacts) and on the controller (hadoop_dl.cli.mirror). A file appears under its
final name only when its sha256 is the expected one; until then it is a part under .staging, from which the next run
continues. An artifact is a mapping: folder (wheels, files), name, sha256, size (None: not known), and where it comes from:
project (of the package index), url (Maven Central's may be replaced: MAVEN_CENTRAL_URL), or built (by the site: never fetched).
"""

import errno
import fcntl
import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
from concurrent.futures import ThreadPoolExecutor, as_completed

from . import atomic_files, downloads, mirror_pages
from . import mirror_index as index

REPORT_EVERY = 5  # seconds
LOCK_WAIT = 900  # seconds for another run that fills the same directory


# --- one file ------------------------------------------------------------------------------------------------------


def download(url, part, size, report=None):
    """Append to `part` what it lacks. Raises what the network raises, with `gained` set when bytes arrived."""
    have = os.path.getsize(part) if os.path.exists(part) else 0
    if size is not None and have >= size:
        if have == size:
            return
        os.unlink(part)
        have = 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = "bytes=%d-" % have
    start = have
    try:
        with index.open_url(url, headers) as answer:
            resumed = answer.getcode() == 206 and answer.headers.get("Content-Range", "").startswith("bytes %d-" % have)
            with open(part, "ab" if resumed else "wb") as handle:
                start = have = have if resumed else 0

                def arrived(chunk):
                    nonlocal have
                    have += len(chunk)
                    if report:
                        report(have)

                limit = downloads.LARGEST if size is None else size - have  # one byte more: the hash says so
                downloads.copy(answer, handle, limit, arrived)
                os.fsync(handle.fileno())
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # the part is longer than the file: begin again
            os.unlink(part)
            retry = EOFError("the server does not continue the part")
            retry.gained = False  # type: ignore[attr-defined]
            raise retry from error
        raise
    except (http.client.HTTPException, socket.timeout, ssl.SSLError, ConnectionError, EOFError) as error:
        error.gained = have > start  # type: ignore[union-attr]
        raise


def refused(artifact, part, url):
    """The message for bytes that are not the artifact."""
    with open(part, "rb") as handle:
        head = handle.read(512).lstrip().lower()
    size = os.path.getsize(part)
    if head.startswith((b"<!doctype html", b"<html", b"<?xml")):
        return (
            "%s is required, but %s answers with a web page instead (a login page or a captive portal). Log in, or set the "
            "proxy in mirror_environment, then run the same command again."
            % (artifact["name"], downloads.without_secrets(url))
        )
    return (
        "%s with sha256 %s is required, but %s delivered %d bytes with sha256 %s. They were thrown away. Run the same command "
        "again; if it stays so, something between here and the index changes files."
        % (artifact["name"], artifact["sha256"], downloads.without_secrets(url), size, atomic_files.sha256_of(part))
    )


def fetch_one(artifact, root, index_url=None, report=None, pause=time.sleep):
    """Store one artifact under its final name, or raise MirrorError and leave no final name."""
    target = place_of(artifact, root)
    part = os.path.join(root, ".staging", artifact["sha256"])
    if artifact.get("built"):
        raise index.MirrorError(
            "%s is a wheel that this site builds, and %s does not have it. Publish it: playbooks/build_tensorflow.yml; what is built is not built again."
            % (artifact["name"], root)
        )
    url = artifact["url"] if "url" in artifact else index.find_offer(artifact, index_url, pause)["url"]
    url = index.through_maven_mirror(url)
    for fresh in (False, True):
        resumed = os.path.exists(part)
        index.patiently(artifact["name"], url, lambda: download(url, part, artifact.get("size"), report), pause)
        if atomic_files.sha256_of(part) == artifact["sha256"]:
            os.chmod(part, 0o644)
            os.rename(part, target)
            return
        message = refused(artifact, part, url)
        os.unlink(part)
        if fresh or not resumed:  # an old part may be to blame: once more from the start
            raise index.MirrorError(message)


# --- the directory -------------------------------------------------------------------------------------------------


def check_artifact(artifact):
    """Names come from locks; a name that would leave the directory is refused all the same."""
    for key in ("folder", "name"):
        if not re.match(r"^[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*$", artifact[key]) or (
            key == "name" and "/" in artifact[key]
        ):
            raise index.MirrorError("A plain file name is required, but %r is none. Correct the lock." % artifact[key])
    if not re.match(r"^[0-9a-f]{64}$", artifact["sha256"]):
        raise index.MirrorError("%s needs a sha256 of 64 hex digits. Correct the lock." % artifact["name"])


def place_of(artifact, root):
    return os.path.join(root, artifact["folder"], artifact["name"])


def problem_of(artifact, root):
    """None if the mirror holds the artifact; else missing, or what is wrong with the file."""
    path = place_of(artifact, root)
    if not os.path.isfile(path):
        return "missing"
    size = os.path.getsize(path)
    if artifact.get("size") is not None and size != artifact["size"]:
        return "%d bytes instead of %d" % (size, artifact["size"])
    return None if atomic_files.sha256_of(path) == artifact["sha256"] else "other bytes than the lock's"


def problems_of(artifacts, root):
    """name -> problem, for those that the mirror does not hold."""
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda artifact: problem_of(artifact, root), artifacts))
    return {artifact["name"]: answer for artifact, answer in zip(artifacts, answers) if answer}


def unique(artifacts):
    """The artifacts of several stacks without those that they share."""
    unique_artifacts = {}
    for artifact in artifacts:
        check_artifact(artifact)
        key = (artifact["folder"], artifact["name"])
        if key in unique_artifacts and unique_artifacts[key]["sha256"] != artifact["sha256"]:
            raise index.MirrorError(
                "%s must have one sha256, but it is named with two. Correct mirror_files, or write the locks again: scripts/stack lock"
                % artifact["name"]
            )
        unique_artifacts[key] = artifact
    return [unique_artifacts[key] for key in sorted(unique_artifacts)]


def megabytes(size):
    return "%.1f MB" % (size / 1e6)


def check_space(artifacts, root):
    required_bytes = sum(artifact.get("size") or 0 for artifact in artifacts)
    for artifact in artifacts:
        part = os.path.join(root, ".staging", artifact["sha256"])
        required_bytes -= os.path.getsize(part) if os.path.exists(part) else 0
    status = os.statvfs(root)
    free = status.f_bavail * status.f_frsize
    if required_bytes > free:
        raise index.MirrorError(
            "%s are required under %s, but %s are free. Free some space there, or set mirror_root to a larger file system; what "
            "is already fetched stays." % (megabytes(required_bytes), root, megabytes(free))
        )


def manifest_of(root):
    try:
        with open(os.path.join(root, "manifest.json"), encoding="utf-8") as handle:
            return dict(json.load(handle)["artifacts"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def write_manifest(artifacts, root):
    """Add verified artifacts to manifest.json, drop those that are gone, and write the index; True when one changed."""
    rows = {path: entry for path, entry in manifest_of(root).items() if os.path.isfile(os.path.join(root, path))}
    for artifact in artifacts:
        path = artifact["folder"] + "/" + artifact["name"]
        size = os.path.getsize(place_of(artifact, root))
        rows[path] = {"sha256": artifact["sha256"], "size": size}
    text = atomic_files.json_text({"schema": 1, "artifacts": rows})
    path = os.path.join(root, "manifest.json")
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as handle:
            if handle.read() == text:
                return mirror_pages.write(root, rows)
    draft = os.path.join(root, ".staging", "manifest.json")
    atomic_files.write_whole(path, text.encode("utf-8"), draft)
    mirror_pages.write(root, rows)
    return True


class only_one(object):  # reads as a sentence: with only_one(root)
    """Two runs that fill one directory take turns."""

    def __init__(self, root, progress=None):
        self.path = os.path.join(root, ".staging", "lock")
        self.progress = progress

    def __enter__(self):
        self.handle = open(self.path, "a+")
        start = time.monotonic()
        is_announced = False
        while True:
            try:
                fcntl.lockf(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except OSError:
                if time.monotonic() - start > LOCK_WAIT:
                    raise index.MirrorError(
                        "One run at a time must fill the mirror, but another one has held %s for %d s. Wait for it, "
                        "or find it with: fuser %s" % (self.path, LOCK_WAIT, self.path)
                    ) from None
                if self.progress and not is_announced:
                    self.progress("waiting for another run that fills this mirror")
                    is_announced = True
                time.sleep(1)

    def __exit__(self, *_):
        self.handle.close()


def prepare(root, artifacts=()):
    """The folders that a mirror has. Only the staging folder is closed to others."""
    for folder, mode in [(".", 0o755), (".staging", 0o700)] + [(a["folder"], 0o755) for a in artifacts]:
        path = os.path.normpath(os.path.join(root, folder))
        if not os.path.isdir(path):
            os.makedirs(path)
            os.chmod(path, mode)


def fetch_artifacts(artifacts, root, index_url=None, progress=None, workers=2, deadline=None, pause=time.sleep):
    """Make the mirror hold these artifacts; returns the names that were fetched. All problems come in one MirrorError."""
    say = progress or (lambda line: None)
    root = str(root)
    artifacts = unique(artifacts)
    try:
        prepare(root, artifacts)
        with only_one(root, say):
            reasons = problems_of(artifacts, root)
            missing = [artifact for artifact in artifacts if artifact["name"] in reasons]
            missing.sort(key=lambda artifact: -(artifact.get("size") or 0))  # the large ones first: they decide the end
            check_space(missing, root)
            problems = _fetch_all(missing, root, index_url, say, workers, deadline, pause)
            intact_artifacts = [artifact for artifact in artifacts if artifact["name"] not in problems]
            write_manifest(intact_artifacts, root)
    except OSError as error:
        raise index.MirrorError(disk_problem(error, root)) from error
    if problems:
        raise index.MirrorError(
            " ".join([problems[name] for name in sorted(problems)])
            + (
                " %d other artifacts were fetched and stay." % (len(missing) - len(problems))
                if len(missing) > len(problems)
                else ""
            )
        )
    return [artifact["name"] for artifact in missing]


def disk_problem(error, root):
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            "The file system of %s is full. Free some space there, then run the same command again: it continues."
            % root
        )
    return "The mirror's directory %s must be writable, but the system reports: %s. Correct that, then run again." % (
        root,
        error,
    )


def _fetch_all(missing, root, index_url, say, workers, deadline, pause):
    problems = {}
    counter = [0]
    guard = threading.Lock()
    end = time.monotonic() + deadline if deadline else None

    def one(artifact):
        start = last = time.monotonic()

        def report(have):
            nonlocal last
            now = time.monotonic()
            if end and now > end:
                raise index.MirrorError(
                    "%s was not complete when the time was over. Run the same command again: it continues."
                    % artifact["name"]
                )
            if now - last >= REPORT_EVERY:
                last = now
                total = artifact.get("size")
                say("%s: %s%s" % (artifact["name"], megabytes(have), " of " + megabytes(total) if total else ""))

        fetch_one(artifact, root, index_url, report, pause)
        with guard:
            counter[0] += 1
            size = os.path.getsize(place_of(artifact, root))
            say(
                "[%d/%d] %s, %s in %.1f s"
                % (counter[0], len(missing), artifact["name"], megabytes(size), time.monotonic() - start)
            )

    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(one, artifact): artifact for artifact in missing}
        for future in as_completed(running):
            name = running[future]["name"]
            try:
                future.result()
            except index.MirrorError as error:
                problems[name] = str(error)
            except OSError as error:
                problems[name] = disk_problem(error, root)
            if name in problems:
                say("failed: %s" % problems[name])
    return problems
