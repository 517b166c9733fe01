#!/usr/bin/python
"""Make a set of RPM packages in a mirror's directory: named ones with what they require, each signed. Needs Python 3.6 or later."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""
module: mirror_packages
short_description: Fetch named RPM packages with what they require from signed repositories into a repository of the mirror
description:
  - dnf reads the repositories as they are given, of whatever release; what this machine has itself is neither asked nor changed.
  - Every package must be signed by one of the keys. The set is complete before it takes the older one's place. Proxies are those of the environment.
options:
  root: {description: The mirror's directory, type: path, required: true}
  name: {description: Name of the set; it is served below C(rpm/)I(name), type: str, required: true}
  packages: {description: "Names of packages, with the version if not the newest one is wanted; C(A|B) for the first of two that there is", type: list, elements: str, required: true}
  repositories: {description: Addresses of the repositories, type: list, elements: str, required: true}
  key: {description: Text of the public keys that sign their packages, type: str, required: true}
  timeout: {description: Seconds for all of it, type: int, default: 10800}
"""

EXAMPLES = r"""
- name: Fetch the driver
  mirror_packages:
    root: /srv/carry
    name: el9
    packages: [nvidia-driver-cuda-535.104.05, kmod-nvidia-latest-dkms-535.104.05]
    repositories: [https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64]
    key: "{{ lookup('ansible.builtin.file', 'keys/nvidia.asc') }}"
"""

RETURN = r"""
reason: {description: Why the set was made; empty if it was there, type: str, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import package_sets, processes, replaced_directory

GRACE = 60  # seconds beside the limit, for programs that have one of their own


def made(maker, seconds):
    """Make the set in a child process, which ends in time whatever a server does; why it was made."""

    def answer():
        try:
            maker.make(seconds)
        except package_sets.SetError as problem:
            return {"problem": str(problem)}
        return {}

    replaced_directory.recover(maker.place, maker.old)
    reason = maker.reason()
    try:
        message = processes.limited(answer, seconds + GRACE) if reason else {}
    except processes.Late:
        raise package_sets.SetError(
            "The package set %s must be complete within %d s, but a repository had not delivered what was asked. Check the network and the "
            "repositories, then run the same command again." % (maker.name, seconds)
        ) from None
    if "problem" in message:
        raise package_sets.SetError(message["problem"])
    return reason


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "repositories": {"type": "list", "elements": "str", "required": True},
            "key": {"type": "str", "required": True, "no_log": False},
            "timeout": {"type": "int", "default": 10800},
        },
    )
    os.umask(0o022)
    params = module.params
    try:
        maker = package_sets.Maker(*(params[name] for name in ("root", "name", "packages", "repositories", "key")))
        reason = made(maker, params["timeout"])
    except package_sets.SetError as problem:
        module.fail_json(msg="%s The older set was not changed." % problem)
    module.exit_json(changed=bool(reason), reason=reason)


if __name__ == "__main__":
    main()
