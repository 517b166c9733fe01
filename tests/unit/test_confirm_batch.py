"""More than a quarter of the hosts at a time must be confirmed: layers/confirm_batch.yml with the real ansible-playbook."""

import ansible_programs
import pytest
import python_files
from ansible_programs import REPOSITORY

PLAYS = f"""
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.group_by: {{key: needs_nvidia_driver}}
- ansible.builtin.import_playbook: {REPOSITORY}/playbooks/layers/confirm_batch.yml
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.debug: {{msg: a host changes}}
"""


@pytest.mark.parametrize(
    ("batch", "hosts", "at_once", "many"),
    [("100%", 8, 8, True), ("25%", 8, 2, False), (3, 8, 3, True), (1, 2, 1, False)],
)
def test_more_than_a_quarter_and_more_than_one_is_many(batch, hosts, at_once, many):
    batches = python_files.load(REPOSITORY / "plugins" / "filter" / "batches.py")
    assert (batches.hosts_at_once(batch, hosts), batches.many_at_once(at_once, hosts)) == (at_once, many)


@pytest.mark.parametrize(
    ("options", "question"),
    [
        ("upgrade_batch=3", "3 of 8 hosts change at once"),
        ("upgrade_batch=25%", ""),
        ("upgrade_batch=100% assume_yes=true", ""),
    ],
)
def test_many_hosts_at_once_must_be_confirmed(tmp_path, options, question):
    (tmp_path / "change.yml").write_text(PLAYS, encoding="utf-8")
    names = "".join(f"data{number}," for number in range(8))
    code, output = ansible_programs.play("-i", names, "-c", "local", tmp_path / "change.yml", "-e", options)
    assert ("a host changes" in output) is not bool(question), output
    assert code == (2 if question else 0)
    assert question in output
    assert ("No host was changed." in output) is bool(question)
