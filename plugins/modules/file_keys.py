#!/usr/bin/python
"""Set single keys of configuration files, and restore what was there before."""

DOCUMENTATION = r"""{
"module": "file_keys",
"short_description": "Set keys of XML, cfg, JSON and shell files one by one, with a row in the component's ledger for each",
"description": [
  "Everything else in a file stays. A recorded key that is no longer in C(files) gets what was there before, unless somebody changed it since.",
  "A value of the site that differs is refused, and nothing changes. A value that the site already has is accepted and not recorded. To a list of words the word is added (C(hadoop_files.LISTS)); the value of Hadoop's own file is nobody's choice (C(hadoop_files.DEFAULTS)).",
  "With services, a restart is pending from before the change until C(state=restarted), so that a run after a killed one restarts them as well."],
"options": {
  "component": {"description": "Whose ledger has the rows", "type": "str", "required": true},
  "files": {"description": "Path -> key -> value. A key of a cfg file is KEY or [SECTION] KEY", "type": "dict", "default": {}, "no_log": false},
  "services": {"description": "What must be restarted", "type": "list", "elements": "str", "default": []},
  "replaces": {"description": "Whether a differing value of the site is replaced instead of refused", "type": "bool", "default": false},
  "state": {"description": ["C(present) sets the keys. C(previous) restores what the services ran with last. C(restarted) records that they run with the files."], "type": "str", "choices": ["present", "previous", "restarted"], "default": "present"},
  "root": {"description": "Directory of this project", "type": "path", "default": "/opt/deeplearning"}
}}"""

RETURN = r"""
restart: {description: Whether services run with other keys than the files have, type: bool, returned: always}
files: {description: Files that have keys of this component, type: list, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, documented
from ansible.module_utils.hadoop_dl_host.hadoop_files import Unusable
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking
from ansible.module_utils.hadoop_dl_host.key_changes import Change, Differs, settled
from ansible.module_utils.hadoop_dl_host.ledger import Ledger, Unreadable


def read(path):
    """The file's bytes; None if it does not exist."""
    with atomic_files.as_keeper(path):
        if not os.path.exists(path):
            return None
        with open(path, "rb") as handle:
            return handle.read()


def write(path, data):
    """A link, as /etc/alternatives has them, stays one."""
    with atomic_files.as_keeper(path):
        place = os.path.realpath(path)
        if data is None:
            os.unlink(place)
            return
        atomic_files.make_directory(os.path.dirname(place))
        atomic_files.write_whole(place, data, **(atomic_files.access_of(place) if os.path.exists(place) else {}))


def change(module, params, ledger):
    key_rows = [row for row in ledger.rows if "path" in row]
    restart = next((row for row in ledger.rows if row["kind"] == "restart"), {"services": [], "pending": False})
    services = params["services"] or restart["services"]
    files = None if params["state"] == "previous" else params["files"]
    changes = [
        Change(path, read(path), key_rows, None if files is None else files.get(path, {}), params["replaces"])
        for path in sorted(set(files or {}) | set(row["path"] for row in key_rows))
    ]
    differing = [edit for edit in changes if edit.data != edit.before]
    rows = [row for edit in changes for row in edit.entries() if edit.rows]
    pending = bool(services) and (bool(differing) or restart["pending"])
    if services and (rows or pending):
        rows.insert(0, {"kind": "restart", "services": services, "pending": pending})
    end_rows = rows if pending else settled(rows)
    changed = bool(differing) or end_rows != ledger.rows
    if changed and not module.check_mode:
        # Before the files, with the values before: whatever kills this run, the next one can finish or undo it.
        ledger.write(rows)
        for edit in differing:
            write(edit.path, edit.data)
        if end_rows != rows:
            ledger.write(end_rows)
    return {
        "changed": changed,
        "restart": pending,
        "files": [edit.path for edit in changes if edit.is_live()],
        "diff": [edit.diff() for edit in differing],
    }


def apply(module, params):
    ledger = Ledger(params["component"], params["root"])
    if params["state"] != "restarted":
        return change(module, params, ledger)
    rows = settled(ledger.rows)
    changed = rows != ledger.rows
    if changed and not module.check_mode:
        ledger.write(rows)
    return {"changed": changed, "restart": False, "files": sorted(set(row["path"] for row in rows if "path" in row))}


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    try:
        with unless_checking(module, HostLock("keys of files", root=params["root"])):
            result = apply(module, params)
    except HostLocked as problem:
        module.fail_json(msg=str(problem))
    except (Differs, Unusable, Unreadable) as problem:
        module.fail_json(msg="%s. Nothing was changed." % str(problem).rstrip("."))
    except (IOError, OSError, ValueError) as error:
        module.fail_json(
            msg="The files must be readable text that root may write, but: %s. Solve that, and run this again." % error
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
