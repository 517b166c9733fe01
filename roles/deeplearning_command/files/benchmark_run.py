# -*- coding: utf-8 -*-
"""Run `deeplearning benchmark` of this host as nobody and print its JSON: a script for playbooks/benchmark.yml. Python 2.7 and 3.

It trains with the environment's wheels, of which nobody here knows who built them: root runs none of them.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import pwd
import tempfile

from ansible.module_utils.hadoop_dl_host import processes
from gpu_check.host import KEPT, Host, become_nobody

REMOVE = 60  # seconds


def main(root, networks, seconds, limit):
    print(measured(root, networks, seconds, limit))


def measured(root, networks, seconds, limit):
    command = os.path.join(root, "bin", "deeplearning")
    if not os.path.exists(command):
        return unanswered("%s is required, but there is none. Run site.yml first." % command)
    host = Host()
    users = host.users()
    if users:
        return unanswered(
            "its GPUs must be idle, but %d processes compute there: %s" % (len(users), "; ".join(users[:5]))
        )
    options = ["--seconds", str(seconds), "--output", "-"] + (["--networks", ",".join(networks)] if networks else [])
    answer = run(host, [command, "benchmark"] + options, limit)
    json_lines = [line for line in answer.output.splitlines() if line.startswith("{")]
    if answer.late or not json_lines:
        words = [line for line in answer.error.splitlines() if line.strip()] or ["it said nothing"]
        late = "it did not end within %d s" % limit
        return unanswered("deeplearning benchmark: %s" % (late if answer.late else words[-1]))
    return json_lines[-1]


def run(host, command, limit):
    """As nobody with the groups of the GPUs, if root asks, and with a home that is removed afterwards."""
    home, prepare = tempfile.mkdtemp(prefix="deeplearning-benchmark."), None
    variables = dict((name, value) for name, value in os.environ.items() if KEPT.match(name))
    variables.update(HOME=home, TMPDIR=home)
    if os.geteuid() == 0:
        os.chown(home, pwd.getpwnam("nobody").pw_uid, -1)
        prepare = become_nobody(sorted(set(status.st_gid for _, status in host.nodes()) - set([0])))
    try:
        return processes.run(command, limit, variables, prepare=prepare)
    finally:
        # By nobody: what root removes there could be exchanged meanwhile.
        processes.run(["/usr/bin/find", home, "-mindepth", "1", "-delete"], REMOVE, variables, prepare=prepare)
        os.rmdir(home)


def unanswered(text):
    return json.dumps({"unanswered": text})
