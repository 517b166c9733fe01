"""The artifacts that a mirror must hold: those of stacks, and the files of a site.

The playbooks (mirror_artifacts) and scripts/mirror use them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hadoop_dl.data.stacks import load_stack

Json = dict[str, Any]
Environment = tuple[str, str]  # a stack and one of its Pythons


def stack_artifacts(
    environments: Iterable[Sequence[str]], files: Mapping[str, Mapping[str, str]] | None = None
) -> list[Json]:
    """Everything that a mirror holds for these pairs of stack and Python, and the site's own files, {NAME: {file: URL, sha256: …}}."""
    pairs: dict[Environment, Sequence[str]] = {(name, python): () for name, python in environments}
    return [artifact for artifact, _ in needed(pairs, files or {})]


def needed(
    environments: Mapping[Environment, Sequence[str]],
    files: Mapping[str, Mapping[str, str]],
    uses: Iterable[tuple[Json, str]] = (),
) -> list[tuple[Json, list[str]]]:
    """The artifacts by folder and name, each once, with what needs it.

    environments: who asks for the stack. uses: further artifacts of which an input of the site knows the sha256 alone, with its name.
    """
    pairs = [
        (artifact, f"{name} on Python {python}" + (f" ({', '.join(users)})" if users else ""))
        for (name, python), users in environments.items()
        for artifact in load_stack(name).artifacts(python)
    ]
    pairs += [(site_artifact(name, file), "mirror_files") for name, file in files.items()]
    rows: dict[tuple[str, str, str], tuple[Json, list[str]]] = {}
    for artifact, user in [*pairs, *uses]:
        # Two with one name and other bytes both stay: what fetches them refuses that.
        users = rows.setdefault((artifact["folder"], artifact["name"], artifact["sha256"]), (artifact, []))[1]
        if user not in users:
            users.append(user)
    return [rows[key] for key in sorted(rows)]


def site_artifact(name: str, file: Mapping[str, str]) -> Json:
    return {"folder": "files", "name": name, "sha256": file["sha256"], "url": file["file"]}


def kind(artifact: Mapping[str, Any]) -> str:
    if artifact.get("built"):
        return "built"
    if artifact["folder"] != "wheels":
        return "file"
    return "wheel" if artifact["name"].endswith(".whl") else "sdist"


def source(artifact: Mapping[str, Any]) -> str:
    """Where it comes from: an address, or pypi:PROJECT for the package index; empty if nothing fetches it."""
    return str(artifact.get("url", "")) or (f"pypi:{artifact['project']}" if "project" in artifact else "")
