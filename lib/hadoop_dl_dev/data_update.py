"""scripts/stack data --update: what is new on PyPI as rows of compat/, printed as a diff. Nothing is written.

A row has what PyPI says: files, days, METADATA. What a person must look up (what is inside a wheel, what NVIDIA's pages say) is
`verified: false`, or is named on stderr.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from email.parser import HeaderParser
from typing import Any

from ansible.module_utils.hadoop_dl_host import mirror_index
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hadoop_dl.cli.arguments import Parser
from hadoop_dl.data.compat import DIRECTORY, Compat, Row, load
from hadoop_dl.resolver.versions import version
from hadoop_dl_dev import data_check, xid_module

File = Mapping[str, Any]
Files = Callable[[str], list[File]]  # of a project: filename, url, size, upload-time, requires-python
WHEELS = {"tensorflow": "gpu", "tensorflow-cpu": "cpu"}


def fetch_files(project: str) -> list[File]:
    """The index's page of a project with the days and the Pythons, which the mirror has no use for."""
    url = f"{mirror_index.index_address(None)}/{project}/"
    with mirror_index.open_url(url, {"Accept": "application/vnd.pypi.simple.v1+json"}) as answer:
        files: list[File] = json.load(answer)["files"]
    return files


def of_release(files: Iterable[File], release: str) -> list[File]:
    return [file for file in files if re.match(rf"[\w.]+-{re.escape(release)}(-|\.tar|\.zip)", file["filename"])]


def common(project: str, files: list[File], release: str) -> Row:
    days = sorted(str(file.get("upload-time") or "")[:10] for file in files)
    return {"released": days[0], "source": [f"https://pypi.org/project/{project}/{release}/#files"]}


def keras_row(compat: Compat, files: Files, release: str, metadata: data_check.Metadata) -> Row:
    own = of_release(files("keras"), release)
    return {
        "version": release,
        "requires_python": own[0].get("requires-python"),
        "verified": True,
        **common("keras", own, release),
    }


def cudnn_row(compat: Compat, files: Files, release: str, metadata: data_check.Metadata) -> Row:
    """The capabilities are those of the release before: only NVIDIA's support matrix has them."""
    base_row = max(compat.rows("cuda", "cudnn"), key=lambda row: version(row["version"]))
    fields = {key: base_row[key] for key in ("soname", "min_cc", "cuda") if key in base_row}
    source = [*base_row["source"][:1], "https://pypi.org/project/nvidia-cudnn-cu12/#files"]
    return {"version": release, **fields, "soname": version(release).major, "source": source, "verified": False}


def tensorflow_row(compat: Compat, files: Files, release: str, metadata: data_check.Metadata) -> Row | None:
    """A release of a line that is in the data; what its wheels contain is assumed to be as in the release before."""
    line = ".".join(release.split(".")[:2])
    base_row = next((row for row in reversed(compat.rows("tensorflow", "releases")) if row["line"] == line), None)
    wheels: list[Row] = []
    first: File = {}
    for project, variant in WHEELS.items() if base_row else ():
        matches = [(file, data_check.WHEEL.fullmatch(file["filename"])) for file in of_release(files(project), release)]
        own = [(file, match) for file, match in matches if match]
        if own:
            wheel = {
                "package": project,
                "variant": variant,
                "abis": sorted({match["abi"] for _, match in own}, key=lambda abi: int(abi[3:].rstrip("mu") or 0)),
                "platform_tag": own[0][1]["platform"],
                "requires_python": own[0][0].get("requires-python"),
                "size_mb": max(int(file["size"]) for file, _ in own) // 1_000_000,
            }
            wheels.append({key: value for key, value in wheel.items() if value is not None})
            first = first or own[0][0]
    if base_row is None or not wheels:
        return None
    text = metadata({"url": first["url"], "size": first["size"], "name": first["filename"]})
    parts = {
        key: {name: spec for name in base_row.get(key) or {} if (spec := required(text, name, key == "and_cuda"))}
        for key in ("requires", "and_cuda")
    }
    row = {"version": release, "line": line, "wheels": wheels, **parts, "verified": False}
    return {key: value for key, value in {**row, **common("tensorflow", [first], release)}.items() if value != {}}


def required(text: str, name: str, extra: bool) -> str:
    """The requirement of a package in METADATA, always or for and-cuda. Forms for several Pythons are joined by |."""
    forms = set()
    for line in HeaderParser().parsestr(text).get_all("Requires-Dist") or []:
        need = Requirement(line)
        marker = str(need.marker or "").replace('"', "'")
        if canonicalize_name(need.name) == name and ("and-cuda" in marker) == extra:
            forms.add(f"{need.specifier} ; {marker}" if "python_version" in marker else str(need.specifier))
    return " | ".join(sorted(forms))


