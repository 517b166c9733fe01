"""The commands that the GPU layer's roles give to dnf and yum, and messages from their output.

Pure functions: the action plugins signed_repository and pinned_packages run the commands and modules on the host.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hadoop_dl.data.versions import numbers, upstream

MANAGERS = ("dnf", "yum")
PLACES = ("/", "/usr", "/var", "/boot")  # where a transaction needs space
TRIAL = "/var/cache/deeplearning-plan"  # all that a plan writes on a host, while it runs
REPOSITORY_FILES = "/etc/yum.repos.d,/etc/yum/repos.d,/etc/distro.repos.d"  # reposdir of dnf.conf(5) and yum.conf(5)

# What each manager or rpm prints. dnf: dnf/base.py (_sig_check_pkg), rpm: lib/rpmprob.c, everything else: strerror(ENOSPC).
WRONG_KEY = re.compile(
    r"gpg signature|gpg keys? |public key|NOKEY|not signed|signature(s)? .*(verif|invalid)|failed to fetch gpg key|invalid signature",
    re.I,
)
NO_SPACE = re.compile(
    r"no space left on device|more space needed on the|needs \d+\s?[KMG]i?B more space|Errno 28", re.I
)


class PackageError(Exception):
    """Requested packages cannot be installed; the text has what is required, what was found and what to do next."""


@dataclass(frozen=True)
class Package:
    """A package's name, and the version that it must have: up to the release (535.104.05) or with it (8.9.7.29-1.cuda12.2).

    `kernel` names the kernel that a package of headers is for; `other` is the name that another repository gives the package;
    `least` is the oldest version that will do, if any later one does.
    """

    name: str
    version: str = ""
    kernel: str = ""
    other: str = ""
    least: str = ""

    def __str__(self) -> str:
        name = f"{self.name}-{self.version}" if self.version else self.name
        if self.least:
            return f"{name} ({self.least} or later)"
        return f"{name} (or {self.other})" if self.other else name

    @property
    def names(self) -> list[str]:
        return [name for name in (self.name, self.other) if name]

    def offered_in(self, versions: Iterable[str]) -> bool:
        """Whether a repository has this version; its versions have a release and may have an epoch."""
        if not self.version:
            return any(numbers(upstream(version)) >= numbers(upstream(self.least)) for version in versions)
        return any(re.match(rf"(\d+:)?{re.escape(self.version)}(-|$)", version) for version in versions)

    @property
    def spec(self) -> str:
        """The name by which dnf and yum install, and rpm finds, exactly this version."""
        return f"{self.name}-{self.version}" if self.version else self.name


@dataclass(frozen=True)
class Source:
    """Where packages come from: a repository of this project by its name, or (empty) what the host has."""

    manager: str
    repository: str = ""
    url: str = ""
    key: str = ""
    key_file: str = ""
    unsigned: tuple[tuple[str, str], ...] = ()
    """Repositories of the host that check no signatures or that the site does not name, with their files: nothing comes from these."""
    directory: str = ""
    """Where the repository is defined and all is written, if the host must stay as it is; empty: the host's own places."""

    @property
    def switches(self) -> list[str]:
        """The options of dnf and yum that select repositories."""
        enable = [f"--enablerepo={self.repository}"] if self.repository else []
        return [*self.places, *enable, *(f"--disablerepo={name}" for name, _ in self.unsigned)]

    @property
    def places(self) -> list[str]:
        """The options that lead everything that dnf and yum write, metadata too, into the directory."""
        if not self.directory:
            return []
        log = ("logdir", "log") if self.manager == "dnf" else ("logfile", "yum.log")
        values = {
            name: f"{self.directory}/{path}" for name, path in (("cachedir", "cache"), ("persistdir", "lib"), log)
        }
        values["reposdir"] = f"{REPOSITORY_FILES},{self.directory}"
        return [f"--setopt={name}={value}" for name, value in values.items()]

    def ask(self, packages: Sequence[Package]) -> list[str]:
        """The command that lists every version of the packages, those behind a version lock too."""
        names = list(dict.fromkeys(name for package in packages for name in package.names))
        # --assumeyes: a repository whose metadata is signed asks whether its key may be taken.
        unlocked = "--disableplugin=versionlock"
        if self.manager == "dnf":
            return [
                "dnf",
                "--quiet",
                "--assumeyes",
                "--refresh",
                unlocked,
                *self.switches,
                "list",
                "--showduplicates",
                *names,
            ]
        return ["yum", "--quiet", "--assumeyes", unlocked, "--showduplicates", *self.switches, "list", *names]

    def left_out(self, host: str) -> str:
        """Which repositories of the host were not used, and what to do about it; empty if all were."""
        if not self.unsigned:
            return ""
        names = ", ".join(f"{name} ({file})" if file else name for name, file in self.unsigned)
        return (
            f" These repositories of {host} were not used, because they check no signatures or are not in package_repositories: {names}. Set gpgcheck=1 and gpgkey there, or set "
            "the role's repository_url and repository_key."
        )

    def __str__(self) -> str:
        return self.url or "its own"


