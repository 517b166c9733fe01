"""Read a host in one round: run host_reader.py in its Python, answer with what it read.

It changes nothing and therefore runs in check mode.
"""

import sys
import time
from dataclasses import replace
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError

try:  # every run begins with this plugin
    from hadoop_dl.data import host_facts, typed
    from hadoop_dl.hosts import host_script
    from hadoop_dl.hosts.actions import ScriptAction
except ImportError as error:
    raise AnsibleError(
        f"The Python that runs Ansible ({sys.executable}) needs this project's package hadoop_dl, but: {error}. "
        "Use the ansible-playbook of .venv (make .venv), or install the package beside your own Ansible: pip install --editable DIRECTORY_OF_THIS_PROJECT"
    ) from error


class ActionModule(ScriptAction):
    """host_facts: no arguments; returns `facts`, of the reader's answer what has a field.

    Registered, not published as ansible_facts: Ansible copies those deeply for every task of every host. A host that does not answer in
    time, or whose answer has no sense, is unreachable, so that the others go on (deeplearning_unreachable decides).
    """

    def act(self) -> dict[str, Any]:
        host = self.variables.get("inventory_hostname")
        try:
            facts = host_facts.read_facts(self.run_script(host_script.reader(self.named())))
        except (host_script.NoAnswer, host_facts.FactsError) as problem:
            raise AnsibleConnectionFailure(f"{host}: {problem}") from problem
        if facts.kerberos:
            facts = replace(facts, kerberos=replace(facts.kerberos, received=int(time.time())))
        warnings = [f"{host}: {sentence}." for sentence in facts.unanswered]
        answer = typed.as_json(facts)
        return {"facts": answer, "warnings": warnings} if warnings else {"facts": answer}
