"""The mirror on the controller: what stacks and inventories need, listed, fetched, verified and pruned. The work is in
plugins/module_utils/hadoop_dl_host/mirror_files.py and mirror_index.py, because the same code runs on the mirror host.

scripts/mirror list|fetch|verify|prune [STACK[:PYTHON] ...] [-i inventories/SITE ... [--plan FILE]] [--root DIR] [--bundle FILE]

With -i: the stacks that the inventory requests, its mirror_files, and the stack of its engine image. No host is asked, so a stack
is taken with all its Pythons. With --plan also the packages of driver, CUDA, cuDNN, NCCL and container runtime that the hosts of that plan get. The
result is a directory that the role mirror takes as it is; fetch --bundle also writes it as one file, which is signed with the secret key of
mirror_bundle_key. Proxies and indexes for fetch are variables of its environment (https_proxy, SSL_CERT_FILE, PIP_INDEX_URL, MAVEN_CENTRAL_URL),
not mirror_environment of the inventory.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host import mirror_bundle, mirror_files, mirror_index, mirror_prune, package_sets

from hadoop_dl.cli import mirror_site
from hadoop_dl.data.artifacts import kind, needed, source
from hadoop_dl.data.locks import StackError
from hadoop_dl.data.stacks import (
    add_directory,
    add_site_stacks,
    artifacts_of_others,
    load_stack,
)
from hadoop_dl.hosts.gpu_sets import PREFIX

REPOSITORY = Path(__file__).resolve().parents[3]
MirrorError: type[Exception] = mirror_index.MirrorError
Artifact = dict[str, Any]


def offers(project: str) -> list[dict[str, Any]]:
    """The files that the index lists for a project: name, url, sha256, size (None if the index does not tell)."""
    return list(mirror_index.offers(project))


def fetch_artifacts(
    artifacts: Iterable[Artifact],
    root: Path,
    index_url: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Make the directory hold these artifacts, each verified by sha256; the names that were fetched."""
    return list(mirror_files.fetch_artifacts(list(artifacts), str(root), index_url, progress))


def problems(artifacts: Iterable[Artifact], root: Path) -> dict[str, str]:
    """name -> problem, for the artifacts that the directory does not hold with the right bytes."""
    return dict(mirror_files.problems_of(mirror_files.unique(list(artifacts)), str(root)))


@dataclass
class Contents:
    """The required contents of the directory: artifacts, each with what needs it, and sets of packages."""

    rows: list[tuple[Artifact, list[str]]]
    sets: list[Artifact] = field(default_factory=list)
    site: dict[str, Any] = field(default_factory=dict)
    """What the inventory decides, as mirror_site.read() returns it."""

    @property
    def artifacts(self) -> list[Artifact]:
        return list(mirror_files.unique([artifact for artifact, _ in self.rows]))

    @property
    def text(self) -> str:
        sizes = [artifact.get("size") for artifact in self.artifacts]
        size = f"{'' if all(sizes) else 'at least '}{sum(filter(None, sizes)) / 1e6:.0f} MB"
        sets = f" and {len(self.sets)} sets of packages" if self.sets else ""
        return f"{len(self.artifacts)} artifacts{sets} ({size})"


def contents(options: argparse.Namespace) -> Contents:
    """The contents that the named stacks and the inventories require."""
    environments: dict[tuple[str, str], list[str]] = {}
    for text in options.stacks:
        name, _, python = text.partition(":")
        for version in [python] if python else load_stack(name).pythons:
            environments[name, version] = []
    if not options.inventory:
        return Contents(needed(environments, {}))
    names = [name for name, _ in environments]
    site = mirror_site.read(options.inventory, options.ansible, names, options.plan)
    for name, python, users in site["environments"]:
        environments.setdefault((name, python), []).extend(users)
    for warning in site["warnings"]:
        print(warning, file=sys.stderr)
    return Contents(needed(environments, site["files"], site["uses"]), site["sets"], site)


