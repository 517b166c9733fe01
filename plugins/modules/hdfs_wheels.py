#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Put wheels of environments into HDFS, or read those that this host needs from there."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: hdfs_wheels
short_description: Take the wheels of environments through HDFS
description:
  - C(published) puts the wheels that HDFS lacks there. They come from the mirror, verified, and get their names only when they are complete. Those that
    no lock needs are removed.
  - C(read) has the wheels that this host's next environment lacks in C(downloads/wheels), where C(locked_packages) looks first, and compares them with the lock.
  - What does not work is in C(problem), and no failure, because the mirror has every wheel.
options:
  state: {description: What to do, type: str, choices: [published, read], required: true}
  environment: {description: The environment's path, type: path, required: true}
  locks: {description: Locks whose wheels are put there; the one that is read, type: list, elements: str, required: true}
  kept: {description: Further locks whose wheels stay there, type: list, elements: str, default: []}
  directory: {description: Directory in HDFS, type: str, required: true}
  replication: {description: Copies of each block; 0 for the cluster's default, type: int, default: 0}
  environment_file: {description: "Shell file that sets JAVA_HOME, HADOOP_HOME and HADOOP_CONF_DIR", type: path, required: true}
  user: {description: 'Who reads and writes in HDFS, on a cluster without Kerberos', type: str, default: hdfs}
  principal: {description: Whose login to a cluster with Kerberos; none without one, type: str, default: ""}
  keytab: {description: File of this host with its keys, type: str, default: ""}
  mirror_url: {description: Address of the mirror, type: str, required: true}
  mirror_login: {description: C(user) and C(password) for it; they are shown nowhere, type: dict}
  mirror_ca: {description: CA bundle for a mirror with https, type: path}
  timeout: {description: Seconds for all downloads from the mirror, type: int, default: 3600}
  record: {description: File of this host that lists what this project put into HDFS, type: path, default: /opt/deeplearning/etc/hdfs.json}
"""

RETURN = r"""
published: {description: Wheels that were put there, type: list, returned: always}
removed: {description: Files that were removed there, type: list, returned: always}
problem: {description: "Why wheels come from the mirror, as a sentence; empty if none do", type: str, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host import hdfs_record, hdfs_wheels, kerberos_login, mirror_source, staged_wheels
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from ansible.module_utils.hadoop_dl_host.hdfs_command import Failure


def publish(hdfs, params, place, result):
    source = mirror_source.source(params["mirror_url"], params["mirror_ca"], params["timeout"], params["mirror_login"])
    entries = dict((entry["sha256"], entry) for lock in params["locks"] for entry in packages.parse_section(lock))
    digests = set(entry["sha256"] for lock in params["kept"] for entry in packages.parse_section(lock)) | set(entries)
    result["published"], result["removed"] = hdfs.publish(
        list(entries.values()), digests, place, source.fetch, params["record"], params["replication"]
    )
    result["changed"] = bool(result["published"] or result["removed"])


def read(hdfs, entries, place, result):
    wheels, reason = hdfs.read(entries, place)
    if wheels:
        names = ", ".join(entry["file"] for entry in wheels[:3]) + (" and others" if len(wheels) > 3 else "")
        result["problem"] = "%d of %d wheels are not read from %s (%s): %s." % (
            len(wheels),
            len(entries),
            hdfs.directory,
            names,
            reason.rstrip("."),
        )


def work(params):
    result = {"changed": False, "published": [], "removed": [], "problem": ""}
    place = staged_wheels.place(params["environment"])
    entries = []
    if params["state"] == "read":
        entries = hdfs_wheels.missing(params["environment"], params["locks"][0])
        if not entries:
            return result
    hdfs = hdfs_wheels.Wheels(params["environment_file"], params["user"], params["directory"])
    try:
        hdfs.check_launcher()
        with kerberos_login.logged_in(params["principal"], params["keytab"]):
            if params["state"] == "read":
                read(hdfs, entries, place, result)
            else:
                publish(hdfs, params, place, result)
    except (Failure, Refused, kerberos_login.NoLogin, IOError, OSError) as problem:
        result["problem"] = str(problem)
    return result


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["published", "read"], "required": True},
            "environment": {"type": "path", "required": True},
            "locks": {"type": "list", "elements": "str", "required": True},
            "kept": {"type": "list", "elements": "str", "default": []},
            "directory": {"type": "str", "required": True},
            "replication": {"type": "int", "default": 0},
            "environment_file": {"type": "path", "required": True},
            "user": {"type": "str", "default": "hdfs"},
            "principal": {"type": "str", "default": ""},
            "keytab": {"type": "str", "default": "", "no_log": False},  # a path
            "mirror_url": {"type": "str", "required": True},
            "mirror_ca": {"type": "path"},
            "mirror_login": {"type": "dict", "no_log": True},
            "timeout": {"type": "int", "default": 3600},
            "record": {"type": "path", "default": hdfs_record.PATH},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=False, published=[], removed=[], problem="")
    os.umask(0o022)
    module.exit_json(**work(module.params))


if __name__ == "__main__":
    main()
