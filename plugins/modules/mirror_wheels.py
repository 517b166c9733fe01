#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Build source distributions into wheels once, on the mirror host. Needs Python 3.6 or later there."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: mirror_wheels
short_description: Build the locks' source distributions into wheels, by a user without rights and network, and serve those that are their source's alone
description:
  - The wheel of a source distribution is put into C(built/<Python>/<sha256 of the source>/) of the mirror, and C(manifest.json) gets its sha256 and its source's.
  - It is published only if every file of it is the source's own, byte for byte. Where that is not so, where this host has not that Python, or where the build
    fails, hosts build it themselves.
  - Check mode reports a change where a wheel is missing, and builds nothing.
options:
  root: {description: The mirror's directory; its C(wheels/) is filled, type: path, default: /srv/deeplearning-mirror}
  environments: {description: "C(lock), the text of a whole lock, and its C(python); C(interpreter) where it is in an unusual place", type: list, elements: dict, required: true}
  workspace: {description: Directory for the builds, gone afterwards, type: path, default: /opt/deeplearning/mirror-build}
  timeout: {description: Seconds for each program, and for another run on this host to end, type: int, default: 3600}
"""

EXAMPLES = r"""
- name: Build the source distributions of a stack
  mirror_wheels:
    environments: [{python: "2.7", lock: "{{ lookup('file', 'stacks/locks/tf1.15-py27-el7.txt') }}"}]
"""

RETURN = r"""
built: {description: The wheel of each source distribution that was built now, type: dict, returned: always}
not_built: {description: Why hosts build the others themselves, type: dict, returned: always}
"""

import os

from ansible.module_utils import environment_packages, mirror_index, mirror_wheels
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.environment_packages import Refused


def work(module):
    environments, root = module.params["environments"], module.params["root"]
    if module.check_mode:
        wanted = mirror_wheels.missing(environments, root)
        return {"changed": bool(wanted), "built": {}, "not_built": {}}
    os.umask(0o022)
    try:
        built, refused = mirror_wheels.build(environments, root, module.params["workspace"], module.params["timeout"])
    except mirror_index.MirrorError as problem:
        raise Refused(str(problem)) from None
    return {"changed": bool(built), "built": built, "not_built": refused}


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/srv/deeplearning-mirror"},
            "environments": {"type": "list", "elements": "dict", "required": True},
            "workspace": {"type": "path", "default": "/opt/deeplearning/mirror-build"},
            "timeout": {"type": "int", "default": 3600},
        },
        supports_check_mode=True,
    )
    environment_packages.end_with_result(module, work, module.params["root"])


if __name__ == "__main__":
    main()
