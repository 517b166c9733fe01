#!/usr/bin/python
"""Record the files of a component before they are created, and remove those that are no longer requested."""

DOCUMENTATION = r"""{
"module": "own_files",
"short_description": "Record which files a component has, and remove those that it no longer has",
"description": [
  "Writes a row for each path into the ledger of the component, before the role creates the file, and creates the directories of the files.",
  "A recorded path that is not in C(paths) is removed, the last one first. A unit of systemd is stopped before. Directories of this project that are empty then are removed as well. Without C(paths) the ledger, with its receipt, is removed too.",
  "A path outside of C(root) that has the name of a file in C(root) is a link to it, which this module creates. Whatever else has that name is not managed by this project, so it is refused, and stays when the component is removed."],
"options": {
  "component": {"description": "Whose ledger has the rows", "type": "str", "required": true},
  "paths": {"description": "Files and links and units and directories that only this component uses", "type": "list", "elements": "path", "default": []},
  "accounts": {"description": "Accounts that the role creates. One that was there before stays", "type": "list", "elements": "str", "default": []},
  "places": {"description": ["Directories in which only the role puts something. Their rows stay until the component is removed, and the directories, unless they were there before or have other content. While somebody holds the lock of one, nothing is removed."], "type": "list", "elements": "path", "default": []},
  "state": {"description": "The component has C(exact)ly these paths; these are C(added) to those that it has; or these alone become C(absent).", "type": "str", "choices": ["exact", "added", "absent"], "default": "exact"},
  "root": {"description": "Directory of this project", "type": "path", "default": "/opt/deeplearning"}
}}"""

RETURN = r"""
removed: {description: "Paths that were removed (in check mode, would be)", type: list, returned: success}
"""

import glob
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, disk_space, documented, empty_directories, processes
from ansible.module_utils.hadoop_dl_host.host_lock import NAME, HostLock, HostLocked, unless_checking
from ansible.module_utils.hadoop_dl_host.ledger import Ledger, Unreadable
from ansible.module_utils.hadoop_dl_host.processes import has_account

UNITS = "/systemd/system"
DIRECTORIES = ("bin", "downloads", "envs", "etc", "jars", "spark", "state", disk_space.RESERVE)
SECONDS = 600  # for systemd, userdel and rm


class Refused(Exception):
    """The text is the message."""


def row_of(path, paths, root):
    same_name = [
        name for name in paths if name.startswith(root + "/") and os.path.basename(name) == os.path.basename(path)
    ]
    is_link = same_name and not path.startswith(root + "/")
    return dict({"kind": "own", "path": path}, **({"link": same_name[0]} if is_link else {}))


def requested(params, old_rows, root):
    """The rows of what is requested; what was there before an account or a place is known from its first row."""
    known_rows = dict((row["path"], row) for row in old_rows)
    rows = [{"kind": "place", "path": path, "existed": os.path.isdir(path)} for path in params["places"]]
    rows += [{"kind": "account", "path": name, "existed": has_account(name)} for name in params["accounts"]]
    rows = [known_rows.get(row["path"], row) for row in rows]
    if params["paths"]:
        rows = [row for row in old_rows if row["kind"] == "place" and row not in rows] + rows
    return rows + [row_of(path, params["paths"], root) for path in params["paths"]]


def occupant(path):
    """What has the name of a link: the target of a link, "a file" or "a directory"; None if nothing has it."""
    if os.path.islink(path):
        return "a link to " + os.readlink(path)
    if not os.path.lexists(path):
        return None
    return "a directory" if os.path.isdir(path) else "a file"


def missing_links(rows):
    links = [(row, occupant(row["path"])) for row in rows if "link" in row]
    for row, description in links:
        if description not in (None, "a link to " + row["link"]):
            raise Refused(
                "%s must be a link to %s but is %s, which this project did not create. Nothing was changed. Remove or rename it, and run this again."
                % (row["path"], row["link"], description)
            )
    return [row for row, description in links if description is None]


def is_present(row):
    """Whether the path is there and, for a link, is this project's; or the account, if it was not there before."""
    if row["kind"] != "own":
        return row["kind"] == "account" and not row["existed"] and has_account(row["path"])
    return os.path.lexists(row["path"]) and ("link" not in row or occupant(row["path"]) == "a link to " + row["link"])


