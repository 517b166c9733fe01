#!/usr/bin/python
"""Make a set of RPM packages in a mirror: named ones with what they require, each signed. Needs Python 3.6 or later on the mirror host."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""
module: mirror_packages
short_description: Fetch named RPM packages with what they require from signed repositories into a repository of the mirror
description:
  - dnf reads the repositories as they are given, of whatever release; what the mirror host has itself is neither asked nor changed.
  - Every package must be signed by one of the repositories' keys. The set is complete before it is served, and takes the older one's place.
options:
  root: {description: The mirror's directory, type: path, default: /srv/deeplearning-mirror}
  name: {description: Name of the set; it is served below C(rpm/)I(name), type: str, required: true}
  packages: {description: "Names of packages, with the version if not the newest one is wanted; C(A|B) for the first of two that there is", type: list, elements: str, required: true}
  repositories: {description: C(url) of each repository and C(key) with the text of the public key that signs its packages, type: list, elements: dict, required: true}
  environment: {description: Variables for the downloads (http_proxy and https_proxy and SSL_CERT_FILE), type: dict, default: {}}
  timeout: {description: Seconds for all of it, type: int, default: 10800}
"""

EXAMPLES = r"""
- name: Fetch the driver
  mirror_packages:
    name: el9
    packages: [nvidia-driver-cuda-535.104.05, kmod-nvidia-latest-dkms-535.104.05]
    repositories:
      - url: https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64
        key: "{{ lookup('ansible.builtin.file', 'keys/nvidia.asc') }}"
"""

RETURN = r"""
reason: {description: Why the set was made; empty if it was there, type: str, returned: always}
packages: {description: File names of the set, type: list, returned: always}
elsewhere: {description: What the packages require that none of these repositories has, type: list, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import mirror_index, package_sets, processes, replaced_directory

GRACE = 60  # seconds beside the limit, for programs that have one of their own


def work(module):
    params = module.params
    maker = package_sets.Maker(params["root"], params["name"], params["packages"], params["repositories"])
    reason = maker.reason()
    result = {"changed": bool(reason), "reason": reason}
    old_packages = sorted(package_sets.record_of(maker.place).get("packages", {}))
    if not reason and replaced_directory.is_left(maker.old):
        result["changed"] = True
        if not module.check_mode:
            replaced_directory.recover(maker.place, maker.old)
    if reason and not module.check_mode:
        made(maker, params["timeout"])
    record = package_sets.record_of(maker.place)
    result.update(packages=sorted(record.get("packages", {})), elsewhere=record.get("elsewhere", []))
    if reason:
        new_packages = params["packages"] if module.check_mode else result["packages"]
        result["diff"] = {
            "before": "".join(line + "\n" for line in old_packages),
            "after": "".join(line + "\n" for line in new_packages),
        }
    return result


def made(maker, seconds):
    """Make the set in a child process, which ends in time whatever a server does."""

    def answer():
        try:
            maker.make(seconds)
        except package_sets.SetError as problem:
            return {"problem": str(problem)}
        return {}

    try:
        message = processes.limited(answer, seconds + GRACE)
    except processes.Late:
        raise package_sets.SetError(
            "The package set %s must be complete within %d s (mirror_timeout), but a repository had not delivered what was asked. Check the network "
            "and the repositories, then run the same command again." % (maker.name, seconds)
        ) from None
    if "problem" in message:
        raise package_sets.SetError(message["problem"])


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/srv/deeplearning-mirror"},
            "name": {"type": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "repositories": {"type": "list", "elements": "dict", "required": True, "no_log": False},
            "environment": {"type": "dict", "default": {}, "no_log": True},
            "timeout": {"type": "int", "default": 10800},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    variables = {str(name): str(value) for name, value in module.params["environment"].items()}
    os.environ.update(variables)
    module.no_log_values = mirror_index.secrets_of(variables)
    try:
        result = work(module)
    except package_sets.SetError as problem:
        module.fail_json(msg="%s The set that is served was not changed." % problem)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