ROWS: dict[str, Callable[[Compat, Files, str, data_check.Metadata], Row | None]] = {
    "keras": keras_row,
    "nvidia-cudnn-cu12": cudnn_row,
    "tensorflow": tensorflow_row,
}


def row_lines(row: Row) -> list[str]:
    """A row as YAML: each value as JSON, which YAML reads; mappings and lists of mappings have lines of their own."""
    lines = []
    for key, value in row.items():
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {name}: {json.dumps(item)}" for name, item in value.items())]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"{key}:")
            lines += [f"  {line}" for item in value for line in row_lines(item)]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return [("  - " if place == 0 else "    ") + line for place, line in enumerate(lines)]


def inserted(text: str, row: Row) -> str:
    """The file with a row after the one of the next older version."""
    places = [
        (version(match[1]), match.end())
        for match in re.finditer(r'^  - version: "([\d.]+)"\n(?:    .*\n)*', text, re.MULTILINE)
        if version(match[1]) < version(row["version"])
    ]
    place = max(places)[1]
    return text[:place] + "\n".join(row_lines(row)) + "\n" + text[place:]


def spark_line(text: str, release: str) -> str:
    """The file with a release of PySpark in the list of its line; unchanged if there is no such line."""
    line = re.escape(".".join(release.split(".")[:2]))
    pattern = rf'(  - line: "{line}"\n    latest: ")[\d.]+("\n    releases: \[[^\]]*)\]'
    return re.sub(pattern, rf'\g<1>{release}\g<2>, "{release}"]', text)


def as_read_today(text: str, today: str) -> str:
    text = re.sub(r'^checked: ".*"$', f'checked: "{today}"', text, count=1, flags=re.MULTILINE)
    return re.sub(r'(source: "https://pypi.org", until: )"[^"]*"', rf'\g<1>"{today}"', text, count=1)


def proposal(
    compat: Compat,
    differences: Iterable[data_check.Difference],
    files: Files,
    metadata: data_check.Metadata,
    today: str,
) -> tuple[str, list[str]]:
    """A diff of compat/ with the rows of what is newer or missing, and what a person must look up."""
    texts: dict[str, str] = {}
    by_hand = []
    for item in differences:
        path = f"{item.subject}.yml"
        old = texts.get(path) or (DIRECTORY / path).read_text(encoding="utf-8") if item.subject else ""
        new = old
        if item.project == "pyspark":
            new = spark_line(old, item.release)
        elif item.project in ROWS:
            row = ROWS[item.project](compat, files, item.release, metadata)
            new = inserted(old, row) if row else old
        if new == old:  # tensorflow-cpu is in the row of tensorflow
            by_hand += [] if f'  - version: "{item.release}"\n' in old and item.subject == "tensorflow" else [str(item)]
        else:
            texts[path] = new
    return "".join(diff_lines(texts, today)), by_hand


def diff_lines(texts: Mapping[str, str], today: str) -> Iterator[str]:
    for path, text in texts.items():
        old = (DIRECTORY / path).read_text(encoding="utf-8").splitlines(keepends=True)
        new = as_read_today(text, today).splitlines(keepends=True)
        yield from difflib.unified_diff(old, new, f"a/compat/{path}", f"b/compat/{path}")


def update(compat: Compat, differences: Iterable[data_check.Difference]) -> int:
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    diff, by_hand = proposal(compat, differences, fetch_files, data_check.fetch_metadata, today)
    print(diff, end="")
    for text in by_hand:
        print(f"No row from PyPI alone. {text}", file=sys.stderr)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: nothing is missing or wrong; 1: something is."""
    words = list(arguments or ())
    if words[:1] == ["gpus"]:
        from hadoop_dl_dev import gpu_table

        return gpu_table.main(words[1:])
    if words == ["xids"]:
        return xid_module.main()
    from hadoop_dl.cli import mirror

    parser = Parser(
        prog="stack data",
        description="Compare compat/ with PyPI. `data gpus` writes the table of GPUs, `data xids` gpu-check's module of Xids.",
        allow_abbrev=False,
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true", help="print what is newer, missing or wrong")
    group.add_argument(
        "--update", action="store_true", help="print rows for what is newer or missing, as a diff: | git apply"
    )
    options = parser.parse_args(words)
    differences = data_check.differences(load(), mirror.offers, data_check.fetch_metadata)
    if options.update:
        return update(load(), [difference for difference in differences if difference.kind != "wrong"])
    for difference in differences:
        print(difference)
    count = {kind: sum(difference.kind == kind for difference in differences) for kind in ("newer", "missing", "wrong")}
    print(
        f"compat/ against PyPI: {count['newer']} newer there, {count['missing']} missing here, {count['wrong']} wrong."
    )
    return 1 if count["missing"] or count["wrong"] else 0
