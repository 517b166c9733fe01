"""A run of the checks gets a module that an earlier one packed, and never that of another source."""

import json
import shutil
import uuid

import ansible_programs

MODULE = """\
from ansible.module_utils.basic import AnsibleModule

AnsibleModule({{}}).exit_json(changed=False, word="{word}")
"""
PLAYS = [
    {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"told": {}, "register": "it"}, {"debug": {"var": "it.word"}}],
    }
]


def test_a_module_that_changed_is_packed_again(tmp_path):
    first, second = uuid.uuid4().hex, uuid.uuid4().hex  # an earlier test has packed neither
    (tmp_path / "modules").mkdir()
    (tmp_path / "play.yml").write_text(json.dumps(PLAYS), encoding="utf-8")
    local = json.dumps(ansible_programs.LOCAL)
    packings = []
    for word in (first, first, second):
        (tmp_path / "modules/told.py").write_text(MODULE.format(word=word), encoding="utf-8")
        library = f"{ansible_programs.REPOSITORY / 'plugins/modules'}:{tmp_path / 'modules'}"
        code, output = ansible_programs.play(
            *("-i", "localhost,", "-e", local, tmp_path / "play.yml", "-vvvvv"),
            ANSIBLE_LIBRARY=library,
            ANSIBLE_DEBUG="1",
        )
        assert code == 0, output[-2000:]
        assert f"it.word: {word}" in output
        packings.append("ANSIBALLZ: Creating module" in output)
    assert packings == [True, False, True]
    for path in (ansible_programs.REPOSITORY / ".cache/test/modules").glob("*/ansible.modules.told-*"):
        shutil.rmtree(path.parent)