def packages_of(items: Sequence[Any]) -> list[Package]:
    """Read the plugin's argument: names, or mappings with name, version and kernel."""
    packages = []
    for item in items:
        fields = {"name": item} if isinstance(item, str) else item
        if (
            not isinstance(fields, Mapping)
            or not fields.get("name")
            or set(fields) - {"name", "version", "kernel", "other", "least"}
        ):
            raise PackageError(
                f"names must have entries such as {{name: nvidia-driver-cuda, version: 535.104.05}}, but one is {item!r}."
            )
        packages.append(Package(**{key: str(value).strip() for key, value in fields.items()}))
    return packages


def offers(output: str) -> dict[str, list[str]]:
    """Read what the command printed: every version by the package's name.

    "name.arch  3:535.104.05-1.el9  repo"; dnf and yum break long lines after the name.
    """
    offered_versions: dict[str, list[str]] = {}
    for line in re.sub(r"\n[ \t]+", " ", output).splitlines():
        match = re.match(r"(\S+)\.\S+\s+(\S+)\s+\S+", line)
        if match and re.match(r"(\d+:)?\d", match[2]):
            versions = offered_versions.setdefault(match[1], [])
            if match[2] not in versions:
                versions.append(match[2])
    return offered_versions


def missing(
    source: Source, packages: Sequence[Package], output: str, error: str, *, host: str, title: str, remedy: str
) -> str:
    """A sentence for each package that the repositories do not have in its version; empty when they have all."""
    offered_versions = offers(output)
    detail = "; " + " ".join(error.split())[-300:] if error.strip() else ""
    sentences = []
    for package in packages:
        versions = [version for name in package.names for version in offered_versions.get(name, [])]
        if package.offered_in(versions):
            continue
        for_kernel = f"The module for kernel {package.kernel} is compiled with exactly"
        instead = ". The kernel was not touched" if package.kernel else f", or {remedy}"
        sentences.append(
            f"{for_kernel if package.kernel else title + ' needs the package'} {package}, but the repositories of {host} ({source}) "
            f"have: {', '.join(versions) or 'no version of it'}{detail}. Add this package to the mirror{instead}."
        )
    return " ".join(sentences) + (source.left_out(host) if sentences else "")


def offered_names(packages: Sequence[Package], output: str) -> list[str]:
    """The name by which the repositories have each package."""
    offered_versions = offers(output)
    return [
        next(name for name in package.names if package.offered_in(offered_versions.get(name, [])))
        for package in packages
    ]


