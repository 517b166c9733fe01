"""The command scripts/bootstrap_ssh: three rounds over all hosts, and a table."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn, TypeVar

from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.cli.ssh_bootstrap.connections import make_ready, read_host_key
from hadoop_dl.cli.ssh_bootstrap.credentials import load_identities, read_password, read_public_key
from hadoop_dl.cli.ssh_bootstrap.host_keys import KnownHosts, fingerprint
from hadoop_dl.cli.ssh_bootstrap.model import Host, HostKeyRefused, HostProblem, Misuse, Result, Settings
from hadoop_dl.cli.ssh_bootstrap.targets import inventory_hosts, named_host
from hadoop_dl.data.terminal import printable

MISUSE, SOME_FAILED = 1, 2

T = TypeVar("T")


def each(hosts: Sequence[Host], parallel: int, work: Callable[[Host], T]) -> list[T]:
    with ThreadPoolExecutor(max_workers=min(parallel, max(len(hosts), 1))) as pool:
        return list(pool.map(work, hosts))


def bootstrap(
    hosts: Sequence[Host], settings: Settings, agree: Callable[[list[str]], bool], say: Callable[[str], None]
) -> list[Result]:
    """All rounds over all hosts; one result each, in the order of the hosts."""
    known_hosts = KnownHosts(settings.known_hosts)
    results = {host: Result(host.name, host.known_as) for host in hosts}

    def guarded(work: Callable[[Host], T]) -> Callable[[Host], T | None]:
        def run(host: Host) -> T | None:
            try:
                return work(host)
            except HostProblem as problem:
                results[host].problems.append(str(problem))
                if isinstance(problem, HostKeyRefused):
                    results[host].host_key = "REFUSED"
                return None
            except Exception as error:  # one host never stops the others
                results[host].problems.append(f"it could not be checked: {type(error).__name__}: {error}.")
                return None

        return run

    answers = each(hosts, settings.parallel, guarded(lambda host: read_host_key(host, known_hosts, settings)))
    new = []
    for host, answer in zip(hosts, answers, strict=True):
        if answer is None:
            continue
        if answer[0] == "known":
            results[host].host_key = "known"
        else:
            new.append((host, answer[1]))
    if new:
        lines = [f"{host.name} ({host.known_as}) {fingerprint(key)}" for host, key in new]
        say(f"Host keys that are not in {settings.known_hosts}:\n  " + "\n  ".join(lines))
        accepted = settings.accept_new or agree(lines)
        for host, key in new:
            if accepted:
                known_hosts.remember(host, key)
                results[host].host_key = "would be recorded" if settings.dry_run else "recorded"
            else:
                results[host].host_key = "not accepted"
                results[host].problems.append(
                    "its host key is not known and was not accepted. Compare the fingerprint on its console, then run again and "
                    "say yes, or use --accept-new."
                )
        if accepted and not settings.dry_run:
            known_hosts.write(new)
    reachable = [host for host in hosts if results[host].ok]
    each(reachable, settings.parallel, guarded(lambda host: make_ready(host, results[host], known_hosts, settings)))
    return [results[host] for host in hosts]


def table(results: Sequence[Result]) -> str:
    head = ("HOST", "HOST KEY", "KEY", "PYTHON", "SUDO", "RESULT")
    rows = [
        (
            r.host,
            r.host_key or "-",
            r.key or "-",
            r.python.split()[0] if r.python else "-",
            r.sudo.split()[0] if r.sudo else "-",
            "ok" if r.ok else "FAILED",
        )
        for r in results
    ]
    lines: list[str] = columns([head, *rows])
    lines += [f"{r.host}: {sentence}" for r in results for sentence in r.problems + r.notes]
    return printable("\n".join(lines))


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Misuse(message)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="scripts/bootstrap_ssh",
        description="Make hosts reachable for Ansible: record host keys, install a public key, check Python and sudo.",
        epilog="Exit status: 0 every host is ready, 1 wrong use (nothing was contacted), 2 some hosts are not ready.",
    )
    parser.add_argument("hosts", nargs="*", metavar="[USER@]HOST[:PORT]")
    parser.add_argument("-i", "--inventory", action="append", default=[], help="read hosts from this inventory")
    parser.add_argument("-l", "--limit", help="only these hosts of the inventory")
    parser.add_argument("-u", "--user", help="log in as this user (default: ansible_user, else yours)")
    parser.add_argument("--port", type=int, default=22, help="port of hosts named here (default: %(default)s)")
    parser.add_argument("--public-key", type=Path, metavar="FILE", help="the key to install (default: yours in ~/.ssh)")
    parser.add_argument(
        "--identity", type=Path, action="append", default=[], help="a private key that already works there"
    )
    parser.add_argument("--no-agent", action="store_true", help="do not use keys of ssh-agent")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("-k", "--ask-password", action="store_true", help="ask for one password for all hosts")
    password.add_argument(
        "--password-vault", type=Path, metavar="FILE", help="ansible-vault file with ansible_password"
    )
    parser.add_argument("--vault-password-file", type=Path, metavar="FILE", help="opens --password-vault")
    parser.add_argument("--known-hosts", type=Path, default=Path.home() / ".ssh" / "known_hosts", metavar="FILE")
    parser.add_argument(
        "--accept-new", action="store_true", help="record unknown host keys without asking (shown all the same)"
    )
    parser.add_argument("--dry-run", action="store_true", help="look, and write nothing here or there")
    parser.add_argument("--parallel", type=int, default=20, metavar="N", help="hosts at a time (default: %(default)s)")
    parser.add_argument(
        "--timeout", type=float, default=15, metavar="SECONDS", help="for each wait (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    if not options.hosts and not options.inventory:
        parser.error("hosts are required, but none are named. Name them, or give an inventory: -i inventories/SITE")
    if options.limit and not options.inventory:
        parser.error("--limit requires an inventory (-i), but none was given.")
    if options.parallel < 1 or options.timeout <= 0:
        parser.error("--parallel and --timeout must be greater than 0.")
    return options


def agree_on_terminal(lines: list[str]) -> bool:
    if not sys.stdin.isatty():
        return False
    print(f"Record {len(lines)} host key(s) as shown? Type yes or no: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


def main(arguments: Sequence[str] | None = None) -> int:
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # its threads print tracebacks of dead peers
    try:
        options = parse(arguments)
        hosts = inventory_hosts(options.inventory, options.limit, options.user) if options.inventory else []
        hosts += [named_host(text, options.port, options.user) for text in options.hosts]
        hosts = list(dict.fromkeys(hosts))
        if not hosts:
            raise Misuse("the inventory has no host that SSH reaches. Look at: ansible-inventory --graph")
        public_key, private = read_public_key(options.public_key, Path.home())
        settings = Settings(
            public_key=public_key,
            identities=load_identities([private, *options.identity], agent=not options.no_agent),
            password=read_password(options),
            known_hosts=options.known_hosts,
            accept_new=options.accept_new,
            dry_run=options.dry_run,
            timeout=options.timeout,
            parallel=options.parallel,
        )
    except (Misuse, OSError) as error:
        print(f"bootstrap_ssh: {error}", file=sys.stderr)
        return MISUSE
    results = bootstrap(hosts, settings, agree_on_terminal, lambda text: print(text, file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps([{**asdict(result), "ok": result.ok} for result in results], indent=2))
    else:
        print(table(results))
    return 0 if all(result.ok for result in results) else SOME_FAILED


if __name__ == "__main__":
    sys.exit(main())
