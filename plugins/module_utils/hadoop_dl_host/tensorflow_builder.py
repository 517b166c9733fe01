"""Build TensorFlow's wheel from a checkout, step by step, and publish it: what the module tensorflow_build runs in the background. Python 2.7 and 3.

Below the root: builds/KEY (log, status, what is being made), source/VERSION and bazel (kept: a build is resumed from them), and
published/KEY (the wheel and its provenance, complete or not there). The key names everything that decides the wheel.
"""

import errno
import json
import os
import re
import shutil
import stat
import time
import traceback

from . import atomic_files, processes, sandbox_build, stray_processes
from .atomic_files import write_json
from .environment_tree import read_json
from .host_system import version_key

SHORT = 600  # seconds for git, configure, and each question about the wheel
TAIL = 64 * 1024  # bytes of a log that are looked at
RESERVED = 256 * 1024  # bytes for the status of a build that fills the disk
# Bytes with which no program can go on; a write that ends in the middle leaves no error of its own.
NOTHING = 1024 * 1024
COUNTERS = re.compile(r"\[([\d,]+) / ([\d,]+)\]")
# A question that configure printed: it asks only if no variable answers, and takes its default at the end of the input.
QUESTIONS = re.compile(
    r"((?:Do you (?:wish|want)|Would you like) to [^?]*\?|Please (?:specify|input|note)[^\n]*?(?=\[Default|\[Leave|Default is|:\s|\n|$))"
)
SYMBOL = re.compile(r"\b(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)*)\b")
KILLED = re.compile(
    r"Killed signal|signal 9|\bKilled\b|OutOfMemoryError|Cannot allocate memory|Server terminated abruptly"
)
STACK = re.compile(
    r"\s+(?:at |File \"|Traceback|\S+ = |_?\w+\()|(?:INFO|WARNING|Loading|Analyzing|DEBUG): |\[[\d,]+ / [\d,]+\]|\t"
)
FULL = re.compile(r"No space left on device|Disk quota exceeded")


class Failed(Exception):
    """Why there is no wheel; what to do next is in the text."""


