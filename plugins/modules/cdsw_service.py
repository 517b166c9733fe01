#!/usr/bin/python
"""Restart CDSW on a host, or only wait until it is ready."""

DOCUMENTATION = r"""{
"module": "cdsw_service",
"short_description": "Restart Cloudera Data Science Workbench, and wait until C(cdsw status) is satisfied",
"description": [
  "An unhealthy CDSW is an answer (C(healthy) and C(reason)), not a failure, so that the role can go back.",
  "On the master C(cdsw restart). On a worker C(cdsw reset) and C(cdsw join) up to 1.5, later C(cdsw stop) and C(cdsw join)."],
"options": {
  "action": {"description": "What to do", "type": "str", "choices": ["status", "restart"], "default": "status"},
  "role": {"description": "The host's role in CDSW", "type": "str", "choices": ["master", "worker"], "default": "master"},
  "release": {"description": "CDSW's release", "type": "str", "required": true},
  "timeout": {"description": "Seconds until CDSW must be ready", "type": "int", "default": 600},
  "root": {"description": "The directory of this project", "type": "path", "default": "/opt/deeplearning"}
}}"""

RETURN = r"""
healthy: {description: Whether CDSW is ready; of a worker whether it joined, type: bool, returned: always}
reason: {description: "Why not, in CDSW's own words", type: str, returned: always}
nodes: {description: GPUs that CDSW detected on each of its nodes; null if it prints no table of them, type: dict, returned: always}
node: {description: This host's name, type: str, returned: always}
"""

import os
import platform
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import cdsw_settings, documented, processes
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked
from ansible.module_utils.hadoop_dl_host.host_system import version_key

PLACES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/cloudera/parcels/CDSW/scripts", "/etc/cdsw/scripts")
STATUS_SECONDS, PAUSE = 120, 5  # seconds for one `cdsw status`, and between two of them
RESET_UNTIL = "1.6"  # the first release whose workers stop instead


def steps(role, release):
    if role == "master":
        return ["restart"]
    return ["reset" if version_key(release) < version_key(RESET_UNTIL) else "stop", "join"]


def status(path, seconds, once=False):
    """(healthy, reason, nodes) when CDSW is ready, or when the time is over."""
    end = processes.clock() + seconds
    while True:
        seconds_left = max(1, min(STATUS_SECONDS, end - processes.clock()))
        answer = processes.run([path, "status"], seconds_left, dict(os.environ, LC_ALL="C"))
        text = answer.output + "\n" + answer.error
        if cdsw_settings.ready(answer.status, text):
            return True, "", cdsw_settings.nodes(text)
        reason = answer.problem if answer.late else cdsw_settings.reason(answer.status, text)
        if once or processes.clock() + PAUSE > end:
            return False, reason if once else "%s, for %d s" % (reason, seconds), cdsw_settings.nodes(text)
        time.sleep(PAUSE)


def restart(path, params, lock):
    """The first step that fails, as a reason; empty if all ended well."""
    for step in steps(params["role"], params["release"]):
        answer = processes.run([path, step], params["timeout"], dict(os.environ, LC_ALL="C"), lock=lock)
        if answer.problem:
            return answer.problem
    return ""


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params, path = module.params, processes.which("cdsw") or processes.which("cdsw", PLACES)
    node = platform.node()
    restarts = params["action"] == "restart"
    if not path:
        module.fail_json(
            msg="The command cdsw must be on this host but is in none of PATH, %s. Look at CDSW's installation."
            % ", ".join(PLACES)
        )
    if restarts and module.check_mode:
        module.exit_json(changed=True, healthy=True, reason="", nodes=None, node=node)
    problem = ""
    if restarts:
        try:
            with HostLock("cdsw restart", root=params["root"]) as lock:
                problem = restart(path, params, lock)
        except HostLocked as held:
            module.fail_json(msg=str(held))
    healthy, reason, nodes = not problem, problem, None
    if params["role"] == "master":
        ready, reason, nodes = status(path, params["timeout"], once=module.check_mode or bool(problem))
        healthy = ready and not problem  # one that did not restart may still be ready with its earlier settings
        reason = "; ".join(text for text in (problem, reason) if text)
    module.exit_json(changed=restarts, healthy=healthy, reason=reason, nodes=nodes, node=node)


if __name__ == "__main__":
    main()
