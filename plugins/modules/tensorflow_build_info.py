#!/usr/bin/python
"""Read what a host has for building TensorFlow. Changes nothing."""

DOCUMENTATION = r"""{
"module": "tensorflow_build_info",
"short_description": "Read memory, disk, compilers, Python's headers and packages, bazel, CUDA and cuDNN of a build host",
"description": ["Answers with one mapping, C(tensorflow_build_info). Reads only, and therefore runs in check mode."],
"options": {
  "root": {"description": "Directory of the builds", "type": "path", "required": true},
  "user": {"description": "Account that builds", "type": "str", "required": true},
  "python": {"description": "The interpreter that the wheel is for", "type": "str", "required": true},
  "path": {"description": "Where programs are looked for", "type": "list", "elements": "str", "required": true},
  "bazel": {"description": "The executable of bazel", "type": "str", "required": true},
  "compiler": {"description": "The C compiler", "type": "str", "required": true},
  "clang": {"description": "The executable of clang", "type": "str", "default": ""},
  "cuda": {"description": "The CUDA toolkit's directory", "type": "str", "default": ""},
  "cudnn": {"description": "The directory with cuDNN's include and lib64", "type": "str", "default": ""}
}}"""

RETURN = r"""
tensorflow_build_info: {description: What was read, type: dict, returned: always}
"""

import json
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    atomic_files,
    bazel_versions,
    disk_space,
    documented,
    host_system,
    ledger,
    lockfile,
    processes,
)
from ansible.module_utils.hadoop_dl_host.processes import which

SECONDS = 60
PROGRAMS = ("git", "objdump")
# Its answer is one line of JSON: what a build takes from the interpreter and from its packages.
QUESTION = "; ".join(
    (
        "import json, sys, sysconfig, os",
        "directory = sysconfig.get_path('include')",
        "found = {'version': '%d.%d' % sys.version_info[:2], 'include': os.path.isfile(os.path.join(directory, 'Python.h')), 'headers': directory}",
        "found['abi'] = sysconfig.get_config_var('SOABI') or ('cp27mu' if sys.maxunicode > 65535 else 'cp27m')",
        "found['site'] = [path for path in sys.path if path.endswith(('site-packages', 'dist-packages'))]",
        "print(json.dumps(found))",
    )
)


def ask(*argv):
    """What a program prints; it does not run as root if other users can change it."""
    user = processes.unprivileged([argv[0]])
    return processes.run(list(argv), SECONDS, {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}, user)


def python(interpreter):
    """Version, ABI, headers and packages of an interpreter; empty if it does not answer."""
    user = processes.unprivileged([interpreter]) if os.path.exists(interpreter) else None
    answer = processes.run([interpreter, "-s", "-E", "-c", QUESTION], SECONDS, {"LC_ALL": "C"}, user)
    try:
        answers = json.loads(answer.output)
    except ValueError:
        return {}
    answers["packages"] = {}
    for place in answers["site"]:
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else []:
            match = re.match(r"^([A-Za-z0-9_.]+)-([^-]+)\.(dist|egg)-info", name)
            if match:
                answers["packages"].setdefault(lockfile.canonical(match.group(1)), match.group(2))
    return answers


def compiler(path):
    """A compiler's version, such as 4.8.5; empty if there is none."""
    answer = ask(path, "-dumpfullversion", "-dumpversion") if path else None
    match = re.search(r"\d+(\.\d+)*", answer.output) if answer and answer.status == 0 else None
    return match.group() if match else ""


def clang(path):
    answer = ask(path, "--version") if path else None
    match = re.search(r"version (\d+(\.\d+)*)", answer.output) if answer and answer.status == 0 else None
    return match.group(1) if match else ""


def foreign_entries(root):
    """What is in a directory that no build used: builds write and remove there."""
    if root in [row["path"] for row in ledger.rows("tensorflow_build", kind="place")] or not os.path.lexists(root):
        return []
    return sorted(set(os.listdir(root)) - set(["lost+found"])) if os.path.isdir(root) else ["another kind of file"]


def headers(directory, names, pattern):
    """The digest of the first of these headers, and what the pattern finds in it."""
    for name in names:
        path = os.path.join(directory, "include", name)
        text = host_system.text(path)
        if text is not None:
            return {"path": path, "sha256": atomic_files.sha256_of(path), "found": re.findall(pattern, text)}
    return {"path": "", "sha256": "", "found": []}


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    system = host_system.System()
    bazel = params["bazel"] if os.path.isfile(params["bazel"]) else ""
    info = {
        "os": system.operating_system(),
        "architecture": os.uname()[4],
        "foreign_entries": foreign_entries(params["root"].rstrip("/"))[:5],
        "has_user": processes.has_account(params["user"]),
        "glibc": system.glibc(),
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024),
        "cores": os.sysconf("SC_NPROCESSORS_ONLN"),
        "disk_free_mb": disk_space.free(params["root"])[0] >> 20,
        "tools": dict((name, which(name, params["path"])) for name in PROGRAMS),
        "compiler": {"path": which(params["compiler"], params["path"])},
        "clang": {"path": which(params["clang"], params["path"]) if params["clang"] else ""},
        "python": python(params["python"]),
        "bazel": {"path": bazel},
        "cuda_headers": headers(params["cuda"], ["cuda.h"], r"#define CUDA_VERSION (\d+)") if params["cuda"] else {},
        "nvcc": which("nvcc", [os.path.join(params["cuda"], "bin")]) if params["cuda"] else "",
        "cudnn_headers": headers(
            params["cudnn"] or params["cuda"],
            ["cudnn_version.h", "cudnn.h"],
            r"#define CUDNN_(?:MAJOR|MINOR|PATCHLEVEL) (\d+)",
        )
        if params["cuda"]
        else {},
    }
    info["compiler"]["version"] = compiler(info["compiler"]["path"])
    info["clang"]["version"] = clang(info["clang"]["path"])
    if bazel:
        label = bazel_versions.label(bazel) or bazel_versions.packaged(bazel) or ""
        info["bazel"].update(version=label.split("-")[0], sha256=atomic_files.sha256_of(bazel))
    module.exit_json(changed=False, tensorflow_build_info=info)


if __name__ == "__main__":
    main()
