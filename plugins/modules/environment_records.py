#!/usr/bin/python
"""Keep what a host's roles recorded for the active environment, and restore it after a rollback."""

DOCUMENTATION = r"""{
"module": "environment_records",
"short_description": "Let receipts and settings that belong to a stack follow the environment",
"description": [
  "C(kept) copies the receipts of the components that a stack decides, and their settings in C(etc), into the active environment's state.",
  "C(restored) puts back what was kept for the environment that is active now, if the host still is as those receipts tell. So the next plan has nothing to do for it, and C(gpu-check) asks for this stack's driver. If the host was changed since, receipts stay as they are and the next C(site.yml) runs the roles.",
  "The parts of the GPU layer belong together. Their receipts are restored if all of them hold."],
"options": {
  "root": {"description": "Directory with C(envs), C(current), C(state) and C(etc)", "type": "path", "default": "/opt/deeplearning"},
  "state": {"description": "Whether to keep or to restore", "type": "str", "choices": ["kept", "restored"], "required": true}
}}"""

RETURN = r"""
components: {description: Components that were kept or restored, type: list, returned: always}
"""

import hashlib
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, disk_space, documented, environment_tree, recorded_files
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.environment_history import current_of
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock

NAME = "records.json"  # in an environment's state
GPU = ("nvidia_driver", "cuda", "cudnn", "nccl", "gpu_check")
OTHERS = ("hadoop_client", "tensorflowonspark", "verify")
WAIT = 60  # seconds for another step on the host to end
LARGEST = 1 << 20  # bytes of one file of settings


def content(path):
    """The text of a file; None if it has no settings."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
        return None
    with open(path, "rb") as handle:
        return handle.read().decode("utf-8", "replace")


def digest(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def recorded(root):
    """component -> its receipt, and the files below etc/ that it names, as they are now."""
    components = {}
    for component in GPU + OTHERS:
        receipt = environment_tree.read_json(os.path.join(root, "state", component + ".json"))
        if receipt:
            paths = [path for path in receipt.get("files", {}) if os.path.dirname(path) == os.path.join(root, "etc")]
            texts = dict((path, content(path)) for path in paths)
            files = dict((path, text) for path, text in texts.items() if text is not None)
            components[component] = {"receipt": receipt, "files": files}
    return components


def holds(record):
    """Whether the host is as the receipt tells, once the files that were kept with it are back."""
    receipt, files = record["receipt"], record["files"]
    rows = receipt.get("files", {})
    other_files = dict((path, sha256) for path, sha256 in rows.items() if path not in files)
    return all(digest(files[path]) == rows[path] for path in rows if path in files) and not any(
        recorded_files.differences(dict(receipt, files=other_files))
    )


def ledger_text(path, receipt):
    """The receipt beside the rows that the ledger has now: they tell what is on the host, whichever environment is active."""
    rows = (environment_tree.read_json(path) or {}).get("rows")
    content = dict((key, value) for key, value in receipt.items() if key != "rows")
    return atomic_files.json_text(dict(content, rows=rows) if rows else content)


def outdated(root, records):
    """path -> text of what has to be written, in its order: settings first, so that no receipt exists without them."""
    gpu = [name for name in GPU if name in records]
    present = [name for name in GPU if os.path.lexists(os.path.join(root, "state", name + ".json"))]
    whole = gpu == present and all(holds(records[name]) for name in gpu)
    components = [name for name in records if (whole if name in GPU else holds(records[name]))]
    files = [(path, text) for name in components for path, text in records[name]["files"].items()]
    ledgers = [(name, os.path.join(root, "state", name + ".json")) for name in components]
    files += [(path, ledger_text(path, records[name]["receipt"])) for name, path in ledgers]
    return sorted(components), [(path, text) for path, text in files if content(path) != text]


def work(module):
    root = module.params["root"].rstrip("/")
    answer = {"changed": False, "components": []}
    current = current_of(root)
    tree = os.path.join(root, current) if current else None
    if not tree or not os.path.isdir(os.path.join(tree, environment_tree.STATE)):
        return answer
    path = packages.state_file(tree, NAME)
    if module.params["state"] == "kept":
        records = recorded(root)
        components, changes = sorted(records), [(path, atomic_files.json_text(records))]
        changes = [(file, text) for file, text in changes if content(file) != text]
    else:
        components, changes = outdated(root, environment_tree.read_json(path) or {})
    if changes and not module.check_mode:
        with HostLock("the records of %s" % os.path.basename(tree), WAIT, root):
            for file, text in changes:
                disk_space.with_reserve(
                    root, lambda file=file, text=text: atomic_files.write_whole(file, text.encode("utf-8"))
                )
    return dict(answer, changed=bool(changes), components=components)


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages.end_with_result(module, work, module.params["root"], "; the environment is active")


if __name__ == "__main__":
    main()
