"""Transactions of packages that are only solved, and those of dnf and yum that remove and install at once.

Pure functions: the commands, and messages from what the solver answers.

The modules of dnf and yum cannot remove and install at once; their shells can. Both shells end with status 0 always. They log a line that fails and go
on to the next (dnf/cli/commands/shell.py of https://github.com/rpm-software-management/dnf, shell.py of
https://github.com/rpm-software-management/yum), so that a transaction without a part, or one that only removes, may be left.
So it is solved before it is run.
"""

import fnmatch
import re
from collections.abc import Iterator, Sequence

from hadoop_dl.hosts.os_packages import Package, Source

LOCKS = {"dnf": "/etc/dnf/plugins/versionlock.list", "yum": "/etc/yum/pluginconf.d/versionlock.list"}
# A solution that was declined (dnf/cli/cli.py, yum's cli.py), and nothing to do.
SOLVED = re.compile(r"Operation aborted\.|Exiting on user command|nothing to do", re.I)
REASON = re.compile(r"^ ?(?:Error:|Problem|No match for argument|No package ).*(?:\n[ \t]+\S.*)*", re.M)
OWN_LOCKS = re.compile(r"^# BEGIN deeplearning .*?^# END deeplearning [^\n]*$", re.M | re.S)
ROW = re.compile(r"^ (\S+)\s+(\S+)\s+((?:\d+:)?\d\S*)\s+\S+\s", re.M)
REPLACED = re.compile(r"^ +replacing +(\S+)\.(\S+) (\S+)$", re.M)
COMES, CHANGES, GOES = "Installing", ("Upgrading", "Updating", "Downgrading", "Reinstalling"), "Removing"
DEPENDENT = ("Removing dependent packages", "Removing for dependencies")
MOST_SAID = 700


def exchange(
    source: Source, packages: Sequence[Package], removals: Sequence[str], exclude: Sequence[str], *, solve: bool = False
) -> list[str]:
    """The command that removes packages and installs others in one transaction. solve: only solve it, locks of versions aside."""
    specs = " ".join(package.spec for package in packages)
    lines = [f"remove {' '.join(removals)}"] if removals else []
    lines += [f"install {specs}"]
    lines += [f"downgrade {specs}"] if solve and source.manager == "yum" else []  # its install leaves a newer version
    options = [*source.switches, "--setopt=exit_on_lock=1"]
    options += [f"--exclude={pattern}" for pattern in exclude]
    if source.manager == "dnf":  # what is no longer needed stays: the operator may use it
        options += ["--setopt=install_weak_deps=False", "--setopt=clean_requirements_on_remove=False"]
    answer = ["--assumeno", "--disableplugin=versionlock"] if solve else ["--assumeyes"]
    script = 'printf "%s\\n" "$1" | { shift; "$@" shell /dev/stdin; }'
    return ["sh", "-c", script, "sh", "\n".join([*lines, "run"]), source.manager, *answer, *options]


def changes(output: str) -> dict[str, list[tuple[str, str, str]]]:
    """The table of a solved transaction: name, architecture and version of each package by the table's sections."""
    rows_by_section: dict[str, list[tuple[str, str, str]]] = {}
    joined = re.sub(r"\n {2,}", " ", output)  # a long name has a line of its own
    sections = re.split(r"^([A-Z][A-Za-z ]+):$", joined, flags=re.M)
    for name, rows in zip(sections[1::2], sections[2::2], strict=True):
        rows_by_section.setdefault(name, []).extend((row[1], row[2], row[3]) for row in ROW.finditer(rows + "\n"))
    return rows_by_section


