# -*- coding: utf-8 -*-
"""--archive: YARN brings the environment to the executors, so their hosts need none. HDFS has it once, by its digest."""

from __future__ import absolute_import, division, print_function

import errno
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
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                self.command(["-put", "-", path]),
                env=self.variables(),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=os.setsid,
            )
            timer = processes.Timer(PUT, lambda: processes.end_group(process.pid))
            try:
                write(process.stdin)
                process.stdin.close()
                process.wait()
            except BaseException as problem:
                if getattr(problem, "errno", None) != errno.EPIPE:
                    processes.end_group(process.pid)
                    raise
                process.wait()  # it reads no more, and says why
            finally:
                timer.cancel()
            if process.returncode:
                output.seek(0)
                words = output.read().decode("utf-8", "replace") or "no answer within %d s" % PUT
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


def write_archive(environment, stream):
    """Write the environment's sealed files as tar.gz: no owners, and the times with which their bytecode is valid."""
    packed = Packed(stream)
    archive = tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT)
    # What was added since the seal is not listed, and stays here.
    for relative in sorted(
        environment_bytes.read_manifest(os.path.join(environment, environment_tree.STATE, "files.txt"))
    ):
        name = relative if isinstance(relative, str) else os.fsdecode(relative)  # novermin (Python 3 alone comes here)
        archive.add(os.path.join(environment, name), name, recursive=False, filter=ownerless)
    archive.close()
    packed.close()


def ownerless(entry):
    entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "", ""
    entry.mode = 0o755 if entry.mode & 0o111 else 0o644
    return entry


def kept(directory, environment, environment_file, user):
    """The address of the environment's archive below a directory of HDFS, in which it is from now on. user: who writes there, without Kerberos."""
    seal = environment_tree.seal_of(environment)
    digest = seal.get("contents_sha256") or seal.get("files_sha256", "")  # of an earlier version's the latter alone
    name = os.path.basename(environment)
    store = Store(environment_file, user or pwd.getpwuid(os.geteuid()).pw_name)
    path = "%s/%s-%s.tar.gz" % (directory, name, digest[:12])
    try:
        if store.has_archive(path):
            return path
        say("packing %s into %s; later jobs find it there" % (name, path))
        damage = environment_bytes.deep_problem(environment)
        if damage:
            raise NotReady(
                "%s must be as it was sealed, but is not: %s. Ask the operator for ansible-playbook site.yml, which builds it again."
                % (environment, damage)
            )
        store.must(["-mkdir", "-p", directory])
        store.put_whole(lambda draft: store.put(lambda stream: write_archive(environment, stream), draft), path)
    except Failure as failure:
        raise NotReady(str(failure))
    return path
