#!/usr/bin/python
"""Have one version of bazel in a directory of its own, complete and marked, or remove it."""

DOCUMENTATION = r"""{
"module": "bazel_program",
"short_description": "Install one version of bazel below a directory, completely or not at all",
"description": [
  "Copies the executable beside its place, checks that it is this version and that the host has its libraries, marks it, and renames.",
  "With C(state=begun) a version that is missing gets a mark alone, so that a run after a killed one knows its package.",
  "With C(state=absent) the version is removed if this project installed it. Whatever has no mark is left alone."],
"options": {
  "root": {"description": "Directory of the versions", "type": "path", "required": true},
  "version": {"description": "The version", "type": "str", "required": true},
  "program": {"description": "The executable, on the host; required for C(state=present)", "type": "path"},
  "source": {"description": "Where it came from", "type": "str"},
  "sha256": {"description": "The sha256 of the file that the site named, if there was one", "type": "str", "default": ""},
  "package": {"description": "The package that this project installs for it, which the mark names in full once it is there", "type": "str", "default": ""},
  "wait": {"description": "Seconds for another run to end", "type": "int", "default": 600},
  "state": {"description": "Whether the host must have it", "type": "str", "choices": ["present", "begun", "absent"], "default": "present"}
}}"""

RETURN = r"""
path: {description: The executable, type: str, returned: success}
"""

import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    atomic_files,
    bazel_versions,
    disk_space,
    documented,
    processes,
    replaced_directory,
)
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking


class Refused(Exception):
    """Why it was not installed; nothing was changed."""


def put(place, program, mark):
    """Copy, mark, rename. Raises OSError or IOError, and then what was there stays.

    The mark is complete when nothing is left to do, so a run after one that was killed comes here again.
    """

    def fill(new):
        disk_space.require(os.path.dirname(place), os.path.getsize(program), 4)
        os.mkdir(os.path.join(new, "bin"), 0o755)
        target = os.path.join(new, bazel_versions.PROGRAM)
        shutil.copyfile(program, target)
        os.chmod(target, 0o755)  # noqa: S103 (every user builds with it)
        atomic_files.sync_path(target)
        mark["program"] = atomic_files.sha256_of(target)
        write_mark(new, dict(mark, program=""))

    replaced_directory.build(place, hidden(place) + ".old", fill)
    write_mark(place, mark)


def write_mark(place, mark):
    atomic_files.write_json(os.path.join(place, bazel_versions.MARK), mark)


def hidden(place):
    return os.path.join(os.path.dirname(place), "." + os.path.basename(place))


def full_name(package):
    answer = processes.run(["rpm", "--query", package], bazel_versions.SECONDS) if package else None
    return answer.output.splitlines()[-1] if answer and answer.status == 0 and answer.output else ""


def remove(params, place, checking):
    managed = bazel_versions.read_mark(place) is not None
    if not checking:
        replaced_directory.recover(place, hidden(place) + ".old")
        if managed:
            shutil.rmtree(place)
    return managed


def begin(params, place, checking):
    if not checking:
        replaced_directory.recover(place, hidden(place) + ".old")
    if os.path.lexists(place):
        return False
    if not checking:
        mark = {"source": params["source"], "sha256": "", "package": params["package"], "program": ""}
        replaced_directory.build(place, hidden(place) + ".old", lambda new: write_mark(new, mark))
    return True


def install(params, place, checking):
    if os.path.lexists(place) and bazel_versions.read_mark(place) is None:
        raise Refused("%s is not managed by this project; it was not touched" % place)
    if not checking:
        problem = bazel_versions.problem(params["program"], params["version"])
        if problem:
            raise Refused("%s must be bazel %s, but %s" % (params["program"], params["version"], problem))
        mark = {"source": params["source"], "sha256": params["sha256"], "package": full_name(params["package"])}
        put(place, params["program"], mark)
    return True


def main():
    module = AnsibleModule(
        argument_spec=documented.options(DOCUMENTATION),
        required_if=[("state", "present", ["program", "source"])],
        supports_check_mode=True,
    )
    os.umask(0o022)  # other users build with it, whatever root's umask is
    place = os.path.join(module.params["root"], module.params["version"])
    path = os.path.join(place, bazel_versions.PROGRAM)
    act = {"present": install, "begun": begin, "absent": remove}[module.params["state"]]
    try:
        lock = HostLock("bazel %s" % module.params["version"], module.params["wait"], module.params["root"])
        with unless_checking(module, lock):
            changed = act(module.params, place, module.check_mode)
    except (Refused, HostLocked) as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(msg=disk_space.explained(error, module.params["root"]))
    module.exit_json(changed=changed, path=path)


if __name__ == "__main__":
    main()
