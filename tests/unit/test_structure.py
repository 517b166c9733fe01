"""make structure: each rule names the places that break it, and nothing else."""

import subprocess

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
CHECK = "roles/one/files/a-check/check"


@pytest.mark.parametrize(
    ("rule", "files", "places"),
    [
        (
            structure.cycle,
            {f"{CHECK}/host.py": "def f():\n    from check import words\n", f"{CHECK}/words.py": "import check.host\n"},
            {"check.host imports check.words imports check.host"},
        ),
        (
            structure.cycle,
            {
                "plugins/module_utils/own/a.py": "from . import b\n",
                "plugins/module_utils/own/b.py": "from .a import x\n",
            },
            {"own.a imports own.b imports own.a"},
        ),
        (structure.cycle, {"lib/one.py": "import two\n", "lib/two.py": "import three\n", "tests/three.py": ""}, set()),
        (
            structure.upward,
            {
                "lib/hadoop_dl/data/facts.py": "from hadoop_dl.plan.model import Host\nfrom hadoop_dl.data import other\n",
                "lib/hadoop_dl/data/other.py": "",
                "lib/hadoop_dl/plan/model.py": "import hadoop_dl.data.other\n",
                "lib/hadoop_dl_dev/bench.py": "from hadoop_dl.plan.model import f\n",
            },
            {"hadoop_dl.data.facts imports hadoop_dl.plan.model"},
        ),
        (
            structure.spread_answers,
            {"plugins/action/ask.py": ACTION},
            {
                *(f"plugins/action/ask.py:{place}" for place in ("13: dict(answer) or answer", "16: self.answer")),
                *(f"plugins/action/ask.py:{number}: answer" for number in (4, 5, 7, 8)),
            },
        ),
        (
            structure.others_results,
            {"lib/hadoop_dl/plan/inputs.yml": "site:\n  batch: {type: int}\n", "playbooks/three.yml": OTHERS},
            {f"playbooks/three.yml:{number}" for number in (4, 5, 6, 7)},
        ),
    ],
)
def test_a_rule_names_the_places_that_break_it(rule, files, places, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    broken = {place.replace("ansible.module_utils.", "") for place in rule(structure.Tree(tmp_path))}
    assert broken == places
