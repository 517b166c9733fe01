#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Take, renew or release a host for one whole run of the playbooks."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: run_lock
short_description: Take, renew or release a host for one whole run of the playbooks
description:
  - C(/opt/deeplearning/.run.json), for root alone, tells which run changes the host, from before its first change until its end. It is written and removed
    in one turn of the host's lock, so of two runs one has it.
  - It has the time of the last renewal, in seconds since the host was started, which a step of the host's clock does not change.
  - The action plugin of the same name fills in the run, and decides whether the one that is found is dead. The callback plugin of this name renews it.
options:
  state: {description: "C(taken), C(renewed) or C(released)", type: str, choices: [taken, renewed, released], required: true}
  run: {description: This run. C(id) tells runs apart; the rest is for people, type: dict, required: true}
  replace: {description: The C(id) of a dead run whose place is taken, type: str, default: ''}
  root: {description: Directory of this project on the host, type: path, default: /opt/deeplearning}
  wait: {description: Seconds for a step of another run on this host to end, type: int, default: 30}
"""

RETURN = r"""
holder: {description: The other run that has the host; empty if this one has it, type: dict, returned: always}
silent: {description: "Seconds since the other run renewed it; since the host was started, if that is later", type: int, returned: always}
held: {description: Whether this run has the host now, type: bool, returned: always}
machine: {description: What identifies the running system, type: dict, returned: always}
"""

import json
import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import room, whole_files
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked

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


def moment():
    """Now, by a clock that nobody sets: the start of the system, and the seconds since then."""
    return {"boot": machine()["boot"], "seconds": int(float((first_line("/proc/uptime").split() or ["0"])[0]))}


def silence(holder, path):
    """Seconds since the run renewed its lock, at least. A lock without renewals, of an earlier release, is as old as its file."""
    now, renewed = moment(), holder.get("renewed")
    if "renewed" not in holder and "since" in holder:
        return max(0, int(time.time() - os.stat(path).st_mtime))
    try:
        last_seconds = int(renewed["seconds"]) if renewed["boot"] == now["boot"] else 0
    except (KeyError, TypeError, ValueError):
        return 0  # nothing is known
    return max(0, now["seconds"] - last_seconds)


def holder_of(path):
    """The run that has the host; a torn record is an unidentified run."""
    try:
        with open(path) as handle:
            holder = json.load(handle)
    except (IOError, OSError):
        return {}
    except ValueError:
        return {"id": "unknown"}
    return holder if isinstance(holder, dict) and holder.get("id") else {"id": "unknown"}


def work(module):
    path = os.path.join(module.params["root"], NAME)
    own, state = module.params["run"], module.params["state"]
    answer = {"changed": False, "holder": {}, "silent": 0, "held": False, "machine": machine()}
    if module.check_mode or (state != "taken" and holder_of(path).get("id") != own["id"]):
        return answer
    with HostLock(
        "the run of %s" % own.get("who", "an operator"), module.params["wait"], module.params["root"]
    ) as lock:
        holder = holder_of(path)
        is_own = holder.get("id") == own["id"]
        if state == "released":
            if is_own:
                os.unlink(path)
                lock.remove_if_alone()  # a run that removed the last component leaves no directory for its lock's sake
            return answer
        if not is_own and (state == "renewed" or (holder and holder["id"] != module.params["replace"])):
            return dict(answer, holder=holder, silent=silence(holder, path))
        record = json.dumps(dict(holder if is_own else own, renewed=moment()), sort_keys=True)
        whole_files.write_whole(path, record.encode("utf-8"), mode=0o600)
    return dict(answer, held=True)


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["taken", "renewed", "released"], "required": True},
            "run": {"type": "dict", "required": True},
            "replace": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/opt/deeplearning"},
            "wait": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    try:
        result = room.with_reserve(module.params["root"], lambda: work(module))
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
