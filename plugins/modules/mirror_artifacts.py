#!/usr/bin/python
"""Make a mirror directory hold artifacts, each proved by sha256. Needs Python 3.6 or later on the mirror host."""

DOCUMENTATION = r"""{
"module": "mirror_artifacts",
"short_description": "Fetch the artifacts of a mirror, request them from it, or remove them",
"description": ["An artifact is a wheel, or a file of the site, with its sha256 and size. Incomplete files are never visible."],
"options": {
  "root": {"description": "The mirror's directory", "type": "path", "default": "/srv/deeplearning-mirror"},
  "artifacts": {"description": "What it must hold - folder and name and sha256 and size and either project or url", "type": "list", "elements": "dict", "required": true},
  "state": {"description": ["C(fetched) downloads what is missing or damaged. C(unpacked) takes it from C(bundle), if that was signed with C(key) and has all of it; nothing gets its name before every byte was compared. C(served) asks the address C(url) for every artifact. C(absent) removes what the manifests of all recorded directories list, and directories that are empty then; other files stay. C(pruned) removes C(artifacts)."], "type": "str", "choices": ["fetched", "unpacked", "served", "pruned", "absent"], "default": "fetched"},
  "environment": {"description": ["Variables for the downloads (proxies, SSL_CERT_FILE, PIP_INDEX_URL). As a parameter they travel on standard input; with the keyword C(environment) they would be in the command lines of the controller and of the mirror host."], "type": "dict", "default": {}, "no_log": true},
  "bundle": {"description": "Signed file of scripts/mirror on this host; with C(unpacked)", "type": "path"},
  "key": {"description": "Text of the public key that signs it, or of several", "type": "str", "no_log": false},
  "url": {"description": "Address of a mirror that somebody else serves", "type": "str"},
  "index_url": {"description": "Address of a package index (PEP 503) that has the wheels; with C(served)", "type": "str"},
  "login": {"description": "C(user) and C(password) for that index", "type": "dict", "no_log": true},
  "ca": {"description": "CA bundle of the hosts for an address with https; the system's without it; with C(served)", "type": "path"},
  "log": {"description": "File that tells how far the downloads are", "type": "path"},
  "timeout": {"description": "Seconds after which the downloads are given up; what is there stays", "type": "int", "default": 10800}
}}"""

RETURN = r"""
fetched: {description: Names of what was fetched, type: list, returned: always}
missing: {description: What is wrong with which artifact, type: dict, returned: always}
removed: {description: Paths below the directory, type: list, returned: with C(pruned)}
unpacked: {description: Paths that the mirror did not have, type: list, returned: with C(unpacked)}
"""

import io
import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    documented,
    ledger,
    mirror_bundle,
    mirror_files,
    mirror_index,
    mirror_prune,
    mirror_removal,
    mirror_served,
)

GRACE = 5  # seconds for a download that sees by itself that its time is over
LATE = (
    "The mirror must be complete within %d s (mirror_timeout), but a server or a disk was too slow. What is complete stays. Check the network "
    "and the index, then run the same command again: it continues."
)


class Log(object):
    """Lines with the time, for `tail -f`."""

    def __init__(self, path):
        self.handle = io.open(path, "a", encoding="utf-8") if path else None

    def __call__(self, line):
        if self.handle:
            self.handle.write("%s %s\n" % (time.strftime("%H:%M:%S"), line))
            self.handle.flush()


def work(module):
    params = module.params
    artifacts = mirror_files.unique(params["artifacts"])
    result = {"changed": False, "fetched": [], "missing": {}}
    if params["state"] == "absent":
        places = ledger.rows("mirror", kind="place")
        removed = [mirror_removal.remove(row["path"], row["existed"], module.check_mode) for row in places]
        return dict(result, changed=any(removed))
    if params["state"] == "pruned":
        pruned_paths = mirror_prune.prune(params["root"], artifacts, module.check_mode)
        listing = "".join(path + "\n" for path in pruned_paths)
        return dict(result, changed=bool(pruned_paths), removed=pruned_paths, diff={"before": listing, "after": ""})
    if params["state"] == "unpacked":
        paths = mirror_bundle.unpack(params["bundle"], params["root"], params["key"], artifacts, module.check_mode)
        listing = "".join(path + "\n" for path in paths)
        return dict(result, changed=bool(paths), unpacked=paths, diff={"before": "", "after": listing})
    if params["state"] == "served":
        address = mirror_index.with_login(params["index_url"], params["login"])
        problems = mirror_served.problems(artifacts, params["url"], address, params["ca"] or "")
        if problems:
            raise mirror_index.MirrorError(" ".join(problems))
        return result
    if module.check_mode:
        result["missing"] = mirror_files.problems_of(artifacts, params["root"])
        result["fetched"] = sorted(result["missing"])
    else:
        result["fetched"] = mirror_files.fetch_artifacts(
            artifacts, params["root"], progress=Log(params["log"]), deadline=params["timeout"]
        )
    result["changed"] = bool(result["fetched"])
    if result["fetched"]:
        old = "".join("%(folder)s/%(name)s\n" % item for item in artifacts if item["name"] not in result["fetched"])
        new = "".join("%(folder)s/%(name)s\n" % item for item in artifacts)
        result["diff"] = {"before": old, "after": new}
    return result


def main():
    module = AnsibleModule(
        argument_spec=documented.options(DOCUMENTATION),
        required_if=[("state", "served", ["url"]), ("state", "unpacked", ["bundle", "key"])],
        supports_check_mode=True,
    )
    os.umask(0o022)
    variables = {str(name): str(value) for name, value in module.params["environment"].items()}
    if module.params["state"] != "served":  # hosts have no such variables
        os.environ.update(variables)
    # Logins are hidden, not whole addresses: messages name the server that failed.
    module.no_log_values = mirror_index.secrets_of(variables)
    try:
        result = mirror_index.within(
            module.params["timeout"] + GRACE, lambda: work(module), LATE % module.params["timeout"]
        )
    except mirror_index.MirrorError as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
