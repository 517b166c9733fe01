#!/usr/bin/python
"""Tell to which environment a host can go back."""

DOCUMENTATION = r"""{
"module": "environment_earlier_info",
"short_description": "Find the environment to which a host can go back",
"description": [
  "Without C(to) it is the one that was active before the current one, in the order of activations. It must be sealed, with its files unchanged.",
  "If a run of C(rollback.yml) was killed, C(resumes) is where it was going, as its lock on the host tells, so that the same command ends there, and not where it began.",
  "If there is none, or the host's environments cannot be read, C(problem) says why; that is no failure, so that all hosts can be asked before one changes."],
"options": {
  "root": {"description": "Directory that contains C(envs) and C(current)", "type": "path", "default": "/opt/deeplearning"},
  "to": {"description": "Name of an environment, or of a stack", "type": "str", "default": ""}
}}"""

RETURN = r"""
current: {description: Name of the active environment; empty without one, type: str, returned: always}
earlier: {description: Name of the environment to go back to; empty if there is none, type: str, returned: always}
resumes: {description: Name of the environment that a killed way back was going to; empty if there was none, type: str, returned: always}
problem: {description: Why there is none; empty otherwise, type: str, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, environment_tree
from ansible.module_utils.hadoop_dl_host import environment_history as history
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages


def unfinished(root):
    """Where a run of rollback.yml that did not end was going."""
    run = environment_tree.read_json(os.path.join(root, ".run.json")) or {}
    name = str(run.get("note") or "") if run.get("playbook") == "rollback.yml" else ""
    return name if name and os.path.basename(name) == name and names.live_tree(os.path.join(root, "envs", name)) else ""


def work(module):
    root = module.params["root"].rstrip("/")
    answer = {"changed": False, "current": "", "earlier": "", "problem": "", "resumes": ""}
    try:
        name, problem = history.earlier(root, module.params["to"].strip())
        current = os.path.basename(history.current_of(root) or "")
        resumes = "" if module.params["to"].strip() else unfinished(root)
    except (packages.Refused, IOError, OSError) as error:
        return dict(answer, problem=str(error))
    return dict(answer, current=current, earlier=name or "", problem=problem or "", resumes=resumes)


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    module.exit_json(**work(module))


if __name__ == "__main__":
    main()
