"""--archive: YARN brings the environment to the executors, so their hosts need none. HDFS has it once, by its digest."""

import errno
import functools
import hashlib
import os
import subprocess
import tarfile
import tempfile
import zlib

from ansible.module_utils.hadoop_dl_host import atomic_files, environment_bytes, environment_tree, processes
from ansible.module_utils.hadoop_dl_host.hdfs_command import PUT, Failure, Hdfs, answer
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from tfos_submit.login import WAYS
from tfos_submit.outcome import say


class Store(Hdfs):
    """A directory of HDFS that the user named."""

    log_in = WAYS
    way = "Check that HDFS is up, and that you may write to the directory of --archive."

    def __init__(self, environment_file, names):
        """names: the user's in HDFS. The first one counts without Kerberos."""
        super(Store, self).__init__(environment_file, names[0])
        self.names = set(names)

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

    def found(self, path):
        """The row of -ls of the archive; None if it is missing. A place where others can put one is refused: this user's jobs would run it."""
        row, problem = self.owned(path, self.names)
        if problem:
            raise NotReady(
                "your jobs run what --archive names, so %s. Correct that, or name another directory." % problem
            )
        return row

    def compare(self, path, expected):
        """Compare every byte of the archive with the environment's list of files. expected: path -> (sha256, size)."""
        with open(os.devnull, "wb") as silence:
            process = subprocess.Popen(
                self.command(["-cat", path]),
                env=self.variables(),
                stdout=subprocess.PIPE,
                stderr=silence,
                preexec_fn=os.setsid,
            )
        timer = processes.Timer(PUT, lambda: processes.end_group(process.pid))
        try:
            problem = difference(process.stdout, expected)
        except (IOError, OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
            problem = "cannot be read (%s)" % error
        finally:
            timer.cancel()
            processes.end_group(process.pid)
            process.stdout.close()
            process.wait()
        if problem:
            raise NotReady(
                "%s must have the files of the environment as they were sealed, but %s. Nothing was submitted. Remove it "
                "(hdfs dfs -rm %s), and run again." % (path, problem, path)
            )


def as_bytes(name):
    """A file's name, which tarfile has as bytes on Python 2.7."""
    return name if isinstance(name, bytes) else os.fsencode(name)  # novermin


def difference(stream, expected):
    """How an archive differs from the list of files; None if it does not."""
    missing = set(expected)
    archive = tarfile.open(fileobj=stream, mode="r|gz")
    for entry in archive:
        name = as_bytes(entry.name)
        sha256, size = expected.get(name, (None, 0))
        digest = hashlib.sha256()
        if entry.issym():
            digest.update(b"link to " + as_bytes(entry.linkname))
        elif entry.isreg() and entry.size == size:
            for chunk in iter(functools.partial(archive.extractfile(entry).read, 1 << 20), b""):
                digest.update(chunk)
        if name not in missing or digest.hexdigest() != sha256:
            return "has another %s" % os.path.basename(name).decode("utf-8", "replace")
        missing.remove(name)
    return "lacks %d of them" % len(missing) if missing else None


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
    for relative in sorted(listed(environment)):
        name = relative if isinstance(relative, str) else os.fsdecode(relative)  # novermin (Python 3 alone comes here)
        archive.add(os.path.join(environment, name), name, recursive=False, filter=ownerless)
    archive.close()
    packed.close()


def listed(environment, sha256=None):
    """path -> (sha256, size) of the environment's sealed files."""
    return environment_bytes.read_manifest(os.path.join(environment, environment_tree.STATE, "files.txt"), sha256)


def note_of(path):
    """The file of this user that says which archive was compared: an environment with CUDA has some GB."""
    return os.path.join(os.path.expanduser("~"), ".cache", "tfos-submit", os.path.basename(path))


def compared_before(row):
    """Whether the archive was compared since it was written. row: of -ls, with its size and time."""
    try:
        with open(note_of(row[-1])) as note:
            return os.fstat(note.fileno()).st_uid == os.geteuid() and note.read() == " ".join(row)
    except (IOError, OSError):
        return False


def remember(row):
    note = note_of(row[-1])
    try:
        if not os.path.isdir(os.path.dirname(note)):
            os.makedirs(os.path.dirname(note), 0o700)
        atomic_files.write_whole(note, " ".join(row).encode("utf-8"))
    except (IOError, OSError):
        return  # without a home the next job compares again


def ownerless(entry):
    entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "", ""
    entry.mode = 0o755 if entry.mode & 0o111 else 0o644
    return entry


def kept(directory, environment, environment_file, names):
    """The address of the environment's archive below a directory of HDFS, in which it is from now on. names: the user's in HDFS."""
    seal = environment_tree.seal_of(environment)
    digest = seal.get("contents_sha256") or seal.get("files_sha256", "")  # of an earlier version's the latter alone
    name = os.path.basename(environment)
    store = Store(environment_file, names)
    path = "%s/%s-%s.tar.gz" % (directory, name, digest[:12])
    try:
        row = store.found(path)
        if row is None:
            say("packing %s into %s; later jobs find it there" % (name, path))
            damage = environment_bytes.deep_problem(environment)
            if damage:
                raise NotReady(
                    "%s must be as it was sealed, but is not: %s. Ask the operator for ansible-playbook site.yml, which builds it again."
                    % (environment, damage)
                )
            store.must(["-mkdir", "-p", directory])
            store.put_whole(lambda draft: store.put(lambda stream: write_archive(environment, stream), draft), path)
            row = store.found(path)
        if row is None:
            raise NotReady(
                "HDFS must have %s after it was put there, but does not list it. Try: hdfs dfs -ls -d %s" % (path, path)
            )
        if not compared_before(row):
            store.compare(path, listed(environment, seal.get("files_sha256")))
            remember(row)
    except Failure as failure:
        raise NotReady(str(failure))
    return path
