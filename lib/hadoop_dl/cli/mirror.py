"""The mirror on the controller: what stacks need, fetched and verified. The work is in plugins/module_utils/mirror_files.py
and mirror_index.py, because the same code runs on the mirror host."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hadoop_dl.data import module_utils
from hadoop_dl.data.locks import Lock, LockError
from hadoop_dl.data.stacks import StackError, UnknownStack, add_directory, artifacts_of_others, load_stack

REPOSITORY = Path(__file__).resolve().parents[3]
mirror_index: Any = module_utils.load("mirror_index")
mirror_files: Any = module_utils.load("whole_files", "mirror_index", "mirror_pages", "mirror_files")
mirror_prune: Any = module_utils.load("mirror_files", "mirror_prune")
MirrorError: type[Exception] = mirror_index.MirrorError
Artifact = dict[str, Any]


def offers(project: str, index_url: str | None = None) -> list[dict[str, Any]]:
    """What the index lists for a project: name, url, sha256, size (None where the index does not tell)."""
    return list(mirror_index.offers(project, index_url))


def fetch_artifacts(
    artifacts: Iterable[Artifact],
    root: Path,
    index_url: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Make the directory hold these artifacts, each verified by sha256; the names that were fetched."""
    return list(mirror_files.fetch_artifacts(list(artifacts), str(root), index_url, progress))


def fetch(
    locks: Iterable[Lock],
    files: Iterable[Mapping[str, Any]],
    root: Path,
    index_url: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Make the directory hold everything that these locks and files (artifacts with a folder) name."""
    artifacts = [artifact for lock in locks for artifact in lock.artifacts] + [dict(file) for file in files]
    return fetch_artifacts(artifacts, root, index_url, progress)


def problems(artifacts: Iterable[Artifact], root: Path) -> dict[str, str]:
    """name -> problem, for the artifacts that the directory does not hold with the right bytes."""
    return dict(mirror_files.problems_of(mirror_files.unique(list(artifacts)), str(root)))


def stack_artifacts(pairs: Iterable[tuple[str, str]]) -> list[Artifact]:
    """Everything that these (stack, python) pairs need, each once."""
    found = [artifact for name, python in pairs for artifact in load_stack(name).artifacts(python or None)]
    return list(mirror_files.unique(found))


def prune(kept: Iterable[Artifact], root: Path) -> list[str]:
    """Remove from the directory what other stacks alone need; the site's files and the wheels that it built stay. Returns the paths."""
    return list(mirror_prune.prune(str(root), artifacts_of_others(kept)))


def main(arguments: list[str] | None = None) -> int:
    """fetch, verify and prune a mirror directory; list what it must hold."""
    parser = argparse.ArgumentParser(prog="mirror", description="The directory from which hosts install.")
    parser.add_argument(
        "command", choices=("fetch", "verify", "list", "prune"), help="prune removes what other stacks alone need"
    )
    parser.add_argument("stacks", metavar="STACK", nargs="+", help="a stack, for all its Pythons; or STACK:PYTHON")
    parser.add_argument("--root", type=Path, default=REPOSITORY / ".cache" / "mirror", help="the mirror's directory")
    parser.add_argument("--index-url", help="a PEP 503 or 691 index (default: PIP_INDEX_URL, then PyPI)")
    parser.add_argument(
        "--stacks", dest="site", type=Path, metavar="DIR", help="a site's own stacks, too: inventories/SITE/stacks"
    )
    options = parser.parse_args(arguments)
    if options.index_url and mirror_index.login_of(options.index_url):
        parser.error(
            "--index-url must not have a user or password: every user of this host can read it. Set PIP_INDEX_URL."
        )
    if options.site:
        add_directory(options.site)
    try:
        pairs: list[tuple[str, str]] = []
        for text in options.stacks:
            name, _, python = text.partition(":")
            pairs += [(name, python)] if python else [(name, version) for version in load_stack(name).pythons]
        artifacts = stack_artifacts(pairs)
        if options.command == "list":
            for artifact in artifacts:
                print(f"{artifact['sha256']}  {artifact['folder']}/{artifact['name']}  {artifact['size']}")
            return 0
        if options.command == "prune":
            gone = prune(artifacts, options.root)
            for path in gone:
                print(f"removed {path}")
            print(
                f"{options.root}: {len(gone)} artifacts of other stacks were removed. Of {len(artifacts)} that these stacks need none was."
            )
            return 0
        if options.command == "verify":
            wrong = problems(artifacts, options.root)
            for name, problem in sorted(wrong.items()):
                print(f"{name}: {problem}", file=sys.stderr)
            if wrong:
                print(
                    f"{len(wrong)} of {len(artifacts)} artifacts are missing or differ from the locks. Fetch them: scripts/mirror fetch --root {options.root}",
                    file=sys.stderr,
                )
                return 1
            print(f"{options.root} holds all {len(artifacts)} artifacts, each with its sha256.")
            return 0
        fetched = fetch_artifacts(artifacts, options.root, options.index_url, lambda line: print(line, flush=True))
    except (UnknownStack, StackError, LockError, MirrorError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{options.root} holds {len(artifacts)} artifacts ({len(fetched)} fetched now), each with its sha256.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