def list_contents(contents: Contents) -> None:
    """One line each: sha256, path, size, kind, source, and what needs it."""
    text = contents.text
    for artifact, users in contents.rows:
        path, size = f"{artifact['folder']}/{artifact['name']}", artifact.get("size") or "-"
        print(
            f"{artifact['sha256']}  {path}  {size}  {kind(artifact)}  {source(artifact) or '-'}  {', '.join(users) or '-'}"
        )
    for package_set in contents.sets:
        addresses = ",".join(package_set["repositories"])
        print(
            f"-  rpm/{package_set['name']}  -  set  {addresses}  {package_set['users']} ({', '.join(package_set['packages'])})"
        )
    print(text, file=sys.stderr)
    print(repositories_text(contents.site.get("hosts", {})), end="", file=sys.stderr)


def repositories_text(hosts: dict[str, list[str]]) -> str:
    """The inputs by which hosts take the GPU layer from the mirror, for the inventory. hosts: those of each system."""
    lines = []
    for system, names in sorted(hosts.items()):
        lines.append(f"# For the group_vars of hosts with {system}: {', '.join(names)}")
        for role in ("nvidia_driver", "cuda", "cudnn", "nccl", "container_runtime"):
            lines.append(f'{role}_repository_url: "{{{{ mirror_url }}}}/rpm/{PREFIX}{system}"')
            lines.append(f'{role}_repository_key: "{{{{ mirror_gpu_key }}}}"')
    return "".join(f"{line}\n" for line in lines)


def fetch_contents(contents: Contents, root: Path, index_url: str | None) -> list[str]:
    """Fetch what is missing; what could not be fetched, in sentences. A failure of one part ends no other."""
    failures, fetched = [], []
    by_hand = [artifact for artifact in contents.artifacts if not source(artifact) and not artifact.get("built")]
    try:
        remote_artifacts = [artifact for artifact in contents.artifacts if artifact not in by_hand]
        fetched = fetch_artifacts(remote_artifacts, root, index_url, lambda line: print(line, flush=True))
    except MirrorError as error:
        failures.append(str(error))
    users = {artifact["name"]: names for artifact, names in contents.rows}
    failures += [
        f"{name} ({problem}) is required by {', '.join(users[name])}, but no address of it is known. Add it to mirror_files, or put it into {root / 'files'}."
        for name, problem in sorted(problems(by_hand, root).items())
    ]
    for package_set in contents.sets:
        try:
            fetched += [package_set["name"]] if mirror_site.make_set(package_set, root) else []
            if elsewhere := package_sets.record_of(maker(package_set, root).place)["elsewhere"]:
                print(
                    f"rpm/{package_set['name']} also requires what none of its repositories has: {', '.join(elsewhere)}."
                )
        except mirror_site.SiteError as error:
            failures.append(str(error))
    if not failures:
        print(f"{root} holds {contents.text}, each verified; {len(fetched)} fetched now.")
        print(repositories_text(contents.site.get("hosts", {})), end="")
    return failures


def maker(package_set: Artifact, root: Path) -> Any:
    return package_sets.Maker(str(root), *(package_set[name] for name in mirror_site.SET))


def write_bundle(contents: Contents, root: Path, bundle: Path, planned: bool) -> list[str]:
    """Write everything into one file, signed with mirror_bundle_key."""
    key = contents.site["bundle_key"]
    if not key:
        return [
            "--bundle requires the inventory's mirror_bundle_key, a file on this machine with the public key that signs the bundle, but there is none. "
            "Set it; no bundle was written."
        ]
    paths = mirror_bundle.paths_of(str(root), contents.artifacts, [entry["name"] for entry in contents.sets])
    signer = mirror_bundle.pack(str(bundle), str(root), paths, key)
    print(f"{bundle} has {len(paths)} files, signed with {signer}. Copy it to the mirror's host, then:")
    print(f"  ansible-playbook -i INVENTORY playbooks/mirror.yml -e mirror_bundle=/PATH/{bundle.name}")
    if not planned:
        print("It does not have the GPU layer, which requires --plan.")
    return []