def failure(
    source: Source, message: str, *, host: str, title: str, key: str = "", free: str = "", holder: str = ""
) -> str:
    """The package manager's output as a message with the cause and the remedy.

    key: the expected key's fingerprint and owner, as gpg shows them; free: the free space of the file systems; holder: the process that
    holds the package manager's lock. All are read on the host, and may be empty.
    """
    output = " ".join(message.split()).rstrip(".")
    output = output if len(output) <= 700 else output[:400] + " … " + output[-280:]
    if holder:
        return (
            f"{title} requires the lock of {source.manager} on {host}, but {holder}; {source.manager} reports: {output}. Wait until that process "
            "ends, or end it, and run this again."
        )
    if NO_SPACE.search(message):
        free_space = f" ({free})" if free else ""
        return (
            f"{title} requires more disk space than {host} has{free_space}; {source.manager} reports: {output}. Free some space and run this again: "
            "incomplete packages are reinstalled."
        )
    if WRONG_KEY.search(message):
        signing_key = f"the key {source.key}" if source.key else "a key that the host trusts"
        return (
            f"{title} needs packages signed with {signing_key}{f' ({key})' if key else ''}, but those of {host}'s repositories ({source}) are not; "
            f"{source.manager} reports: {output}. Nothing was installed. Obtain the signing key, check its fingerprint, and set the role's "
            "repository_key to its file on the controller; never turn the check off."
        )
    return (
        f"{title} must be installed on {host} from its repositories ({source}), but {source.manager} reports: {output}. Solve what it names, and "
        f"run this again.{source.left_out(host)}"
    )


def rpm_key(name: str) -> str:
    """The file that holds the key of a repository of rpm."""
    return f"/etc/pki/rpm-gpg/RPM-GPG-KEY-{name}"


def trusted_before(key: str) -> str:
    """The marker that rpm trusted this key before this project's first repository: the key is kept when they are removed."""
    return f"{key}.trusted-before"


def show_key(path: str) -> list[str]:
    """The command that key_lines reads. RHEL 7's gpg 2.0 does not know --show-keys; every gpg shows a file that it is given."""
    return ["gpg", "--batch", "--with-colons", "--with-fingerprint", path]


def flat(message: Any) -> list[str]:
    """A module's message, or list of messages, as lines."""
    if not message:
        return []
    return [str(part) for part in message] if isinstance(message, list) else [str(message)]


def named_places(message: str) -> list[str]:
    """The file systems that rpm reports as too small; they may differ from PLACES if a site mounts others."""
    return sorted(set(re.findall(r"more space (?:needed )?on the (/\S*) filesystem", message)))


def key_lines(colons: str) -> str:
    """Fingerprint and owner of each key out of what `gpg --show-keys --with-colons` printed."""
    lines = []
    for block in re.split(r"^(?=pub:)", colons, flags=re.M):
        fingerprint = re.search(r"^fpr:(?:[^:]*:){8}([0-9A-F]+):", block, re.M)
        owner = re.search(r"^uid:(?:[^:]*:){8}([^:]*):", block, re.M)
        lines += [", ".join(match[1] for match in (fingerprint, owner) if match)]
    return "; ".join(text for text in lines if text)


def key_packages(colons: str) -> list[str]:
    """The packages of rpm's data base that these keys are when they are trusted, out of the same; none if there is no key."""
    return [
        f"gpg-pubkey-{key.lower()}" for key in re.findall(r"^pub:(?:[^:]*:){3}[0-9A-F]*([0-9A-F]{8}):", colons, re.M)
    ]


def caches(name: str) -> list[dict[str, list[str]]]:
    """The caches of dnf and yum for a repository, as arguments of the module find."""
    pattern = re.escape(name) + r"(-[0-9a-f]{16})?|" + re.escape(name) + r"(-filenames|-updateinfo)?\.solvx?"
    return [
        {"paths": ["/var/cache/dnf", "/var/lib/dnf/repos"], "patterns": [f"^({pattern})$"]},
        {"paths": ["/var/cache/yum", "/var/lib/yum/repos"], "patterns": [f"^({re.escape(name)})$"]},
    ]


def free_lines(df: str) -> str:
    """ "/ 120 MB free, …" out of what `df -P -m` printed, each file system once."""
    rows = [line.split() for line in df.splitlines()[1:]]
    texts = {row[5]: f"{row[5]} {row[3]} MB free" for row in rows if len(row) >= 6}
    return ", ".join(texts[place] for place in sorted(texts))
