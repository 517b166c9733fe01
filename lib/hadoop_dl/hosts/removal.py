"""The plan of playbooks/remove.yml: which host loses which parts, and every reason against it. It is shown before anything changes.

Pure functions of what the module removal_info answered on each host; the inventory only decides which hosts are read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from ansible.module_utils.hadoop_dl_host import removal_reader

from hadoop_dl.data import typed
from hadoop_dl.data.cdsw import session_words
from hadoop_dl.data.host_facts import FactsError, Line, Path, Word, read
from hadoop_dl.data.yarn_work import NAMES
from hadoop_dl.plan.model import shorten

GPU = ("nvidia_driver", "cuda", "cudnn", "nccl", "gpu_check")
# Whose ledgers go last. Any other part is the component of its name.
COMPONENTS = {
    "environments": ("deeplearning_command", "tensorflowonspark", "hadoop_client"),
    "gpu": GPU,
    "build": ("tensorflow_build",),
    "hdfs": (),
}
OTHER_TAGS = ("all", "always", "molecule-notest", "notest")  # Ansible's own, and what molecule skips in every playbook
PARTS: tuple[str, ...] = removal_reader.PARTS


Cell = Annotated[str, typed.Sentence(200)]
Number = Annotated[int, typed.Number(0, 2**31)]
NEVER_NONE = ("gpu", "applications")  # empty mappings


class Misused(ValueError):
    """An input that cannot be used; the text is the message."""


@dataclass(frozen=True)
class Request:
    """The operator's inputs."""

    parts: tuple[str, ...] = PARTS
    hdfs_files: bool = True
    hdfs_by_site: bool = False  # hadoop_login: none
    forced: bool = False
    confirmed: bool = False
    restart_allowed: bool = False  # of CDSW, whose settings need it
    yarn_restart_allowed: bool = False
    checking: bool = False


@dataclass(frozen=True)
class Hdfs:
    files: tuple[Path, ...]


@dataclass(frozen=True)
class YarnGpu:
    files: tuple[Path, ...]
    services: tuple[Literal["resourcemanager", "nodemanager"], ...]

    @property
    def text(self) -> str:
        restart = f"; {' and '.join(NAMES[service] for service in self.services)} restart" if self.services else ""
        return (
            f"settings for GPUs of {', '.join(self.files)}, as before{restart}"
            if self.files
            else f"its record{restart}"
        )


@dataclass(frozen=True)
class Cdsw:
    keys: tuple[Word, ...]
    cloudera_manager: Mapping[Line, Cell | None]
    release: Word
    master: bool
    sessions: Number | None

    @property
    def text(self) -> str:
        if self.cloudera_manager:
            listed = json.dumps(self.cloudera_manager, sort_keys=True)
            return f"its record; Cloudera Manager keeps {listed}: set there what it must be, and restart CDSW"
        keys = ", ".join(self.keys)
        restart = f"CDSW restarts ({session_words(self.sessions)})"
        return f"{keys} of cdsw.conf, as before; {restart}" if keys else "its record"


@dataclass(frozen=True)
class Bazel:
    versions: tuple[Word, ...]

    @property
    def text(self) -> str:
        return ", ".join(self.versions) or "its repository"


@dataclass(frozen=True)
class User:
    """A process that uses something of this project; its title is whatever its owner wrote there."""

    pid: Number
    user: Cell
    command: Cell


@dataclass(frozen=True)
class Answer:
    """The answer of the module removal_info on a host. None or empty: the host has nothing of this part."""

    environments: tuple[Cell, ...]
    hdfs: Hdfs
    gpu: Mapping[Word, Cell]
    yarn_gpu: YarnGpu | None
    cdsw: Cdsw | None
    container_runtime: tuple[Cell, ...]
    build: tuple[Cell, ...]
    bazel: Bazel | None
    mirror: tuple[Cell, ...]
    stays: tuple[Cell, ...]
    users: tuple[User, ...]
    applications: Mapping[Line, Cell]


def read_answer(answer: Any) -> Answer:
    parts = answer.items() if isinstance(answer, Mapping) else ()
    return read(Answer, {name: value if value != {} or name in NEVER_NONE else None for name, value in parts})