def tail(path, size=TAIL):
    """The end of a file, as text; empty if it cannot be read."""
    try:
        with open(path, "rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(0, handle.tell() - size))
            return handle.read().decode("utf-8", "replace")
    except (IOError, OSError):
        return ""


def counters(text):
    """bazel's own counters, the last ones of its log: done and known actions; None before there are any."""
    matches = COUNTERS.findall(text)
    return [int(part.replace(",", "")) for part in matches[-1]] if matches else None


def unanswered(output):
    """The questions that configure asked."""
    return [" ".join(question.split()).rstrip(" .:") for question in QUESTIONS.findall(output)]


def published(root, key):
    """The provenance of a published wheel whose bytes are as published; None if there is none."""
    place = os.path.join(root, "published", key)
    provenance = read_json(os.path.join(place, "provenance.json"))
    wheel = os.path.join(place, provenance["wheel"]["name"]) if provenance else ""
    if not provenance or not os.path.isfile(wheel) or atomic_files.sha256_of(wheel) != provenance["wheel"]["sha256"]:
        return None
    return provenance


def last_error(text):
    """The first error of bazel up to its reason: lines of Starlark's and Java's stacks, of progress and of warnings are none."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not STACK.match(line)]
    starts = [number for number, line in enumerate(lines) if re.match(r"(ERROR|FATAL|FAILED)|.*error:", line)]
    return lines[starts[0] :][:6] if starts else lines[-3:]


def missing(text):
    """What to name where bazel could not download."""
    if re.search(r"(?m)^Error in fail: error running 'git|^fatal: unable to access|git (?:fetch|clone)", text):
        return (
            "A host without internet access needs the repository as a directory: tensorflow_build_flags: "
            "['--override_repository=NAME=DIRECTORY']. "
        )
    if re.search(r"Error downloading \[|Unknown host: |Network is unreachable|Connection timed out|GET returned", text):
        return "Name the archive in tensorflow_build_archives: a host without internet access takes it from there. "
    newer = re.search(r"version `(\S+)' not found", text)
    if newer:
        return "A tool of the build was made for a newer system than this host's: it has no %s. " % newer.group(1)
    return ""


class Build(object):
    """One build: its specification, its places, and its steps."""

    STEPS = ("source", "configure", "build", "package", "check", "publish")

    def __init__(self, root, key, spec):
        self.root, self.key, self.spec = root, key, spec
        self.place = os.path.join(root, "builds", key)
        self.log = os.path.join(self.place, "build.log")
        self.source = os.path.join(root, "source", spec["version"])
        self.output = os.path.join(self.place, "wheel")
        self.temporary = os.path.join(self.place, "tmp")
        self.sessions = os.path.join(root, "sessions")
        self.reserve = os.path.join(self.place, "reserve")
        self.started = time.time()

    # --- what others see of it -------------------------------------------------------------------------------------

    def tell(self, state, step, message=""):
        """Write the status; on a full disk what was reserved for it makes room."""
        status = {"state": state, "step": step, "message": message, "key": self.key, "log": self.log}
        path = os.path.join(self.place, "status.json")
        try:
            write_json(path, status)
        except (IOError, OSError):
            if not os.path.exists(self.reserve):
                raise
            os.unlink(self.reserve)
            write_json(path, status)

    def run(self):
        """Run every step; the status tells which step is reached and why the build ended."""
        step = self.STEPS[0]
        try:
            with open(self.reserve, "wb") as handle:
                handle.write(b"\0" * RESERVED)
            for step in self.STEPS:
                self.tell("running", step)
                getattr(self, "do_" + step)()
            os.unlink(self.reserve)
            self.tell("done", step)
        except Failed as problem:
            self.tell("failed", step, str(problem))
        except (IOError, OSError) as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            self.tell("failed", step, self.full() if is_full else "%s: %s" % (self.root, error))
        except Exception:  # nobody else would hear of it
            self.tell("failed", step, traceback.format_exc())

    # --- programs --------------------------------------------------------------------------------------------------

    def ask(self, argv, seconds=SHORT, **more):
        """A program's answer, as the build's user and without a network."""
        return self.call(argv, seconds, None, **more)

    def call(self, argv, seconds, log, variables=None):
        environment = {
            "PATH": ":".join([os.path.dirname(self.spec["bazel"])] + self.spec["path"]),
            "HOME": self.spec["home"],
            "TMPDIR": self.temporary,
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        environment.update(variables or {})
        directory = self.source if os.path.isdir(self.source) else self.place
        prepare = sandbox_build.BuildSandbox(self.spec["user"], log, self.sessions)
        answer = processes.run(argv, seconds, environment, directory=directory, prepare=prepare)
        self.end_leftovers()
        return answer

    def end_leftovers(self):
        """Compilers outlive a bazel that was killed; what they hold and write is the next build's."""
        pids = stray_processes.end(self.sessions, processes.account(self.spec["user"])[1])
        if pids:
            raise Failed(
                "Processes of a program of the build that was killed must end, but cannot be killed: %s. They wait in the kernel; see ps -o pid,stat,wchan,args, "
                "and reboot the host if they stay." % ", ".join(str(pid) for pid in pids[:10])
            )

    def logged(self, argv, seconds, variables=None):
        with open(self.log, "ab") as handle:
            handle.write(("$ %s\n" % " ".join(argv)).encode("utf-8"))
            handle.flush()
            return self.call(argv, seconds, handle.fileno(), variables)

    def need(self, answer, requirement):
        if answer.problem:
            if self.is_full("\n".join((answer.output, answer.error, self.last_logged()))):
                raise Failed(self.full())
            raise Failed("%s, but %s. The log is %s." % (requirement, answer.problem, self.log))
        return answer.output

    def make(self, path):
        """A directory of the build's user."""
        if not os.path.isdir(path):
            os.makedirs(path)
        _, uid, gid = processes.account(self.spec["user"])
        os.chown(path, uid, gid)

    # --- steps -----------------------------------------------------------------------------------------------------

    def do_source(self):
        """The tag's commit, and no other, from the bundle whose sha256 was compared."""
        self.end_leftovers()
        for path in (self.temporary, self.source):
            self.make(path)
        tag, commit = self.spec["tag"], self.spec["commit"]
        git = ["git", "-c", "advice.detachedHead=false"]
        if not os.path.isdir(os.path.join(self.source, ".git")):
            self.need(self.ask(git + ["init", "--quiet"]), "The sources must be in %s" % self.source)
        reference = "+refs/tags/%s:refs/tags/%s" % (tag, tag)
        self.need(
            self.ask(git + ["fetch", "--quiet", "--no-tags", self.spec["bundle"], reference]),
            "%s must have the tag %s" % (self.spec["bundle"], tag),
        )
        revision = self.need(self.ask(git + ["rev-parse", "refs/tags/%s^{commit}" % tag]), "The tag must name a commit")
        if revision != commit:
            raise Failed(
                "The tag %s must be the commit %s, but in %s it is %s. Nothing was built. Get the bundle again from a repository that you trust, or "
                "correct tensorflow_build_commit." % (tag, commit, self.spec["bundle"], revision)
            )
        self.need(self.ask(git + ["checkout", "--quiet", "--force", "--detach", commit]), "The commit must be there")
        self.need(self.ask(git + ["clean", "-fdxq", "-e", "/bazel-*"]), "The sources must be as committed")

    def do_configure(self):
        answer = self.ask([os.path.join(self.source, "configure")], variables=self.spec["answers"])
        with open(self.log, "ab") as handle:
            handle.write(("$ ./configure\n%s\n%s\n" % (answer.output, answer.error)).encode("utf-8"))
        questions = unanswered(answer.output + "\n")
        if questions:
            raise Failed(
                "configure must get every answer from variables, but none answers: %s. Nothing was built. Add the variable to the line's profile in "
                "compat/tensorflow_build.yml or to tensorflow_build_answers." % "; ".join(questions)
            )
        last = [line for line in answer.output.splitlines() if line.strip()][-1:]
        self.need(answer, "configure must succeed (it printed last: %s)" % "".join(last))
        if not os.path.isfile(os.path.join(self.source, ".tf_configure.bazelrc")):
            raise Failed("configure must write .tf_configure.bazelrc, but printed: %s" % answer.output[-500:])

    def bazel(self, command, *arguments):
        start = [self.spec["bazel"], "--batch", "--output_user_root=%s" % os.path.join(self.root, "bazel")]
        return start + [command, "--curses=no", "--color=no"] + list(arguments)

    def do_build(self):
        self.make(os.path.join(self.root, "bazel"))
        argv = self.bazel("build", *(self.spec["flags"] + [self.spec["target"]]))
        answer = self.logged(argv, self.spec["timeout"], self.spec["answers"])
        if answer.problem:
            raise Failed(self.why(answer))

    def why(self, answer):
        """What ended bazel, and what to lower or to free."""
        text = self.last_logged()
        advice = "Run the same command again: what is compiled stays. The log is %s." % self.log
        if answer.late:
            return "bazel did not end within %d s (tensorflow_build_timeout). %s" % (self.spec["timeout"], advice)
        if self.is_full(text):
            return self.full()
        if answer.status == -9 or KILLED.search(text):
            return (
                "The build ran out of memory: bazel or a compiler was killed. Lower tensorflow_build_jobs (now %d), or give the host more memory. %s"
                % (self.spec["jobs"], advice)
            )
        words = "; ".join(last_error(text))[:900].rstrip(".")
        return "bazel ended with status %s: %s. %s%s" % (answer.status, words, missing(text), advice)

    def last_logged(self):
        """What the last program wrote to the log."""
        return tail(self.log).rpartition("\n$ ")[2]

    def is_full(self, text):
        """By what a program said, or by what is left: bazel that unpacks itself does not always say why it cannot."""
        file_system = os.statvfs(self.root)
        return bool(FULL.search(text)) or file_system.f_bavail * file_system.f_frsize < NOTHING

    def full(self):
        return (
            "The file system of %s is full. Free some space there. Run the same command again: what is compiled stays. The log is %s."
            % (self.root, self.log)
        )

    def do_package(self):
        remove(self.output)
        self.make(self.output)
        argv = self.spec["package"]
        if argv:
            argv = [os.path.join(self.source, argv[0])] + argv[1:] + [self.output]
            answer = self.logged(argv, self.spec["timeout"], self.spec["answers"])
            self.need(answer, "The target must make a wheel")
        else:
            house = os.path.join(self.source, os.path.dirname(self.spec["target"].lstrip("/").replace(":", "/")))
            house = os.path.join(self.source, "bazel-bin", os.path.relpath(house, self.source), "wheel_house")
            wheels = [name for name in (os.listdir(house) if os.path.isdir(house) else []) if name.endswith(".whl")]
            # As the build's user: what it made may be a link to what only root can read.
            copy = ["cp", "--"] + [os.path.join(house, name) for name in wheels] + [self.output]
            self.need(self.ask(copy), "The target must make a wheel in %s" % house)
        self.wheel_name()

    def wheel_name(self):
        wheels = [name for name in os.listdir(self.output) if name.endswith(".whl")]
        if len(wheels) != 1:
            raise Failed("The build must make one wheel, but made %s. The log is %s." % (wheels or "none", self.log))
        return wheels[0]

    def do_check(self):
        """In a directory of its own, with the packages of the stack's lock and nothing else."""
        wheel = os.path.join(self.output, self.wheel_name())
        request = os.path.join(self.place, "check.json")
        write_json(request, self.spec["check"])
        python = [self.spec["python"], "-s", "-E"]
        answer = self.ask(python + [self.spec["checker"], wheel, request])
        try:
            self.answers = json.loads(answer.output.splitlines()[-1]) if answer.output else {}
        except ValueError:
            self.answers = {}
        problems = self.answers.get("problems", [answer.problem or "it gave no answer"])
        if problems:
            raise Failed(
                "The wheel must pass its test before it is published, but %s. It is %s; nothing was published. %s"
                % ("; ".join(problems), wheel, answer.error[-300:])
            )

    def symbols(self):
        """The newest version of each library's symbols that a file of the wheel asks for."""
        text = self.need(
            self.ask([self.spec["python"], "-s", "-E", self.spec["checker"], "--symbols", os.path.join(self.output, self.wheel_name())]),
            "The wheel's libraries must be readable",
        )  # fmt: skip
        highest = {}
        for name, version in SYMBOL.findall(text):
            if name not in highest or version_key(highest[name]) < version_key(version):
                highest[name] = version
        return highest

    def do_publish(self):
        built = self.wheel_name()
        name = tagged(built, self.key)
        target = os.path.join(self.root, "published", self.key)
        draft = target + ".new"
        remove(draft)
        os.makedirs(draft, 0o755)
        owner = processes.account(self.spec["user"])[1]
        copy_regular(os.path.join(self.output, built), os.path.join(draft, name), owner)
        path = os.path.join(draft, name)
        provenance = dict(
            self.spec["provenance"],
            schema=1,
            key=self.key,
            symbols=self.symbols(),
            check=self.answers["found"],
            wheel={"name": name, "built_as": built, "sha256": atomic_files.sha256_of(path), "size": os.path.getsize(path)},
            built=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            seconds=int(time.time() - self.started),
        )  # fmt: skip
        write_json(os.path.join(draft, "provenance.json"), provenance)
        atomic_files.sync_path(path)
        remove(target)  # a damaged one: an intact one is not built again
        os.rename(draft, target)
        atomic_files.sync_path(os.path.dirname(target))
        for directory in (self.output, self.temporary):
            remove(directory)


def remove(path):
    """Remove a directory in which an unprivileged user may have put anything: rm follows no link."""
    answer = processes.run(["/bin/rm", "-rf", "--one-file-system", "--", path], SHORT)
    if answer.problem:
        raise Failed("%s must be removed, but %s." % (path, answer.problem))


def copy_regular(source, target, owner):
    """Copy a file of the build's user; a link and a file of somebody else are refused."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
        os.close(descriptor)
        raise Failed("%s must be a file of the user who builds, but is not. Nothing was published." % source)
    with os.fdopen(descriptor, "rb") as source_file, open(target, "wb") as target_file:
        shutil.copyfileobj(source_file, target_file, 1 << 20)
    os.chmod(target, 0o644)


def tagged(name, key):
    """The wheel's file name with a build tag of its key: two builds of one version are two files on a mirror."""
    parts = name[: -len(".whl")].split("-")
    return "-".join(parts[:2] + ["0" + key[:12]] + parts[-3:]) + ".whl"
