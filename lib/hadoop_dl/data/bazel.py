"""What the role bazel does on a host: which versions are installed and removed, and every reason against the request.

Pure functions of what the role gives and of what the module bazel_info read; the filter of plugins/filter/bazel.py.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hadoop_dl.data import compat
from hadoop_dl.data.versions import numbers

Json = dict[str, Any]
URL = re.compile(r"^(https?|file)://")
SHA256 = re.compile(r"[0-9a-f]{64}")
RELEASES = "https://github.com/bazelbuild/bazel/releases/tag"
FILES = {"binary": "bazel-{0}-linux-x86_64", "bootstrap": "bazel-{0}-dist.zip"}
TOOLS = {
    "compiler": "a C++ compiler (g++)",
    "python": "Python",
    "bash": "bash",
    "zip": "zip",
    "unzip": "unzip",
    "which": "which",
}


def work(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> Json:
    """install: versions that are missing or incomplete. remove: those that leave. problems: sentences; none of it is done if there is one.

    names: the packages of what is installed. repository_used: a version that stays came from the repository; repository_leaves: one that
    leaves did, and none that stays. nothing_left: no version of this project stays. leftovers: paths of compilations that did not end, which leave.
    """
    present = inputs["state"] == "present"
    missing = [text for text in inputs["versions"] if not is_complete(inputs, info, text)] if present else []
    leaving = [] if present else [text for text in inputs["versions"] or info["versions"] if is_managed(info, text)]
    staying = [text for text in info["versions"] if is_managed(info, text) and text not in leaving]
    repository_versions = [text for text in info["versions"] if info["versions"][text].get("source") == "repository"]
    return {
        "install": [item(inputs, info, text) for text in dict.fromkeys(missing)],
        "names": [{"name": inputs["package"], "version": text} for text in dict.fromkeys(missing)],
        "remove": [item(inputs, info, text) for text in leaving],
        "problems": list(problems(inputs, info, missing)),
        "repository_used": bool(set(repository_versions) & set(staying)),
        # Also if a removal that was killed has left nothing else.
        "repository_leaves": not present
        and not set(repository_versions) & set(staying)
        and (bool(set(repository_versions) & set(leaving)) or inputs["source"] == "repository"),
        "nothing_left": not present and not staying,
        "leftovers": [] if present else info["leftovers"],
    }


def is_managed(info: Mapping[str, Any], text: str) -> bool:
    return bool(info["versions"].get(text, {}).get("managed"))


def is_complete(inputs: Mapping[str, Any], info: Mapping[str, Any], text: str) -> bool:
    """Whether the host has the version from this source, from the file that the site names now."""
    entry = info["versions"].get(text, {})
    file = inputs["files"].get(text) or {}
    same_file = inputs["source"] == "repository" or not file.get("sha256") or file["sha256"] == entry.get("sha256")
    return bool(entry.get("complete") and entry.get("source") == inputs["source"] and same_file)


def item(inputs: Mapping[str, Any], info: Mapping[str, Any], text: str) -> Json:
    root = info["root"]
    entry = info["versions"].get(text, {})
    file = inputs["files"].get(text) or {}
    sha256 = str(file.get("sha256", ""))
    package = f"{inputs['package']}-{text}" if not info["package"].get("name") or is_ours(info) else ""
    return {
        "version": text,
        "title": f"bazel {text}",
        "file": file.get("file", ""),
        "sha256": sha256,
        "download": f"{info['work']}/download-{text}",
        "directory": f"{info['work']}/source-{text}-{sha256[:12]}",
        "log": f"{root}/bootstrap-{text}.log",
        "program": f"{root}/{text}/bin/bazel",
        "managed": is_managed(info, text),
        "package": package,
        "installed_package": entry.get("package", ""),
    }


def is_ours(info: Mapping[str, Any]) -> bool:
    """Whether this project installed the package that the host has: a mark names it, in full or (of a killed run) without its release."""
    marks = [entry["package"] for entry in info["versions"].values() if entry.get("package")]
    return any(f"{info['package']['name']}-".startswith(f"{mark}-") for mark in marks)


def problems(inputs: Mapping[str, Any], info: Mapping[str, Any], missing: list[str]) -> Iterator[str]:
    wrong = [text for text in inputs["versions"] if not re.fullmatch(r"\d+(\.\d+)+", str(text))]
    if wrong:
        yield f'bazel_versions needs exact versions such as "0.26.1" (quoted), but has {", ".join(map(str, wrong))}. Correct the inventory.'
        return
    for text in missing:
        entry = info["versions"].get(text)
        if entry and not entry["managed"]:
            yield (
                f"bazel {text} must be installed in {info['root']}/{text}, but what is there is not managed by this project: it was not changed. "
                "Leave the version out of bazel_versions to keep that one, or remove it and run this again."
            )
        elif entry and entry.get("source", inputs["source"]) != inputs["source"]:
            yield (
                f"bazel {text} must be installed from bazel_source {inputs['source']}, but the installed one is from {entry['source']}. Remove it "
                "first (bazel_state: absent with that bazel_source), or leave it out of bazel_versions."
            )
    if missing:
        yield from {"binary": of_binary, "repository": of_repository, "bootstrap": of_bootstrap}[inputs["source"]](
            inputs, info, missing
        )


def of_binary(inputs: Mapping[str, Any], info: Mapping[str, Any], missing: list[str]) -> Iterator[str]:
    if info["architecture"] != "x86_64":
        yield (
            f"bazel's executables are for x86_64, but this host is {info['architecture']}. Set bazel_source: bootstrap."
        )
    yield from of_files(inputs, missing)


def of_files(inputs: Mapping[str, Any], missing: list[str]) -> Iterator[str]:
    for text in missing:
        file = inputs["files"].get(text) or {}
        if not file.get("file") or not SHA256.fullmatch(str(file.get("sha256", ""))):
            name = FILES[inputs["source"]].format(text)
            yield (
                f"bazel {text} requires {name} with its sha256, but bazel_files has none for it. Get it from {RELEASES}/{text}, compare its "
                f'sha256, and set bazel_files: {{"{text}": {{file: URL, sha256: …}}}}.'
            )


def of_repository(inputs: Mapping[str, Any], info: Mapping[str, Any], missing: list[str]) -> Iterator[str]:
    if not info["manager"]:
        yield (
            "bazel_source: repository requires dnf or yum, but this host has neither. Set bazel_source: binary or bootstrap."
        )
    installed = info["package"]
    if installed.get("name") and not is_ours(info) and [installed["version"]] != missing:
        yield (
            f"bazel {', '.join(missing)} requires the package {inputs['package']} in this version, but the host has {installed['name']}, which "
            "this project did not install. Remove that package, or set bazel_source: binary, which leaves it as it is."
        )


def of_bootstrap(inputs: Mapping[str, Any], info: Mapping[str, Any], missing: list[str]) -> Iterator[str]:
    """Everything that is missing on the host at once, before something is fetched."""
    if info["is_root"]:
        yield (
            "bazel_source: bootstrap compiles as an unprivileged user, but this is root. Set become: false and a user with a home directory."
        )
    yield from of_files(inputs, missing)
    local = [text for text in missing if not URL.match(str((inputs["files"].get(text) or {}).get("file") or "http://"))]
    if local:
        yield f"bazel_source: bootstrap requires URLs in bazel_files, but has a path for {', '.join(local)}. Serve the file over HTTP."
    link, tools = info["link"], info["tools"]
    if link["target"] and not link["target"].startswith(info["root"] + "/"):
        yield f"{link['path']} must be a link to bazel, but something else has this name. Rename it and run this again."
    missing_tools = [description for tool, description in TOOLS.items() if not tools.get(tool)]
    java = tools["jdk"]
    if not java["javac"]:
        place = f" in JAVA_HOME ({java['home']})" if java["home"] else ""
        missing_tools = [
            f"a JDK (javac{place}): {' or '.join(jdks(missing[0], verified=False)) or 'as its release says'}",
            *missing_tools,
        ]
    if missing_tools:
        yield (
            f"Compiling bazel {', '.join(missing)} requires what is missing on this host: {'; '.join(missing_tools)}. Install it, or name other places in "
            "bazel_environment (PATH, JAVA_HOME, CXX)."
        )
    for text in missing if java["javac"] else []:
        fitting = jdks(text)
        if fitting and java["version"] not in fitting:
            yield (
                f"Compiling bazel {text} requires JDK {' or '.join(fitting)}, but {java['javac']} is version {java['version'] or 'unknown'}. "
                "Name another one in bazel_environment (JAVA_HOME)."
            )


def jdks(text: str, *, verified: bool = True) -> list[str]:
    """The JDKs that compile a version of bazel, as far as it is known (and verified); empty if it is not."""
    for row in compat.load().rows("bazel", "bootstrap"):
        if numbers(row["first"]) <= numbers(text) < numbers(row["before"]) and (row["verified"] or not verified):
            return list(row["jdk"])
    return []
