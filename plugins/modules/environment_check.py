#!/usr/bin/python
"""Compare every byte of a sealed environment with what was installed."""

DOCUMENTATION = r"""{
"module": "environment_check",
"short_description": "Compare every byte of a sealed environment with what was installed",
"description": [
  "Reads every file (about half a minute for 2.6 GB on a disk of 100 MB/s) and compares its sha256 with the list made at the seal; bytecode included. A bit that a disk lost, or a file that was exchanged with its size and time kept, is found only so.",
  "Damage is noted in C(.deeplearning/damaged.json), so that the next C(site.yml) builds the environment again; nothing else is written."],
"options": {
  "path": {"description": "The environment's path", "type": "path", "required": true}
}}"""

RETURN = r"""
added: {description: Files that were added since the seal; they are left alone, type: list, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, documented, environment_bytes, environment_tree
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused


def work(module):
    path = module.params["path"].rstrip("/")
    tree = names.live_tree(path)
    if tree is None or environment_tree.seal_of(tree) is None:
        raise Refused("%s must be installed. Run: ansible-playbook site.yml" % path)
    seal_problem, added = environment_tree.state(tree)
    problem = seal_problem or environment_bytes.deep_problem(tree)
    if problem is None:
        return {"changed": False, "added": added}
    if not seal_problem and not module.check_mode:
        atomic_files.write_json(packages.state_file(tree, environment_tree.DAMAGED), {"problem": problem})
    raise Refused("%s is not what was installed: %s. Build it again: ansible-playbook site.yml" % (path, problem))


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages.end_with_result(module, work, module.params["path"])


if __name__ == "__main__":
    main()