def solution(output: str, installed: str = "") -> dict[str, list[str]]:
    """What comes, changes and goes, and every section that is none of these. installed: a line for each package, NAME.ARCH VERSION."""
    now = dict(line.rpartition(" ")[::2] for line in installed.splitlines())
    parts: dict[str, list[str]] = {"comes": [], "changes": [], "goes": [], "other": []}
    for section, rows in changes(output).items():
        for name, arch, version in rows:
            package = f"{name}-{version}.{arch}"
            if section.startswith(CHANGES):
                parts["changes"].append(
                    f"{name}.{arch} {now.get(f'{name}.{arch}', '')} -> {version}".replace("  ", " ")
                )
            elif section.startswith((COMES, GOES)):
                parts["comes" if section.startswith(COMES) else "goes"].append(package)
            else:
                parts["other"].append(f"{section}: {package}")
    parts["goes"] += [f"{name}-{version}.{arch}" for name, arch, version in REPLACED.findall(output)]
    return {part: sorted(set(packages)) for part, packages in parts.items()}


def foreign_locks(solved: dict[str, list[tuple[str, str, str]]], listed: str) -> list[str]:
    """Lines of a lock list, without this project's, that the transaction does not fit."""
    rows = [
        row for section, section_rows in solved.items() if not section.startswith("Removing") for row in section_rows
    ]
    return [line for line in OWN_LOCKS.sub("", listed).split() if any(against(line, *row) for row in rows)]


def against(line: str, name: str, arch: str, version: str) -> bool:
    """Whether a line of versionlock excludes a package: NAME-EPOCH:VERSION-RELEASE.ARCH, yum's EPOCH:NAME-…, or ! before either."""
    locked = re.match(r"!?(?:\d+:)?(.+)-[^-]+-[^-]+$", line)
    if line.startswith("#") or not locked or not fnmatch.fnmatchcase(name, locked[1]):
        return False
    epoch, _, release = version.rpartition(":")
    full = (
        f"{name}-{epoch or 0}:{release}.{arch}",
        f"{epoch or 0}:{name}-{release}.{arch}",
        f"{name}-{release}.{arch}",
    )
    fits = any(fnmatch.fnmatchcase(form, line.lstrip("!")) for form in full)
    return fits == line.startswith("!")


def left_out(output: str, packages: Sequence[Package]) -> list[Package]:
    """Packages that the solved transaction does not install."""
    versions: dict[str, list[str]] = {}
    for section, rows in changes(output).items():
        for name, _, version in rows if not section.startswith("Removing") else ():
            versions.setdefault(name, []).append(version)
    return [
        package for package in packages if not any(package.offered_in(versions.get(name, ())) for name in package.names)
    ]


def reasons(
    source: Source, output: str, error: str, listed: str, missing_packages: Sequence[Package] = ()
) -> Iterator[str]:
    """Why the transaction must not or cannot be done; none if it can. listed: the list of versionlock; missing_packages: what it leaves out."""
    sentences = [" ".join(sentence.split()) for sentence in REASON.findall(f"{output}\n{error}")]
    sentences = [sentence for sentence in sentences if not SOLVED.search(sentence)]
    if not sentences and not SOLVED.search(output + error):
        sentences = [" ".join(f"{output} {error}".split()) or "nothing"]
    if sentences:
        yield reported(source, sentences)
    elif missing_packages:
        yield f"it would not install {', '.join(map(str, missing_packages))}"
    solved = changes(output)
    if dependent := [row[0] for section in DEPENDENT for row in solved.get(section, [])]:
        yield f"it would also remove installed packages that require what leaves: {', '.join(dependent)}"
    if locked := foreign_locks(solved, listed):
        yield f"{LOCKS[source.manager]} has locks that are not of this project: {', '.join(locked)}"


def reported(source: Source, sentences: Sequence[str]) -> str:
    """The solver's sentences, shortened in the middle: which package lacks what is at the end of a long chain."""
    words = " ".join(dict.fromkeys(sentences)).rstrip(".")
    return f"{source.manager} reports: {words if len(words) <= MOST_SAID else f'{words[:400]} … {words[-280:]}'}"


def problem(source: Source, reasons: Sequence[str], *, host: str, title: str) -> str:
    return (
        f"{title} must be one transaction on {host} with the packages of its repositories ({source}), but {'; '.join(reasons)}. Nothing was "
        "changed. Add packages that are missing to the mirror, or enable the repository that has them (EPEL); remove packages that the new "
        f"ones conflict with or that require what leaves; delete the locks that are named. Then run this again.{source.left_out(host)}"
    )
