#!/usr/bin/python
"""Start a build of TensorFlow in the background, or ask how far it is."""

DOCUMENTATION = r"""{
"module": "tensorflow_build",
"short_description": "Build TensorFlow's wheel in the background, once for the same inputs",
"description": [
  "C(started) answers at once. A wheel that is published under the key is not built again; a build of the key that runs is followed; one of another key is refused.",
  "The build goes on when the connection or the controller is lost. One that was killed is resumed from bazel's own cache.",
  "C(asked) tells how far it is. The action plugin of the same name asks until it ends."],
"options": {
  "root": {"description": "Directory of builds and published wheels", "type": "path", "required": true},
  "key": {"description": "Digest of everything that decides the wheel", "type": "str", "required": true, "no_log": false},
  "spec": {"description": "What is built and how; lib/hadoop_dl/data/tensorflow_build.py makes it", "type": "dict"},
  "state": {"description": "Whether to start it or to ask", "type": "str", "choices": ["started", "asked"], "default": "started"}
}}"""

RETURN = r"""
build_state: {description: "done, running, failed, stopped (it was killed), or none", type: str, returned: always}
step: {description: Which step it is at, type: str, returned: always}
actions: {description: bazel's counters, type: list, returned: when it runs}
provenance: {description: What the wheel is made of, type: dict, returned: when it is done}
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, background, documented, environment_tree, processes
from ansible.module_utils.hadoop_dl_host import tensorflow_builder as builder
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, is_held

HELD, TAKEN, BUILT = b"held", b"taken", b"built"
SETTLING = 10  # seconds for whoever holds the lock to tell which wheel it builds, or to release it
PAUSE = 0.1


def running_key(root):
    """Of the build that runs; empty if none does, or if the one that runs has not told its key yet."""
    record = environment_tree.read_json(os.path.join(root, "running.json"))
    return record.get("key", "") if record and os.path.exists("/proc/%s" % record.get("pid")) else ""


def progress(root, key):
    """How far the build of this key is."""
    provenance = builder.published(root, key)
    if provenance:
        return {"build_state": "done", "step": "publish", "provenance": provenance, "message": ""}
    path = os.path.join(root, "builds", key, "status.json")
    status = environment_tree.read_json(path)
    if status and status["state"] == "running" and not (is_held(root) and running_key(root) == key):
        status = environment_tree.read_json(path)  # it may have ended since it was read
        if status["state"] == "running":
            status["state"] = "stopped"
        elif status["state"] == "done":
            return progress(root, key)
    if not status or status["state"] == "done":  # what it published is damaged or gone
        return {"build_state": "none", "step": "", "message": ""}
    text = builder.tail(status["log"], 8192) if status["step"] == "build" else ""
    return {
        "build_state": status["state"],
        "step": status["step"],
        "message": status["message"],
        "actions": builder.counters(text.rpartition("\n$ ")[2]) or [],
        "log": status["log"],
    }


def build(root, key, spec, sending):
    """The build, in a process that nobody waits for. It tells its caller whether it has the host's lock."""
    try:
        with HostLock("building TensorFlow %s (%s)" % (spec["version"], key), 0, root):
            if builder.published(root, key):  # by another start, after this one had asked
                os.write(sending, BUILT)
                return
            work = builder.Build(root, key, spec)
            atomic_files.write_json(os.path.join(root, "running.json"), {"key": key, "pid": os.getpid()})
            work.tell("running", builder.Build.STEPS[0])
            os.write(sending, TAKEN)
            os.close(sending)
            work.run()
    except HostLocked:
        os.write(sending, HELD)


def attempt(root, key, spec):
    """Try to start the build: TAKEN if it runs now, HELD if somebody has the lock, BUILT if there is nothing to do."""
    return background.start(lambda sending: build(root, key, spec, sending))


def start(module, root, key, spec):
    """Whether this start began the build. Who asks holds the lock for a moment, and a build that has just begun has not told its key yet."""
    for name in ("builds", "source", "published", os.path.join("builds", key)):
        atomic_files.make_directory(os.path.join(root, name))
    end = processes.clock() + SETTLING
    while True:
        answer = attempt(root, key, spec)
        other_key = running_key(root) if answer == HELD else ""
        if answer != HELD or other_key == key:
            return answer == TAKEN
        if other_key:
            module.fail_json(
                msg="One build at a time runs on this host, but that of another wheel (%s) runs now. Nothing was changed. Wait until it ends, or end it: "
                "fuser -v %s/.lock" % (other_key[:12], root)
            )
        if processes.clock() > end:
            module.fail_json(
                msg="The lock %s/.lock is held, but no build tells of itself. Nothing was changed. Find who holds it: fuser -v %s/.lock"
                % (root, root)
            )
        time.sleep(PAUSE)


def main():
    module = AnsibleModule(
        argument_spec=documented.options(DOCUMENTATION),
        required_if=[("state", "started", ["spec"])],
        supports_check_mode=True,
    )
    os.umask(0o022)
    root, key = module.params["root"], module.params["key"]
    status = progress(root, key)
    if module.params["state"] == "asked" or status["build_state"] == "done":
        module.exit_json(changed=False, **status)
    if module.check_mode:
        module.exit_json(changed=status["build_state"] != "running", **status)
    changed = start(module, root, key, module.params["spec"])
    module.exit_json(changed=changed, **progress(root, key))


if __name__ == "__main__":
    main()
