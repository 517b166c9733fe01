"""Read a host in one round: pipe module_utils/node_reader.py into its Python, answer with what it read.

An ordinary module costs about twice a raw ssh loop, because every host unpacks and imports a zip; one script on
standard input costs no more than the loop (docs/performance.md). It changes nothing and therefore runs in check mode.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

MODULE_UTILS = Path(__file__).resolve().parent.parent / "module_utils"
# The first that is there: RHEL 8 and 9 keep one Python for the system in libexec.
INTERPRETERS = (
    "/usr/bin/python3",
    "/usr/libexec/platform-python",
    "/usr/bin/python2.7",
    "/usr/bin/python",
)
COMMAND = "for p in " + " ".join(INTERPRETERS) + '; do [ -x "$p" ] && exec "$p" -; done; echo no-python >&2; exit 127'


def reader_script() -> str:
    """The reader as one script: environment_tree becomes a module of that name, then the reader runs as __main__."""
    tree = (MODULE_UTILS / "environment_tree.py").read_text(encoding="utf-8")
    reader = (MODULE_UTILS / "node_reader.py").read_text(encoding="utf-8")
    # `from __future__` has to come first in a script, so both parts are compiled from text of their own.
    return (
        "import sys, types\n"
        f"tree, reader = {tree.encode('utf-8')!r}, {reader.encode('utf-8')!r}\n"
        "module = types.ModuleType('environment_tree')\n"
        "exec(compile(tree, 'environment_tree.py', 'exec'), module.__dict__)\n"
        "sys.modules['environment_tree'] = module\n"
        "exec(compile(reader, 'node_reader.py', 'exec'), {'__name__': '__main__'})\n"
    )


class ActionModule(ActionBase):
    """node_facts: no arguments; returns `facts` (the reader's answer), or `facts.error` with a sentence.

    Registered, not published as ansible_facts: Ansible copies those deeply for every task of every host.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        answer = self._low_level_execute_command(COMMAND, in_data=reader_script().encode(), sudoable=True)
        result.update(changed=False, facts=self._node(answer))
        return result

    @staticmethod
    def _node(answer: dict[str, Any]) -> dict[str, Any]:
        """What the reader printed. Problems are told by the plan, which lists those of all hosts at once."""
        if answer.get("rc") == 127 and "no-python" in answer.get("stderr", ""):
            return {
                "error": "Python 2.7 or 3 is needed on the host, and none of "
                + ", ".join(INTERPRETERS)
                + " is there. Install it with the operating system's package manager; scripts/bootstrap_ssh checks it."
            }
        for line in reversed(answer.get("stdout", "").splitlines()):
            if line.startswith("{"):
                try:
                    node: dict[str, Any] = json.loads(line)
                except ValueError:
                    continue
                return node
        said = (answer.get("stderr", "") or answer.get("stdout", "")).strip().splitlines()
        if answer.get("rc") == 255:
            raise AnsibleConnectionFailure(said[-1] if said else "the connection broke")
        return {
            "error": f"the host could not be read: exit status {answer.get('rc')}, "
            f"{said[-1] if said else 'no output'!r}. Try it by hand: ansible HOST -m ansible.builtin.raw -a id -b"
        }