def command(*words):
    answer = processes.run(list(words), SECONDS)
    if answer.problem:
        raise Refused("`%s` must work, but %s. Solve that, and run this again." % (" ".join(words), answer.problem))


def drafts(path, root):
    """What killed runs left beside a path of this project's directory: under its name, with something before or behind it."""
    place, name = os.path.split(path)
    patterns = [path + ".*", os.path.join(place, "." + name + "*"), os.path.join(place, ".*-" + name + "*")]
    return [draft for pattern in patterns for draft in glob.glob(pattern)] if path.startswith(root + "/") else []


def remove(path):
    """rm follows no link, whatever an account without rights put into a directory meanwhile."""
    if os.path.isdir(path) and not os.path.islink(path):
        command("rm", "-rf", "--one-file-system", "--", path)
    else:
        os.unlink(path)


def undo(rows, root):
    for row in rows:
        if row["kind"] == "place" and os.path.exists(os.path.join(row["path"], NAME)):
            with HostLock("removing %s" % row["path"], 0, row["path"]):
                pass  # whoever works there, as a build does, is not disturbed
    for row in rows:
        if row["kind"] == "account" and is_present(row):
            command("userdel", row["path"])
        if row["kind"] != "own":
            continue
        if is_present(row) and os.path.dirname(row["path"]).endswith(UNITS):
            command("systemctl", "disable", "--now", os.path.basename(row["path"]))
        for path in drafts(row["path"], root) + ([row["path"]] if is_present(row) else []):
            remove(path)
    if any(UNITS + "/" in row["path"] for row in rows):
        command("systemctl", "daemon-reload")  # also if a run was killed after the last file


def work(module, component, root):
    ledger, paths, state = Ledger(component, root, own=True), module.params["paths"], module.params["state"]
    rows = requested(module.params, ledger.rows, root)
    links = missing_links(rows) if state != "absent" else []
    old_rows = [row for row in ledger.rows if row not in rows and row["path"] not in paths]
    if state == "added":
        rows, old_rows = old_rows + rows, []
    elif state == "absent":
        rows, old_rows, paths = old_rows, [row for row in ledger.rows if row["path"] in paths], []
    removed_paths = [row["path"] for row in old_rows if is_present(row)]
    has_nothing = state != "added" and not (rows or ledger.others)
    leaves = has_nothing and os.path.exists(ledger.path)
    if not module.check_mode:
        if rows != ledger.rows:
            ledger.write(old_rows + rows)  # before the changes: whatever kills this run, the next one continues
        undo(old_rows[::-1], root)
        for path in paths:
            atomic_files.make_directory(os.path.dirname(path))
        for row in links:
            os.symlink(row["link"], row["path"])
        if leaves:
            ledger.content.pop("digest", None)
        if old_rows or leaves:
            ledger.write(rows)
    gone_rows = old_rows + [{"kind": "own", "path": ledger.path}] * has_nothing  # file_keys may have removed it
    return {"changed": bool(links or removed_paths or leaves), "removed": removed_paths}, gone_rows


def prune(rows, root):
    """Directories that are empty now; of the system's only those that this project may have created."""
    places = dict((row["path"], row["existed"]) for row in rows if row["kind"] == "place")
    parents = set(os.path.dirname(row["path"]) for row in rows if row["kind"] == "own") - set(places)
    parents = [path for path in parents if path.endswith(".service.d") or "/deeplearning" in path]
    parents = [path for path in parents if not (path + "/").startswith(root + "/")]
    parents += [path for path in places if not places[path]]
    empty_directories.remove(sorted(parents) + [os.path.join(root, name) for name in DIRECTORIES] + [root], False)


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    component, root = module.params["component"], module.params["root"].rstrip("/")
    try:
        with unless_checking(module, HostLock("the files of %s" % component, root=root)):
            result, gone_rows = work(module, component, root)
        if gone_rows and not module.check_mode:
            prune(gone_rows, root)  # without the lock, which may be all that is left
    except (HostLocked, Refused) as problem:
        module.fail_json(msg=str(problem))
    except Unreadable as problem:
        module.fail_json(msg="%s. Nothing was changed." % problem)
    except (IOError, OSError) as error:
        module.fail_json(
            msg="The files of %s cannot be changed: %s. Solve that, and run this again." % (component, error)
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