@dataclass
class Removal:
    """The plan: for each host its parts (`hdfs` among them), the text that shows it, and the sentences against it."""

    hosts: dict[str, list[str]] = field(default_factory=dict)
    text: str = ""
    problems: list[str] = field(default_factory=list)
    cdsw_master: str = ""

    @property
    def components(self) -> dict[str, list[str]]:
        return {
            name: [component for part in parts for component in COMPONENTS.get(part, (part,))]
            for name, parts in self.hosts.items()
        }

    @property
    def empty(self) -> bool:
        return not any(self.hosts.values())


def parts_of(setting: Any, tags: Sequence[str] = (), skipped: Sequence[str] = ()) -> tuple[str, ...]:
    """remove_parts (a list, or names with commas, as -e gives them), or --tags, less --skip-tags; empty for all."""
    listed = setting.replace(",", " ").split() if isinstance(setting, str) else setting
    tagged, left_out = ([tag for tag in given_tags if tag not in OTHER_TAGS] for given_tags in (tags, skipped))
    for name, value, names in (
        ("remove_parts", setting, listed),
        ("--tags", tagged, tagged),
        ("--skip-tags", left_out, left_out),
    ):
        if not isinstance(names, list) or [word for word in names if word not in PARTS]:
            raise Misused(
                f"{name} must name some of {', '.join(PARTS)}, but is {value!r}. Correct it, or leave it out to remove all. No host was changed."
            )
    parts = set(listed or PARTS) & set(tagged or PARTS) - set(left_out)
    if not parts:
        raise Misused(
            "remove_parts, --tags and --skip-tags must leave some part to remove, but leave none. No host was changed."
        )
    return tuple(part for part in PARTS if part in parts)


def make(answers: Mapping[str, Any], unread: Sequence[str], edge_nodes: Sequence[str], request: Request) -> Removal:
    """answers: what each host has. unread: hosts of the run that did not answer. edge_nodes: all that the inventory has."""
    host_answers, senseless = {}, {}
    for name, raw_answer in answers.items():
        try:
            host_answers[name] = read_answer(raw_answer)
        except FactsError as error:
            senseless[name] = str(error)
    removal = Removal()
    absent = sorted(set(edge_nodes) - set(host_answers))
    hdfs = request.hdfs_files and not absent and not request.hdfs_by_site
    for name, answer in host_answers.items():
        removal.hosts[name] = [part for part in request.parts if getattr(answer, part)]
        if "environments" in removal.hosts[name] and answer.hdfs.files and hdfs:
            removal.hosts[name].insert(0, "hdfs")
    removal.cdsw_master = next(
        (name for name, answer in host_answers.items() if answer.cdsw and answer.cdsw.master), ""
    )
    removal.text = "\n".join(lines(removal, host_answers, senseless, unread, absent if request.hdfs_files else []))
    removal.text += by_site(host_answers) if request.hdfs_by_site and "environments" in request.parts else ""
    removal.problems = list(problems(removal, host_answers, request))
    return removal


def described(answer: Answer, part: str) -> str:
    """One part of the removal, in a line."""
    content: Any = answer.hdfs.files if part == "hdfs" else getattr(answer, part)
    if part == "gpu":
        return ", ".join(content[role] for role in GPU if role in content)
    return ", ".join(content) if isinstance(content, tuple) else content.text if content else ""


def owner(path: str) -> str:
    """Return what a path that stays belongs to. Engine images have a playbook of their own."""
    if path.rpartition("/")[2] in ("engines", "cdsw_engine.json"):
        return "engine images: playbooks/cdsw_engine.yml -e cdsw_engine_state=absent"
    return "not managed by this project"


