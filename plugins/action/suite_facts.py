"""Run every check of the suite on a host at once (roles/verify/files/probe.py), over Ansible's own connection and become."""

import json
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from hadoop_dl.hosts import host_script, verify
from hadoop_dl.hosts.actions import ScriptAction


class ActionModule(ScriptAction):
    """suite_facts: `expectation` (environment, stack, gpu_count) and `directory` (of the report, on the controller).

    Both the expectation and the answers go to files there, which the suite reads. A host that does not answer has a file that names the reason, so that the
    report names it and the other hosts are checked all the same. It changes nothing on the host.
    """

    def act(self) -> dict[str, Any]:
        host = str(self.variables["inventory_hostname"])
        directory = Path(str(self._task.args["directory"]))
        path, expected = verify.answer_file(directory, host), verify.expectation_file(directory, host)
        try:
            answers = self.run_script(verify.probe_script(self._task.args["expectation"]))
        except (host_script.NoAnswer, AnsibleConnectionFailure) as problem:
            answers = {"no_answer": str(problem)}
        for file, content in ((path, answers), (expected, self._task.args["expectation"])):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content) + "\n", encoding="utf-8")
        return {"file": str(path)}
