"""Ask repositories for packages in exactly the versions wanted, or install them: lib/hadoop_dl/hosts/os_packages.py over dnf and yum."""

import re
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from hadoop_dl.hosts import os_packages, transactions
from hadoop_dl.hosts.actions import HostAction

STATES = ("available", "solvable", "present")
SOLVING = 600  # seconds, with the metadata of every repository
TRANSACTION = 3600  # seconds; a driver's transaction builds modules and writes initramfs images
LOCK_WAIT, LOCK_PAUSE = 120, 5  # seconds for another package manager, as remove_packages waits
INSTALLED = "%{NAME}.%{ARCH} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n"
HALF_DONE = "The transaction was ended. Look at what it did (dnf history, yum history), and repair it."


class ActionModule(HostAction):
    """pinned_packages: steps of one thing, so that everything can be asked for before anything is changed.

    state: `available` fails with a sentence for each package that the repositories do not have in its version (and lists those they
    have) and answers `names`, by which they have them; `solvable` fails if the manager finds no transaction of these packages (and those
    that leave), if it would remove others, or if a lock of the site excludes one, changes nothing, and answers `solution`; `present` installs them in one
    transaction, and turns the manager's failure into a sentence. downgrade: true lets it install an older version over a newer one, never of a
    kernel package. remove: installed packages that leave in the same transaction.
    names: names, or {name, version, kernel, other, least}; other is a second name to ask for, least the oldest
    version that will do. manager: dnf or yum. title: what they are for, the subject of the
    sentences ("Driver 535.104.05"). repository: what signed_repository returned; the host's own repositories serve beside it, but
    not those that check no signatures (gpgcheck=0): the host is asked which these are, unless repository has them.
    exclude: packages that the transaction must not touch, as patterns: one that would is refused. remedy: another way out than adding the package to the mirror.
    Check mode cannot query a repository that is not defined yet: `available` and `solvable` are satisfied, `present` is a change.
    """

    REQUIRED = ("names", "manager", "title", "state")
    OPTIONAL = ("repository", "exclude", "downgrade", "remove", "remedy")

    def act(self) -> dict[str, Any]:
        if self.args["state"] not in STATES or self.args["manager"] not in os_packages.MANAGERS:
            self.misused(f"state: {' or '.join(STATES)}, and a manager ({', '.join(os_packages.MANAGERS)})")
        repository = self.args.get("repository") or {}
        source = os_packages.Source(
            self.args["manager"],
            *(repository.get(key, "") for key in ("name", "url", "key", "key_file")),
            directory=repository.get("directory", ""),
        )
        try:
            packages = os_packages.packages_of(self.args["names"])
        except os_packages.PackageError as error:
            raise AnsibleActionFail(str(error)) from error
        if not packages:
            return {}
        if self._downgrade and any(package.name.startswith("kernel") for package in packages):
            self.misused("names without the kernel's if downgrade is true: a kernel is never downgraded")
        if not repository.get("usable", True):
            self.changed = self.args["state"] == "present"
            return {}
        unsigned = repository.get("unsigned")
        if unsigned is None:
            unsigned = self.unsigned_repositories(source.manager)
        source = replace(source, unsigned=tuple((entry["name"], entry["file"]) for entry in unsigned))
        if self.args["state"] == "solvable":
            return self._solve(source, packages)
        return self._ask(source, packages) if self.args["state"] == "available" else self._install(source, packages)

    @property
    def _downgrade(self) -> bool:
        return boolean(self.args.get("downgrade") or False)

    def _ask(self, source: os_packages.Source, packages: list[os_packages.Package]) -> dict[str, Any]:
        """Run a command, because no module lists every version that repositories offer. An empty list is no failure."""
        answer = self.command(source.ask(packages))
        problem = os_packages.missing(
            source,
            packages,
            answer["stdout"],
            answer["stderr"],
            host=self.host,
            title=str(self.args["title"]),
            remedy=str(self.args.get("remedy") or "request a version that it has"),
        )
        if problem:
            raise AnsibleActionFail(problem)
        return {"names": os_packages.offered_names(packages, answer["stdout"])}

    def _solve(self, source: os_packages.Source, packages: list[os_packages.Package]) -> dict[str, Any]:
        """Without the locks, because this role's own are lifted for the transaction; the site's are compared here."""
        self._wait_for_lock(source)
        removals, exclude = (self.args.get(key) or [] for key in ("remove", "exclude"))
        answer = self.command(transactions.exchange(source, packages, removals, exclude, solve=True), SOLVING)
        listed = self.command(["cat", transactions.LOCKS[source.manager]])["stdout"]
        missing_packages = transactions.left_out(answer["stdout"], self._not_in_rpm(packages))
        reasons = list(transactions.reasons(source, answer["stdout"], answer["stderr"], listed, missing_packages))
        if reasons:
            raise AnsibleActionFail(
                transactions.problem(source, reasons, host=self.host, title=str(self.args["title"]))
            )
        installed = self.command(["rpm", "--query", "--all", "--queryformat", INSTALLED]) if source.directory else {}
        return {"solution": transactions.solution(answer["stdout"], installed.get("stdout", ""))}

    def _install(self, source: os_packages.Source, packages: list[os_packages.Package]) -> dict[str, Any]:
        self._wait_for_lock(source)
        self._refuse_duplicates(packages)
        trusted = self._trusted_keys()
        answer = (self._exchange if self.args.get("remove") else self._run_module)(source, packages)
        if not answer.get("failed") and not self.checking:
            answer |= self._not_installed(packages, answer)
        if answer.get("failed"):
            for key in self._trusted_keys() - trusted:  # what did not happen leaves no key behind
                self.command(["rpm", "--erase", key])
            lines = [line for key in ("msg", "failures", "stderr") for line in os_packages.flat(answer.get(key))]
            output = "\n".join(lines)
            key_listing = self.command(os_packages.show_key(source.key_file))["stdout"] if source.key_file else ""
            free = self.command(["df", "-P", "-m", *os_packages.PLACES, *os_packages.named_places(output)])["stdout"]
            raise AnsibleActionFail(
                os_packages.failure(
                    source,
                    output,
                    host=self.host,
                    title=str(self.args["title"]),
                    key=os_packages.key_lines(key_listing),
                    free=os_packages.free_lines(free),
                    holder=self._lock_holder(),
                )
            )
        self.count(answer)
        return {}

    def _refuse_duplicates(self, packages: list[os_packages.Package]) -> None:
        """A transaction of rpm that was ended leaves a package in two versions; the next one fails with words that do not say so."""
        names = [item.name for item in packages if not item.name.startswith("kernel")]  # several kernels may stay
        query = ["rpm", "--query", "--queryformat", "%{NAME}.%{ARCH}\\n", *names]
        listed = Counter(self.command(query)["stdout"].splitlines() if names else [])
        duplicates = [line.rpartition(".")[0] for line, count in listed.items() if count > 1]
        if duplicates:
            raise AnsibleActionFail(
                f"{self.args['title']} requires each of its packages once, but {self.host} has {', '.join(duplicates)} in more than one version, "
                "as a transaction of rpm leaves them that was ended. Nothing was installed. Run dnf remove --duplicates there "
                "(RHEL 7: package-cleanup --cleandupes), and run this again."
            )

    def _run_module(self, source: os_packages.Source, packages: list[os_packages.Package]) -> dict[str, Any]:
        answer: dict[str, Any] = self.ask_module(
            f"ansible.legacy.{source.manager}",
            name=[package.spec for package in packages],
            state="present",
            allow_downgrade=self._downgrade,
            enablerepo=[source.repository] if source.repository else [],
            disablerepo=[name for name, _ in source.unsigned],
            lock_timeout=LOCK_WAIT,
            exclude=list(self.args.get("exclude") or []),
            install_weak_deps=False,
        )
        return answer

    def _exchange(self, source: os_packages.Source, packages: list[os_packages.Package]) -> dict[str, Any]:
        if self.checking:
            return {"changed": True}
        exclude = [str(pattern) for pattern in self.args.get("exclude") or []]
        self._solve(source, packages)
        argv = transactions.exchange(source, packages, self.args["remove"], exclude)
        answer = self.command(argv, TRANSACTION, left=HALF_DONE)
        output = "\n".join(line for line in (answer["stdout"], answer["stderr"]) if line)
        return {"changed": True, "failed": answer["rc"] != 0, "msg": output}

    def _not_installed(self, packages: list[os_packages.Package], answer: dict[str, Any]) -> dict[str, Any]:
        """A failure if rpm lacks what was installed: yum ends well with "Nothing to do", and the shells ignore errors."""
        missing_packages = [package.spec for package in self._not_in_rpm(packages)]
        message = "; ".join([f"it did not install {', '.join(missing_packages)}", *os_packages.flat(answer.get("msg"))])
        return {"failed": True, "msg": message} if missing_packages else {}

    def _not_in_rpm(self, packages: list[os_packages.Package]) -> list[os_packages.Package]:
        queried = self.command(["rpm", "--query", *(package.spec for package in packages)])
        missing_specs = re.findall(r"^package (\S+) is not installed$", queried["stdout"], re.M)
        return [package for package in packages if package.spec in missing_specs]

    def _lock_holder(self) -> str:
        return str(self.ask_module("package_lock_info").get("holder", ""))

    def _wait_for_lock(self, source: os_packages.Source) -> None:
        """Ansible's dnf and yum wait for another one without end, and fail at once if rpm's lock is held."""
        end = time.monotonic() + LOCK_WAIT
        while not self.checking and (holder := self._lock_holder()):
            if time.monotonic() > end:
                raise AnsibleActionFail(
                    f"{self.args['title']} requires the lock of {source.manager} on {self.host}, but {holder} for more than {LOCK_WAIT} s. "
                    "Nothing was installed. Wait until that process ends, or end it, and run this again."
                )
            time.sleep(LOCK_PAUSE)

    def _trusted_keys(self) -> set[str]:
        """The keys that rpm trusts, as packages of its data base: dnf and yum take in the repository's before they compare."""
        answer = self.command(["rpm", "--query", "--all", "gpg-pubkey"])
        return set(answer["stdout"].split())
