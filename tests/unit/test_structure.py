"""make structure: what it counts, in a checkout made for it, and what it does with limits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hadoop_dl_dev import structure

ACTION = """
class ActionModule:
    def run(self, result, answer):
        result.update(changed=False, **answer)
        result.update(answer)
        result.update(changed=False, answer=answer)
        result |= answer
        return {**result, **answer}

    def act(self):
        if self.done:
            return self.count(answer)
        return dict(answer) or answer

    def other(self, result):
        return result | self.answer
"""
OTHERS = """---
- vars:
    one: "{{ hostvars[groups['x'] | first].batch | default(1) }}"
    two: "{{ hostvars[groups['x'] | first].__health }}"
    three: "{{ groups['x'] | map('extract', hostvars, 'batch') }}"
    four: "{{ hostvars[x].batch.more ~ hostvars[x].batch }}"
  ignore_unreachable: true
"""
LIMITS = """---
# Limits
import_cycles: 4
upward_imports: 2
long_python_files: 4
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files = {
        ".config/structure.yml": LIMITS,
        "lib/hadoop_dl/__init__.py": "",
        "lib/hadoop_dl/one.py": "def f():\n    from hadoop_dl import two\n",
        "lib/hadoop_dl/two.py": "from hadoop_dl.one import f\nfrom hadoop_dl import three\n",
        "lib/hadoop_dl/three.py": "x = 1\n" * 401,
        "lib/hadoop_dl/data/facts.py": "from hadoop_dl.plan.model import Host\nfrom hadoop_dl.data import other\n",
        "lib/hadoop_dl/data/other.py": "",
        "lib/hadoop_dl/plan/model.py": "import hadoop_dl.data.other\n\n\ndef f():\n    from hadoop_dl_dev import bench\n",
        "lib/hadoop_dl_dev/bench.py": "from hadoop_dl.plan.model import f\n",
        "roles/one/files/tool": "#!/bin/sh\n" + "import os\n" * 450,
        "scripts/shell": "#!/bin/bash\n" + "echo '\nimport me'; (\n" * 450,
        "tests/unit/test_long.py": "x = 1\n" * 500,
        "roles/one/tasks/main.yml": "---\n- name: Do\n  copy: {dest: /etc/one}\n",
        "roles/one/files/a-check/check/host.py": "from check import words\n",
        "roles/one/files/a-check/check/words.py": "from check.host import Host\n",
        "plugins/module_utils/own/a.py": "from . import b\n",
        "plugins/module_utils/own/b.py": "from .a import x\n",
        "plugins/modules/a.py": "from ansible.module_utils.own import a\n",
        "roles/two/vars/main.yml": f"---\na: \"{{{{ {'x + ' * 40}1 }}}}\"\nb: '{{{{ y }}}} {'words ' * 40}'\n",
        "playbooks/two.yml": f"---\n- tasks:\n    - when: {'x + ' * 40}1\n    - assert: {{that: [y, {'x + ' * 40}1], fail_msg: {'words ' * 40}}}\n",
        "plugins/action/ask.py": ACTION,
        "lib/hadoop_dl/plan/inputs.yml": "site:\n  batch: {type: int}\n",
        "playbooks/three.yml": OTHERS,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "lib/hadoop_dl/untracked.py").write_text("x = 1\n" * 500, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("measure", "places"),
    [
        (
            structure.cycles,
            [
                "ansible.module_utils.own.a, ansible.module_utils.own.b",
                "check.host, check.words",
                "hadoop_dl.one, hadoop_dl.two",
                "hadoop_dl.plan.model, hadoop_dl_dev.bench",
            ],
        ),
        (
            structure.upward,
            ["hadoop_dl.data.facts imports hadoop_dl.plan.model", "hadoop_dl.plan.model imports hadoop_dl_dev.bench"],
        ),
        (structure.long_files, ["lib/hadoop_dl/three.py: 401", "roles/one/files/tool: 451"]),
        (structure.long_tasks, []),
        (
            structure.long_expressions,
            [
                f"{name}: {('x + ' * 15)[:60].strip()} …"
                for name in ("playbooks/two.yml", "playbooks/two.yml", "roles/two/vars/main.yml")
            ],
        ),
        (
            structure.spread_answers,
            [
                *(f"plugins/action/ask.py:{place}" for place in ("13: dict(answer) or answer", "16: self.answer")),
                *(f"plugins/action/ask.py:{number}: answer" for number in (4, 5, 7, 8)),
            ],
        ),
        (structure.others_results, [f"playbooks/three.yml:{number}" for number in (4, 5, 6, 7)]),
    ],
)
def test_a_place_is_found_and_nothing_else(checkout, measure, places):
    measurement = measure(structure.Tree(checkout))
    assert [place.replace("+  …", "+ …") for place in measurement.places] == places
    assert measurement.count == len(places)


def test_a_count_above_its_limit_fails_and_says_where(checkout, capsys):
    assert structure.main([], checkout) == 0
    text = (checkout / ".config/structure.yml").read_text(encoding="utf-8")
    (checkout / ".config/structure.yml").write_text(
        text.replace("import_cycles: 4", "import_cycles: 3"), encoding="utf-8"
    )
    assert structure.main([], checkout) == 1
    output = capsys.readouterr().out
    assert "<-- more than its limit" in output
    assert output.endswith("Make what you added smaller.\n")
