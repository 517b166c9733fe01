#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Keep a module out of the initramfs of every installed kernel. A new image is verified before it replaces the old one."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: initramfs
short_description: Rebuild the initramfs of the installed kernels that hold a module that must not be there
description:
  - An image is correct if it contains the modprobe.d file; on RHEL, which leaves that file out, if it does not contain the module.
  - With dracut the new image is made beside the old one, listed, and only then renamed over it. A full /boot leaves the old one.
options:
  forbidden_module: {description: Name of the module that must not be in the image, type: str, default: nouveau}
  settings: {description: Name of the modprobe.d file that must be in images of initramfs-tools, type: str, required: true}
  rebuild: {description: Rebuild every image whatever it holds (after the settings were removed), type: bool, default: false}
"""

RETURN = r"""
rebuilt: {description: Kernels whose image was rebuilt, type: list, returned: always}
"""

import glob
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import processes, whole_files

DRACUT = "/boot/initramfs-%s.img"
TOOLS = "/boot/initrd.img-%s"
LIMIT = 1800  # seconds for one program; an image takes about a minute


def image_problem(listing, module_name, settings, dracut):
    """Why this image does not keep the module out, or None."""
    if re.search(r"/%s\.ko" % re.escape(module_name), listing) and (dracut or settings not in listing):
        return "holds the module %s" % module_name
    if not dracut and settings not in listing:
        return "lacks %s" % settings
    return None


class Images(object):
    def __init__(self, module):
        self.module = module
        self.forbidden = module.params["forbidden_module"]
        self.settings = module.params["settings"]

    def installed(self):
        """Kernel releases with an image, and whether dracut made it."""
        kernels = []
        for path in sorted(glob.glob("/boot/vmlinuz-*")):
            release = path[len("/boot/vmlinuz-") :]
            if "rescue" not in release and os.path.exists(DRACUT % release):
                kernels.append((release, True))
            elif os.path.exists(TOOLS % release):
                kernels.append((release, False))
        return kernels

    def listing(self, path, dracut):
        answer = processes.run(["lsinitrd" if dracut else "lsinitramfs", path], LIMIT)
        if answer.problem:
            self.module.fail_json(
                msg="%s must be readable, but %s. Rebuild it by hand and look." % (path, answer.problem[-300:])
            )
        return answer.output

    def problem(self, path, dracut):
        return image_problem(self.listing(path, dracut), self.forbidden, self.settings, dracut)

    def rebuild(self, release, dracut):
        if not dracut:
            self.command(["update-initramfs", "-u", "-k", release], release)
            problem = None if self.module.params["rebuild"] else self.problem(TOOLS % release, dracut)
        else:
            path = DRACUT % release
            directory, name = os.path.split(path)
            fresh = os.path.join(directory, ".%s.new" % name)
            try:
                self.command(["dracut", "--force", fresh, release], release)
                problem = None if self.module.params["rebuild"] else self.problem(fresh, dracut)
                if problem is None:
                    whole_files.sync_path(fresh)  # after a power failure the host must boot with it
                    os.rename(fresh, path)
                    whole_files.sync_path(directory)
            finally:
                if os.path.exists(fresh):
                    os.remove(fresh)
        if problem:
            self.module.fail_json(
                msg="The initramfs of %s must keep %s out, but after a rebuild it still %s%s. "
                "Look for add_drivers or force_drivers in /etc/dracut.conf.d and /etc/initramfs-tools/modules."
                % (release, self.forbidden, problem, "; the old image is in place" if dracut else "")
            )

    def command(self, argv, release):
        answer = processes.run(argv, LIMIT)
        if answer.problem:
            error = answer.error[-600:]
            self.module.fail_json(
                msg="The initramfs of kernel %s must be rebuilt, but %s. The old image is in place. "
                "Look at the free space: df /boot /var/tmp%s" % (release, answer.problem, "\n" + error if error else "")
            )


def main():
    module = AnsibleModule(
        argument_spec={
            "forbidden_module": {"type": "str", "default": "nouveau"},
            "settings": {"type": "str", "required": True},
            "rebuild": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    images = Images(module)
    releases = [
        (release, dracut)
        for release, dracut in images.installed()
        if module.params["rebuild"] or images.problem((DRACUT if dracut else TOOLS) % release, dracut)
    ]
    if not module.check_mode:
        for release, dracut in releases:
            images.rebuild(release, dracut)
    module.exit_json(changed=bool(releases), rebuilt=[release for release, _ in releases])


if __name__ == "__main__":
    main()
