# -*- coding: utf-8 -*-
"""--archive: YARN brings the environment to the executors, so their hosts need none. HDFS has it once, by its digest."""

from __future__ import absolute_import, division, print_function

import hashlib
import os
import pwd
import re
import subprocess
import tarfile
import tempfile
import zlib

from ansible.module_utils.hadoop_dl_host import environment_bytes, environment_tree, processes
from ansible.module_utils.hadoop_dl_host.hdfs_command import ASK, PUT, Failure, Hdfs, answer
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from tfos_submit.login import WAYS
from tfos_submit.outcome import say

ROW = re.compile(r"^[d-][rwxsStT-]{9}")  # of -ls


class Store(Hdfs):
    """A directory of HDFS that the user named."""

    log_in = WAYS
    way = "Check that HDFS is up, and that you may write to the directory of --archive."

    def put(self, write, path):
        """Put what write(stream) writes, without a copy on this host's disk."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                self.command(["-put", "-", path]),
                env=self.variables(),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                preexec_fn=os.setsid,
            )
            timer = processes.Timer(PUT, lambda: processes.end_group(process.pid))
            try:
                write(process.stdin)
                process.stdin.close()
                process.wait()
            except (IOError, OSError):  # it reads no more, and says why
                process.wait()
            except BaseException:
                processes.end_group(process.pid)
                raise
            finally:
                timer.cancel()
            if process.returncode:
                said.seek(0)
                words = said.read().decode("utf-8", "replace") or "no answer within %d s" % PUT
                raise Failure(
                    "`hdfs dfs -put - %s` must work as the user %s, but answered: %s. %s"
                    % (path, self.user, answer(words), self.way)
                )

    def has_archive(self, path):
        """Whether the archive is there. A place in which others can put one is refused: this user's jobs would run it."""
        directory = os.path.dirname(path)
        output = self.run(["-ls", "-d", directory, path], ASK)[1]
        rows = [line.split(None, 7) for line in output.splitlines() if ROW.match(line)]
        modes = dict((row[7], row[0]) for row in rows if len(row) == 8)
        for name, mode in modes.items():
            if "w" in mode[5] + mode[8]:
                raise NotReady(
                    "only its owner may be able to write to %s (--archive), because your jobs run what is there, but its mode is "
                    "%s. hdfs dfs -chmod go-w %s" % (name, mode, name)
                )
        return path in modes


class Packed(object):
    """A stream of gzip, whose bytes depend on the content alone. A half that is left behind writes nothing more, unlike gzip's own."""

    def __init__(self, stream):
        # The fastest compression.
        self.stream, self.packer, self.position = stream, zlib.compressobj(1, zlib.DEFLATED, 31), 0

    def write(self, data):
        self.stream.write(self.packer.compress(data))
        self.position += len(data)

    def tell(self):
        return self.position

    def close(self):
        self.stream.write(self.packer.flush())


class Hashed(object):
    """A file whose bytes are hashed while they are read."""

    def __init__(self, stream):
        self.stream, self.digest = stream, hashlib.sha256()

    def read(self, size):
        try:
            chunk = self.stream.read(size)
        except (
            IOError,
            OSError,
        ) as error:  # of the disk; those of the stream that is written to mean that nobody reads it
            raise ValueError("%s cannot be read: %s" % (text(self.stream.name), error.strerror))
        self.digest.update(chunk)
        return chunk


def text(path):
    """A path as tarfile has it."""
    return path if isinstance(path, str) else os.fsdecode(path)  # novermin (Python 3 alone comes here)


def sealed_files(environment, seal):
    """The list that was made at the seal; ValueError if it is damaged."""
    try:
        path = os.path.join(environment, environment_tree.STATE, "files.txt")
        return environment_bytes.read_manifest(path, seal.get("files_sha256"))
    except (IOError, OSError) as error:
        raise ValueError("files.txt cannot be read: %s" % error.strerror)


def write_archive(environment, rows, stream):
    """Write files of the environment as tar.gz: no owners, and the times with which their bytecode is valid. rows: of environment_bytes."""
    packed = Packed(stream)
    archive = tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT)
    for relative, (sha256, size) in sorted(rows.items()):
        if add(archive, os.path.join(environment.encode("utf-8"), relative), text(relative), size) != sha256:
            raise ValueError("%s has other bytes" % text(relative))
    archive.close()
    packed.close()


def add(archive, path, name, size):
    """Add a file or a link; the sha256 of what was added."""
    try:
        status, link = os.lstat(path), os.path.islink(path)
        content = None if link else open(path, "rb")
    except (IOError, OSError) as error:
        raise ValueError("%s cannot be read: %s" % (name, error.strerror))
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode = status[8], 0o755 if status.st_mode & 0o111 else 0o644
    if link:
        entry.type, entry.linkname = tarfile.SYMTYPE, text(os.readlink(path))
        archive.addfile(entry)
        return environment_bytes.content(path)
    with content:
        if status.st_size != size:
            return ""
        entry.size, hashed = size, Hashed(content)
        archive.addfile(entry, hashed)
        return hashed.digest.hexdigest()


def kept(directory, environment, environment_file, user):
    """The address of the environment's archive below a directory of HDFS, in which it is from now on. user: who writes there, without Kerberos."""
    seal = environment_tree.seal_of(environment)
    digest = seal.get("contents_sha256") or seal.get(
        "files_sha256", ""
    )  # the latter alone if an earlier version sealed it
    store = Store(environment_file, user or pwd.getpwuid(os.geteuid()).pw_name)
    path = "%s/%s-%s.tar.gz" % (directory, os.path.basename(environment), digest[:12])
    try:
        if store.has_archive(path):
            return path
        rows = sealed_files(environment, seal)
        size = sum(size for _, size in rows.values()) >> 20
        say("packing %s (%d MB) into %s; later jobs find it there" % (os.path.basename(environment), size, path))
        store.must(["-mkdir", "-p", directory])
        store.publish(lambda draft: store.put(lambda stream: write_archive(environment, rows, stream), draft), path)
    except Failure as failure:
        raise NotReady(str(failure))
    except ValueError as damage:
        raise NotReady(
            "%s must be as it was sealed, but %s. Ask the operator for ansible-playbook site.yml, which builds it again."
            % (environment, damage)
        )
    return path
