#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Take or release a host for one whole run of the playbooks."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: run_lock
short_description: Take or release a host for one whole run of the playbooks
description:
  - C(/opt/deeplearning/.run.json) tells which run changes the host, from before its first change until its end. It is written and removed in one turn of the
    host's lock, so of two runs one has it.
  - The action plugin of the same name fills in the run, and decides whether the one that is found is dead.
options:
  state: {description: C(taken) or C(released), type: str, choices: [taken, released], required: true}
  run: {description: This run. C(id) tells runs apart; the rest is for people, type: dict, required: true}
  replace: {description: The C(id) of a dead run whose place is taken, type: str, default: ''}
  root: {description: Directory of this project on the host, type: path, default: /opt/deeplearning}
  wait: {description: Seconds for a step of another run on this host to end, type: int, default: 60}
"""

RETURN = r"""
holder: {description: The other run that has the host; empty where this one has it, type: dict, returned: always}
age: {description: Seconds since the other run took it, by the host's clock, type: int, returned: always}
machine: {description: What identifies the running system, type: dict, returned: always}
"""

import json
import os
import time

from ansible.module_utils import whole_files
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_lock import HostLock, HostLocked

NAME = ".run.json"


def first_line(path):
    try:
        with open(path) as handle:
            return handle.readline().strip()
    except (IOError, OSError):
        return ""


def machine():
    """The running system and the processes that are seen from here: a container has its own."""
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return {"boot": first_line("/proc/sys/kernel/random/boot_id"), "processes": processes}


def holder_of(path):
    """The run that has the host, and for how long; a torn record is a run of which nothing is known."""
    try:
        with open(path) as handle:
            found = json.load(handle)
        age = time.time() - os.stat(path).st_mtime
    except (IOError, OSError):
        return {}, 0
    except ValueError:
        return {"id": "unknown"}, 0
    return (found if isinstance(found, dict) and found.get("id") else {"id": "unknown"}), max(0, int(age))


def work(module):
    path = os.path.join(module.params["root"], NAME)
    own, state = module.params["run"], module.params["state"]
    found, age = holder_of(path)
    answer = {"changed": False, "holder": {}, "age": 0, "machine": machine()}
    if module.check_mode or (state == "released" and found.get("id") != own["id"]):
        return answer
    with HostLock(
        "the run of %s" % own.get("who", "an operator"), module.params["wait"], module.params["root"]
    ) as lock:
        found, age = holder_of(path)
        if state == "released":
            if found.get("id") == own["id"]:
                os.unlink(path)
                lock.remove_if_alone()  # a run that removed the last component leaves no directory for its lock's sake
        elif found and found["id"] not in (own["id"], module.params["replace"]):
            return dict(answer, holder=found, age=age)
        elif found.get("id") != own["id"]:
            whole_files.write_whole(path, json.dumps(own, sort_keys=True).encode("utf-8"))
    return answer


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["taken", "released"], "required": True},
            "run": {"type": "dict", "required": True},
            "replace": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/opt/deeplearning"},
            "wait": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    try:
        result = work(module)
    except HostLocked as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="%s must be writable, but the system answers: %s. Correct that, then run the playbook again."
            % (os.path.join(module.params["root"], NAME), error)
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
