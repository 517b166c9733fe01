#!/usr/bin/python
"""Read which versions of bazel a host has and what it could compile one with. Changes nothing."""

DOCUMENTATION = r"""{
"module": "bazel_info",
"short_description": "Read the versions of bazel below a directory, the package, and the tools of a bootstrap",
"description": ["Answers with one mapping, C(bazel_info). Reads only, and therefore runs in check mode."],
"options": {
  "root": {"description": "Directory of the versions; C(bazel) in the user's home when empty", "type": "str", "default": ""},
  "package": {"description": "Also ask rpm for this package", "type": "str", "default": ""},
  "tools": {"description": "Also look for what a bootstrap requires", "type": "bool", "default": false},
  "environment": {"description": "Variables of the bootstrap; a parameter, because they may be secret", "type": "dict", "default": {}, "no_log": true}
}}"""

RETURN = r"""
bazel_info: {description: What was read, type: dict, returned: always}
"""

import os
import platform
import pwd
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import bazel_versions, command_results, documented, processes
from ansible.module_utils.hadoop_dl_host.processes import which

PROGRAMS = ("bash", "zip", "unzip", "which")
COMPILERS = ("g++", "c++", "clang++")


def ask(*argv):
    return processes.run(list(argv), bazel_versions.SECONDS, dict(os.environ, LC_ALL="C"))


def installed(package):
    """NAME-VERSION-RELEASE.ARCH of an installed package and its version; both empty if it is not installed."""
    answer = ask("rpm", "--query", "--queryformat", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH} %{VERSION}\\n", package)
    fields = answer.output.splitlines()[-1].split() if answer.status == 0 and answer.output else ["", ""]
    return {"name": fields[0], "version": fields[1]}


def jdk():
    """The Java compiler that compile.sh takes (that of JAVA_HOME, else of PATH), and its version: 8, 11."""
    home = os.environ.get("JAVA_HOME", "")
    path = os.path.join(home, "bin", "javac") if home else which("javac")
    if not path or not os.access(path, os.X_OK):
        return {"javac": "", "version": "", "home": home}
    answer = ask(path, "-version")  # JDK 8 answers on standard error
    match = re.search(r"javac (?:1\.)?(\d+)", answer.output + answer.error)
    home = home or os.path.dirname(os.path.dirname(os.path.realpath(path)))
    return {"javac": path, "version": match.group(1) if match else "", "home": home}


def tools():
    programs = dict((name, which(name)) for name in PROGRAMS)
    programs["python"] = which("python") or which("python3") or which("python2")
    compiler = os.environ.get("CXX", "")
    names = (compiler,) if compiler else COMPILERS
    programs["compiler"] = next((path for path in map(which, names) if path), "")
    return programs


def link_target(path):
    """Where a link points to; empty if nothing has the name, "-" for something other than a link."""
    if os.path.islink(path):
        return os.readlink(path)
    return "-" if os.path.lexists(path) else ""


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    command_results.use_environment(module)
    user = pwd.getpwuid(os.geteuid())
    home = os.environ.get("HOME") or user.pw_dir
    root = params["root"] or os.path.join(home, "bazel")
    link = os.path.join(home, "bin", "bazel")
    info = {
        "root": root,
        "work": os.path.join(root, bazel_versions.WORK),
        "home": home,
        "user": user.pw_name,
        "is_root": user.pw_uid == 0,
        "architecture": platform.machine(),
        "manager": next((name for name in ("dnf", "yum") if which(name)), ""),
        "versions": bazel_versions.versions(root),
        "leftovers": bazel_versions.leftovers(root),
        "package": installed(params["package"]) if params["package"] else {},
        "link": {"path": link, "target": link_target(link)},
        "tools": dict(tools(), jdk=jdk()) if params["tools"] else {},
    }
    module.exit_json(changed=False, bazel_info=info)


if __name__ == "__main__":
    main()
