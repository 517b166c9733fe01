# -*- coding: utf-8 -*-
"""Run `deeplearning benchmark` of this host and print its JSON: a script for playbooks/benchmark.yml. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import json
import os

from . import processes


def main(root, networks, seconds, limit):
    command = os.path.join(root, "bin", "deeplearning")
    if not os.path.exists(command):
        print(json.dumps({"unanswered": "%s is required, but there is none. Run site.yml first." % command}))
        return
    options = ["--seconds", str(seconds), "--output", "-"] + (["--networks", ",".join(networks)] if networks else [])
    answer = processes.run([command, "benchmark"] + options, limit)
    json_lines = [line for line in answer.output.splitlines() if line.startswith("{")]
    if answer.late or not json_lines:
        words = [line for line in answer.error.splitlines() if line.strip()] or ["it said nothing"]
        late = "it did not end within %d s" % limit
        json_lines = [json.dumps({"unanswered": "deeplearning benchmark: %s" % (late if answer.late else words[-1])})]
    print(json_lines[-1])
