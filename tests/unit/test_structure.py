"""make structure: what it counts, in a checkout made for it, and what it does with limits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hadoop_dl_dev import structure

LIMITS = """---
# Limits
import_cycles: 2
upward_imports: 2
long_python_files: 2
contrasts: 4
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
        "lib/hadoop_dl/text.py": 'CODE = """\nimport os\n\nprint(os.getcwd())\n"""\nFORM = """{module}\nimport x\ny = {name}\n"""\nWORDS = """a\nb\nc\nd"""\n',
        "roles/one/files/tool": "#!/bin/sh\n" + "import os\n" * 450,
        "scripts/shell": "#!/bin/bash\n" + "echo '\nimport me'; (\n" * 450,
        "tests/unit/test_long.py": "x = 1\n" * 500,
        "roles/one/tasks/main.yml": "---\n- name: Do\n  copy: {dest: /etc/one}\n- name: Also\n  block:\n    - {name: Other, file: {path: /one}}\n- include_tasks: preflight.yml\n- our_module: {path: /same}\n",
        "roles/two/tasks/main.yml": "---\n- name: Do it\n  copy: {dest: /etc/two}\n- {name: Other, file: {path: /three}}\n- include_tasks: preflight.yml\n- our_module: {path: /same}\n",
        "plugins/modules/our_module.py": "",
        "roles/two/vars/main.yml": f"---\na: \"{{{{ {'x + ' * 40}1 }}}}\"\nb: '{{{{ y }}}} {'words ' * 40}'\n",
        "playbooks/two.yml": f"---\n- tasks:\n    - when: {'x + ' * 40}1\n    - assert: {{that: [y, {'x + ' * 40}1], fail_msg: {'words ' * 40}}}\n",
        "roles/two/README.md": "X has to be there, and it is not.\nIt has to be there, but is not.\nY is needed (for Z), and there is none.\nIt is needed here.\n",
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
        (structure.cycles, ["hadoop_dl.one, hadoop_dl.two", "hadoop_dl.plan.model, hadoop_dl_dev.bench"]),
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
        (structure.equal_tasks, ["roles/one/tasks/main.yml = roles/two/tasks/main.yml"]),
        (structure.programs, ["lib/hadoop_dl/text.py:1", "lib/hadoop_dl/text.py:6"]),
        (structure.contrasts, ["roles/two/README.md:1", "roles/two/README.md:3"]),
    ],
)
def test_a_place_is_found_and_nothing_else(checkout, measure, places):
    found = measure(structure.Tree(checkout))
    assert [place.replace("+  …", "+ …") for place in found.places] == places
    assert found.count == len(places)


def test_a_count_above_its_limit_fails_and_says_where(checkout, capsys):
    assert structure.main([], checkout) == 0
    text = (checkout / ".config/structure.yml").read_text(encoding="utf-8")
    (checkout / ".config/structure.yml").write_text(
        text.replace("import_cycles: 2", "import_cycles: 1"), encoding="utf-8"
    )
    assert structure.main([], checkout) == 1
    said = capsys.readouterr().out
    assert "<-- more than its limit" in said
    assert said.endswith(
        "import_cycles: more than the limits of .config/structure.yml allow. Make what you added smaller; the limits only go down.\n"
    )


def test_limits_are_lowered_and_never_raised(checkout):
    assert structure.main(["--lower"], checkout) == 0
    assert (checkout / ".config/structure.yml").read_text(encoding="utf-8") == LIMITS.replace(
        "contrasts: 4", "contrasts: 2"
    )
