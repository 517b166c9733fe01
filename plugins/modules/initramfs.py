#!/usr/bin/python
"""Keep a module out of the initramfs of every installed kernel. A new image is verified before it replaces the old one."""

DOCUMENTATION = r"""{
"module": "initramfs",
"short_description": "Rebuild the initramfs of the installed kernels that hold a module that must not be there",
"description": ["The new image is made beside the old one, listed, and only then renamed over it. A full /boot leaves the old one."],
"options": {
  "rebuild": {"description": "Rebuild every image whatever it holds (after the settings were removed)", "type": "bool", "default": false}
}}"""

RETURN = r"""
rebuilt: {description: Kernels whose image was rebuilt, type: list, returned: always}
"""

import glob
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, documented, processes

IMAGE = "/boot/initramfs-%s.img"
LIMIT = 1800  # seconds for one program; an image takes about a minute


class Images(object):
    def __init__(self, module):
        self.module = module

    def installed(self):
        """Kernel releases with an image."""
        releases = [path[len("/boot/vmlinuz-") :] for path in sorted(glob.glob("/boot/vmlinuz-*"))]
        return [release for release in releases if "rescue" not in release and os.path.exists(IMAGE % release)]

    def holds_module(self, path):
        answer = processes.run(["lsinitrd", path], LIMIT)
        if answer.problem:
            self.module.fail_json(
                msg="%s must be readable, but %s. Rebuild it by hand and look." % (path, answer.problem[-300:])
            )
        return re.search(r"/nouveau\.ko", answer.output) is not None

    def rebuild(self, release):
        path = IMAGE % release
        directory, name = os.path.split(path)
        fresh = os.path.join(directory, ".%s.new" % name)
        try:
            self.command(["dracut", "--force", fresh, release], release)
            if not self.module.params["rebuild"] and self.holds_module(fresh):
                self.module.fail_json(
                    msg="The initramfs of %s must keep nouveau out, but after a rebuild it still holds the module nouveau; the old image is in "
                    "place. Look for add_drivers or force_drivers in /etc/dracut.conf.d." % release
                )
            atomic_files.sync_path(fresh)  # after a power failure the host must boot with it
            os.rename(fresh, path)
            atomic_files.sync_path(directory)
        finally:
            if os.path.exists(fresh):
                os.remove(fresh)

    def command(self, argv, release):
        answer = processes.run(argv, LIMIT)
        if answer.problem:
            error = answer.error[-600:]
            self.module.fail_json(
                msg="The initramfs of kernel %s must be rebuilt, but %s. The old image is in place. "
                "Look at the free space: df /boot /var/tmp%s" % (release, answer.problem, "\n" + error if error else "")
            )


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    images = Images(module)
    releases = [
        release for release in images.installed() if module.params["rebuild"] or images.holds_module(IMAGE % release)
    ]
    if not module.check_mode:
        for release in releases:
            images.rebuild(release)
    module.exit_json(changed=bool(releases), rebuilt=releases)


if __name__ == "__main__":
    main()
