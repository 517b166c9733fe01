#!/usr/bin/python
"""Write down what a role left on a host, so that the next run knows whether it is still there, without running the role."""

DOCUMENTATION = r"""{
"module": "receipt",
"short_description": "Record the files of a component and the inputs that made them",
"description": ["Writes C(/opt/deeplearning/state/<component>.json). The host reader compares it with the host in its one round."],
"options": {
  "component": {"description": "Name of the component", "type": "str", "required": true},
  "digest": {"description": "Digest of the inputs that the plan computed for this component; empty removes the receipt from the ledger", "type": "str", "required": true},
  "paths": {"description": "Files and links that make the component. A directory stands for every file and link below it.", "type": "list", "elements": "str", "required": true},
  "state_directory": {"description": "Where receipts are kept; the host's lock is beside it", "type": "str", "default": "/opt/deeplearning/state"}
}}"""

RETURN = r"""
receipt: {description: What was recorded, type: dict, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, documented, ledger, recorded_files
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking


def make_receipt(component, digest, paths):
    """The receipt as a mapping, and the paths that are not there."""
    record, missing_paths = recorded_files.describe(sum((recorded_files.members(path) for path in paths), []))
    return dict(record, component=component, digest=digest), missing_paths


def write(target, content):
    """Under its name only when it is complete, in directories that everybody may enter. Rows may have a file's text, so root alone reads them."""
    os.umask(0o022)
    if not content:
        os.unlink(target)
        return
    atomic_files.make_directory(os.path.dirname(target))
    atomic_files.write_json(target, content, mode=0o600 if "rows" in content else 0o644)


def record(module, component, directory):
    """Compare, write, and answer."""
    receipt, missing_paths = make_receipt(component, module.params["digest"], module.params["paths"])
    if missing_paths and not module.check_mode:  # in check mode the role has not made them
        module.fail_json(
            msg="The role of %s must leave %s on this host, but it is missing. Run the role again."
            % (component, ", ".join(missing_paths))
        )
    target = os.path.join(directory, component + ".json")
    try:
        old_content = ledger.read(target)
    except ValueError:
        old_content = {}  # a torn receipt is replaced, whatever is in it
    rows = old_content.pop("rows", [])
    if not module.params["digest"]:
        receipt = {}
    texts = [atomic_files.json_text(content) if content else "" for content in (old_content, receipt)]
    if texts[0] != texts[1] and not module.check_mode:
        write(target, dict(receipt, rows=rows) if rows else receipt)
    module.exit_json(
        changed=texts[0] != texts[1],
        receipt=receipt,
        diff={"before": texts[0], "after": texts[1], "before_header": target, "after_header": target},
    )


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    component, directory = module.params["component"], module.params["state_directory"]
    try:
        with unless_checking(module, HostLock("the receipt of %s" % component, root=os.path.dirname(directory))):
            record(module, component, directory)
    except HostLocked as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="The receipt %s must be written, but that failed: %s. Free some space (and inodes), or make the file system writable, "
            "and run again; until then the role runs in every run."
            % (os.path.join(directory, component + ".json"), error)
        )


if __name__ == "__main__":
    main()
