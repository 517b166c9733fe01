#!/usr/bin/python
"""Take or release a host for one whole run of the playbooks."""

DOCUMENTATION = r"""{
"module": "run_lock",
"short_description": "Take or release a host for one whole run of the playbooks",
"description": [
  "C(/opt/deeplearning/.run.json), for root alone, tells which run changes the host, from before its first change until its end. It is written and removed in one turn of the host's lock, so of two runs one has it.",
  "The action plugin of the same name fills in the run, and decides whether the one that is found has ended. The callback plugin of this name releases what a run that failed still has."],
"options": {
  "state": {"description": "C(taken) or C(released)", "type": "str", "choices": ["taken", "released"], "required": true},
  "run": {"description": "This run. C(id) tells runs apart; the rest is for people", "type": "dict", "required": true},
  "replace": {"description": "The C(id) of a run that has ended and whose place is taken", "type": "str", "default": ""},
  "root": {"description": "Directory of this project on the host", "type": "path", "default": "/opt/deeplearning"},
  "wait": {"description": "Seconds for a step of another run on this host to end", "type": "int", "default": 30}
}}"""

RETURN = r"""
holder: {description: The other run that has the host; empty if this one has it, type: dict, returned: always}
held: {description: Whether this run has the host now, type: bool, returned: always}
machine: {description: What identifies the running system, type: str, returned: always}
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, disk_space, documented
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, machine

NAME = ".run.json"


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
    answer = {"changed": False, "holder": {}, "held": False, "machine": machine()}
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
        if not is_own:
            if holder and holder["id"] != module.params["replace"]:
                return dict(answer, holder=holder)
            atomic_files.write_whole(path, json.dumps(own, sort_keys=True).encode("utf-8"), mode=0o600)
    return dict(answer, held=True)


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    try:
        result = disk_space.with_reserve(module.params["root"], lambda: work(module))
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