def verify_contents(contents: Contents, root: Path) -> list[str]:
    wrong = [f"{name}: {problem}" for name, problem in sorted(problems(contents.artifacts, root).items())]
    for package_set in contents.sets:
        reason = maker(package_set, root).reason()
        wrong += [f"rpm/{package_set['name']}: {reason}"] if reason else []
    if wrong:
        wrong.append(
            f"{len(wrong)} of {len(contents.artifacts) + len(contents.sets)} artifacts are missing or differ. Fetch them: the same command, with fetch in place of verify."
        )
    else:
        print(f"{root} holds {contents.text}, each verified.")
    return wrong


def prune_contents(contents: Contents, root: Path) -> list[str]:
    """Remove what other stacks alone need; the site's files and the wheels that it built stay."""
    removed_paths = mirror_prune.prune(str(root), artifacts_of_others(contents.artifacts))
    for path in removed_paths:
        print(f"removed {path}")
    print(
        f"{root}: removed {len(removed_paths)} artifacts of other stacks; kept the {len(contents.artifacts)} that these stacks need."
    )
    return []


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mirror",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "command", choices=("list", "fetch", "verify", "prune"), help="prune removes what other stacks alone need"
    )
    parser.add_argument("stacks", metavar="STACK", nargs="*", help="a stack, for all its Pythons; or STACK:PYTHON")
    parser.add_argument(
        "-i", "--inventory", action="append", default=[], metavar="PATH", help="as for ansible-playbook"
    )
    parser.add_argument(
        "--plan", type=Path, metavar="FILE", help="of the inventory: playbooks/plan.yml -e preflight_plan_file=FILE"
    )
    for option in ("--extra-vars", "--vault-password-file", "--vault-id"):
        short = ["-e"] if option == "--extra-vars" else []
        parser.add_argument(*short, option, action="append", default=[], metavar="X", help="as for ansible-playbook")
    parser.add_argument("--root", type=Path, default=REPOSITORY / ".cache" / "mirror", help="the mirror's directory")
    parser.add_argument(
        "--bundle",
        type=Path,
        metavar="FILE",
        help="fetch: also write everything as one file, signed with mirror_bundle_key",
    )
    parser.add_argument("--index-url", help="a PEP 503 or 691 index (default: PIP_INDEX_URL, then PyPI)")
    parser.add_argument(
        "--stacks", dest="site", type=Path, metavar="DIR", help="a site's own stacks, too: inventories/SITE/stacks"
    )
    options = parser.parse_intermixed_args(arguments)
    if options.index_url and mirror_index.login_of(options.index_url):
        parser.error(
            "--index-url must not have a user or password: every user of this host can read it. Set PIP_INDEX_URL."
        )
    if not options.stacks and not options.inventory:
        parser.error("a stack or an inventory (-i) is required")
    if options.plan and not options.inventory:
        parser.error("--plan requires the inventory (-i) that it is of")
    if options.bundle and (options.command != "fetch" or not options.inventory):
        parser.error("--bundle is an option of fetch, and requires an inventory (-i)")
    options.ansible = [
        f"--{name.replace('_', '-')}={value}"
        for name in ("extra_vars", "vault_password_file", "vault_id")
        for value in getattr(options, name)
    ]
    return options


def main(arguments: list[str] | None = None) -> int:
    """fetch, verify and prune a mirror directory; list what it must hold."""
    options = parse(arguments)
    if options.site:
        add_directory(options.site)
    add_site_stacks(options.inventory)
    failures: list[str] = []
    try:
        mirror_contents = contents(options)
        if options.command == "list":
            list_contents(mirror_contents)
        elif options.command == "fetch":
            failures = fetch_contents(mirror_contents, options.root, options.index_url)
            if options.bundle and failures:
                failures.append(f"{options.bundle} was not written, because it would not be complete.")
            elif options.bundle:
                failures = write_bundle(mirror_contents, options.root, options.bundle, bool(options.plan))
        elif options.command == "verify":
            failures = verify_contents(mirror_contents, options.root)
        else:
            failures = prune_contents(mirror_contents, options.root)
    except (StackError, MirrorError, mirror_site.SiteError) as error:
        failures = [str(error)]
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
