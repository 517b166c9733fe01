#!/usr/bin/python
"""Make a mirror hold what a signed bundle has. Needs Python 3.6 or later and gpg on the mirror host."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""
module: mirror_bundle
short_description: Check the signature of a bundle of scripts/mirror, and put its files into the mirror
description:
  - Nothing is written before the signature is checked with the given keys alone, nor gets its name before every byte of the bundle was compared.
options:
  root: {description: The mirror's directory, type: path, default: /srv/deeplearning-mirror}
  path: {description: The bundle on this host, type: path, required: true}
  key: {description: "Text of the public key that signs it, or of several", type: str, required: true}
  artifacts: {description: Artifacts that it must have, type: list, elements: dict, required: true}
  timeout: {description: Seconds for all of it, type: int, default: 10800}
"""

EXAMPLES = r"""
- name: Unpack the bundle
  mirror_bundle:
    path: /srv/mysite.bundle
    key: "{{ lookup('ansible.builtin.file', 'files/bundle.asc') }}"
    artifacts: "{{ mirror_artifacts }}"
"""

RETURN = r"""
unpacked: {description: Paths that the mirror did not have, type: list, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import mirror_bundle, mirror_index, processes


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/srv/deeplearning-mirror"},
            "path": {"type": "path", "required": True},
            "key": {"type": "str", "required": True, "no_log": False},
            "artifacts": {"type": "list", "elements": "dict", "required": True},
            "timeout": {"type": "int", "default": 10800},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    params = module.params

    def answer():
        try:
            arguments = (params["path"], params["root"], params["key"], params["artifacts"])
            return {"unpacked": mirror_bundle.unpack(*arguments, dry=module.check_mode)}
        except (mirror_bundle.BundleError, mirror_index.MirrorError) as problem:
            return {"problem": str(problem)}

    try:
        message = processes.limited(answer, params["timeout"])
    except processes.Late:
        message = {
            "problem": "The bundle must be unpacked within %d s (mirror_timeout), but was not. Run the same command again."
            % params["timeout"]
        }
    if "problem" in message:
        module.fail_json(msg=message["problem"])
    listing = "".join(path + "\n" for path in message["unpacked"])
    module.exit_json(changed=bool(listing), diff={"before": "", "after": listing}, unpacked=message["unpacked"])


if __name__ == "__main__":
    main()