def lines(
    removal: Removal,
    answers: Mapping[str, Answer],
    senseless: Mapping[str, str],
    unread: Sequence[str],
    absent: Sequence[str],
) -> Iterator[str]:
    """The plan for the terminal; hosts that are alike are one entry."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, parts in removal.hosts.items():
        rows = [(part, described(answers[name], part)) for part in parts]
        rows += [("stays", f"{path} ({owner(path)})") for path in answers[name].stays]
        alike.setdefault(tuple(rows), []).append(name)
    changing = sum(1 for parts in removal.hosts.values() if parts)
    yield f"REMOVE: {changing} of {len(removal.hosts) + len(senseless) + len(unread)} hosts have something to remove."
    for kind, hosts in alike.items():
        yield f"  {shorten(hosts)}:" + ("" if kind else " nothing")
        yield from (f"    {part:<13} {text}" for part, text in kind)
    yield from (f"  {name}: {reason} Nothing is removed there." for name, reason in senseless.items())
    for name in unread:
        yield f"  {name}: did not answer; nothing is removed there. Run it again with --limit {name} when it answers."
    hdfs_paths = sorted({path for answer in answers.values() for path in answer.hdfs.files})
    if absent and hdfs_paths:
        yield f"  HDFS: {', '.join(hdfs_paths)} stays, because {shorten(list(absent))} of edge_nodes did not answer or is not in this run."


def by_site(answers: Mapping[str, Answer]) -> str:
    """The command by which the site removes files from HDFS itself."""
    files = sorted({path for answer in answers.values() for path in answer.hdfs.files})
    return (
        f"\n  HDFS: hadoop_login is none. Remove there yourself: hdfs dfs -rm -skipTrash {' '.join(files)}"
        if files
        else ""
    )


def problems(removal: Removal, answers: Mapping[str, Answer], request: Request) -> Iterator[str]:
    if not request.forced:
        for name, parts in removal.hosts.items():
            if "environments" in parts:
                yield from (used(name, user) for user in answers[name].users)
        yield from queued(removal, answers)
    yarn = [name for name, parts in removal.hosts.items() if "yarn_gpu" in parts]
    if yarn and not request.yarn_restart_allowed and not request.checking:
        yield (
            f"Removing YARN's settings for GPUs restarts its daemons on {shorten(yarn)}, but yarn_gpu_restart_allowed is not true. Add "
            "-e yarn_gpu_restart_allowed=true in a window for it, or leave YARN out with --skip-tags yarn_gpu."
        )
    cdsw = {name: answers[name].cdsw for name, parts in removal.hosts.items() if "cdsw" in parts}
    restarting = [name for name, node in cdsw.items() if node and node.keys]
    if restarting and not request.restart_allowed and not request.checking:
        yield (
            f"Removing CDSW's settings restarts CDSW on {shorten(restarting)}, but cdsw_restart_allowed is not true. Add -e cdsw_restart_allowed=true in "
            "a window in which sessions may end, or leave CDSW out with --skip-tags cdsw."
        )
    unknown = [name for name, node in cdsw.items() if node and node.keys and not (node.master or node.release)]
    if unknown:
        yield (
            f"CDSW's release must be known to let {shorten(unknown)} join its master again, but the package or MASTER_IP cannot be read there. Restore "
            "the lines of cdsw.conf yourself (/opt/deeplearning/state/cdsw.json has them), or leave CDSW out with --skip-tags cdsw."
        )
    if not removal.empty and not request.confirmed and not request.checking:
        yield (
            "Removing must be confirmed, but remove_confirmed is not true. Read what is listed above, and run the same command with "
            "-e remove_confirmed=true."
        )


def used(name: str, user: User) -> str:
    return (
        f"An environment must not be in use when it is removed, but on {name} process {user.pid} of {user.user} "
        f"({user.command}) uses it. Let it end, or add -e remove_forced=true."
    )


def queued(removal: Removal, answers: Mapping[str, Answer]) -> Iterator[str]:
    """YARN's answers, each once: all hosts of a cluster query the same ResourceManager."""
    hosts_by_reason: dict[tuple[str, str], list[str]] = {}
    for name, parts in removal.hosts.items():
        for environment, reason in answers[name].applications.items() if "environments" in parts else ():
            hosts_by_reason.setdefault((environment, reason), []).append(name)
    for (environment, reason), names in hosts_by_reason.items():
        yield (
            f"{environment} must not be needed by YARN when it is removed from {shorten(names)}, but {reason}. Let the application end "
            "(yarn application -list), or add -e remove_forced=true."
        )
