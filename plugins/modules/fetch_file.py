#!/usr/bin/python
"""Download a file whose sha256 is known: within a time and a size, from one server, under its name only when it is complete."""

DOCUMENTATION = r"""{
"module": "fetch_file",
"short_description": "Download a file whose sha256 is known",
"description": [
  "Unlike C(get_url) it has a limit on the whole download, not on each read, and follows no redirect to another server.",
  "A file that has the sha256 is left alone; one that has another is replaced only by the right bytes."],
"options": {
  "url": {"description": "Address of the file (http, https or file)", "type": "str", "required": true},
  "path": {"description": "Where it goes; the directory exists and belongs to root", "type": "path", "required": true},
  "sha256": {"description": "Its sha256", "type": "str", "required": true},
  "permissions": {"description": "Mode of the file", "type": "str", "default": "0600"},
  "timeout": {"description": "Seconds for the whole download", "type": "int", "default": 3600},
  "ca": {"description": "CA bundle for https", "type": "path"},
  "use_proxy": {"description": "Whether the host's proxy is used; never for the site's own mirror", "type": "bool", "default": true}
}}"""

RETURN = r"""
sha256: {description: "The sha256 of what the server delivered, if it is another one", type: str, returned: failure}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, documented, downloads


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    path, mode = params["path"], int(params["permissions"], 8)
    try:
        if os.path.isfile(path) and atomic_files.sha256_of(path) == params["sha256"]:
            changed = os.stat(path).st_mode & 0o7777 != mode
            if changed and not module.check_mode:
                os.chmod(path, mode)
            module.exit_json(changed=changed)
        if not module.check_mode:
            limits = {"seconds": params["timeout"], "ca": params["ca"], "proxied": params["use_proxy"]}
            downloads.fetch(params["url"], path, params["sha256"], mode=mode, **limits)
    except downloads.DownloadError as problem:
        module.fail_json(msg=str(problem), **({"sha256": problem.sha256} if problem.sha256 else {}))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="%s must be written, but that failed: %s. Free some space or repair the file system." % (path, error)
        )
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
