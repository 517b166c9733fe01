#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Start a build of TensorFlow in the background, or ask how far it is."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: tensorflow_build
short_description: Build TensorFlow's wheel in the background, once for the same inputs
description:
  - C(started) answers at once. A wheel that is published under the key is not built again; a build of the key that runs is followed; one of another key is refused.
  - The build goes on when the connection or the controller is lost. One that was killed is resumed from bazel's own cache.
  - C(asked) tells how far it is. The action plugin of the same name asks until it ends.
options:
  root: {description: Directory of builds and published wheels, type: path, required: true}
  key: {description: Digest of everything that decides the wheel, type: str, required: true}
  spec: {description: What is built and how; lib/hadoop_dl/data/tensorflow_build.py makes it, type: dict}
  state: {description: Whether to start it or to ask, type: str, choices: [started, asked], default: started}
"""

RETURN = r"""
build_state: {description: "done, running, failed, stopped (it was killed), or none", type: str, returned: always}
step: {description: Which step it is at, type: str, returned: always}
actions: {description: bazel's counters, type: list, returned: when it runs}
provenance: {description: What the wheel is made of, type: dict, returned: when it is done}
"""

import os

from ansible.module_utils import tensorflow_builder as builder
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_lock import HostLock, HostLocked

HELD, TAKEN = b"held", b"taken"


def running_key(root):
    found = builder.read_json(os.path.join(root, "running.json"))
    return found.get("key", "") if found else ""


def is_held(root):
    """Whether a build runs."""
    try:
        with HostLock("a question", 0, root):
            return False
    except HostLocked:
        return True


def progress(root, key):
    """How far the build of this key is."""
    done = builder.published(root, key)
    if done:
        return {"build_state": "done", "step": "publish", "provenance": done, "message": ""}
    status = builder.read_json(os.path.join(root, "builds", key, "status.json"))
    if not status:
        return {"build_state": "none", "step": "", "message": ""}
    state = status["state"]
    if state == "running" and not (is_held(root) and running_key(root) == key):
        state = "stopped"
    text = builder.tail(status["log"], 8192) if status["step"] == "build" else ""
    return {
        "build_state": state,
        "step": status["step"],
        "message": status["message"],
        "actions": builder.counters(text.rpartition("\n$ ")[2]) or [],
        "log": status["log"],
    }


def detach():
    """A session of its own, and none of the caller's files: who waits for the end of these does not wait for it."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)


def background(root, key, spec, sending):
    """The build, in a process that nobody waits for. It tells its caller whether it has the host's lock."""
    detach()
    if os.fork():
        os._exit(0)
    try:
        with HostLock("building TensorFlow %s (%s)" % (spec["version"], key), 0, root):
            build = builder.Build(root, key, spec)
            builder.write_json(os.path.join(root, "running.json"), {"key": key, "pid": os.getpid()})
            build.tell("running", builder.Build.STEPS[0])
            os.write(sending, TAKEN)
            os.close(sending)
            build.run()
    except HostLocked:
        os.write(sending, HELD)
    finally:
        os._exit(0)


def start(module, root, key, spec):
    for name in ("builds", "source", "published", os.path.join("builds", key)):
        path = os.path.join(root, name)
        if not os.path.isdir(path):
            os.makedirs(path, 0o755)
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        background(root, key, spec, sending)
    os.close(sending)
    os.waitpid(child, 0)
    answer = os.read(receiving, 16)
    os.close(receiving)
    if answer == HELD and running_key(root) != key:
        module.fail_json(
            msg="One build at a time runs on this host, but that of another wheel (%s) runs now. Nothing was changed. Wait until it ends, or end it: "
            "fuser -v %s/.lock" % (running_key(root)[:12], root)
        )
    return answer == TAKEN


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "key": {"type": "str", "required": True, "no_log": False},
            "spec": {"type": "dict"},
            "state": {"type": "str", "choices": ["started", "asked"], "default": "started"},
        },
        required_if=[("state", "started", ["spec"])],
        supports_check_mode=True,
    )
    os.umask(0o022)
    root, key = module.params["root"], module.params["key"]
    found = progress(root, key)
    if module.params["state"] == "asked" or found["build_state"] == "done":
        module.exit_json(changed=False, **found)
    if module.check_mode:
        module.exit_json(changed=found["build_state"] != "running", **found)
    begun = start(module, root, key, module.params["spec"])
    module.exit_json(changed=begun, **progress(root, key))


if __name__ == "__main__":
    main()
