"""The mirror loses what no host needs, last, and never while a host is missing: layers/mirror_prune.yml with the real ansible-playbook."""

import json
from types import SimpleNamespace
from typing import cast

import ansible_programs
import pytest
import yaml
from ansible_programs import LOCAL, REPOSITORY, imports

from hadoop_dl.plan import installed_environments
from hadoop_dl.plan.model import Host

PRUNING = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.group_by:
        key: prune_mirror
      when: inventory_hostname == "mirror1"
    - ansible.builtin.fail:
      when: inventory_hostname == failing | default("")
- ansible.builtin.import_playbook: {layers}/mirror_prune.yml
"""


@pytest.mark.parametrize(
    ("missing", "options", "reason"),
    [
        ([], [], ""),
        (["cdsw1"], [], "cdsw1 did not answer or failed"),
        ([], ["-e", "failing=data1"], "data1 did not answer or failed"),
        ([], ["--limit", "mirror1"], "this run has --limit mirror1"),
    ],
)
def test_the_mirror_is_never_pruned_while_a_host_is_missing(tmp_path, missing, options, reason):
    plan = {"mirror_missing": missing, "digests": {"mirror": "0123456789ab"}}
    superfluous = [{"folder": "wheels", "name": "a-1-py3-none-any.whl", "sha256": "0" * 64}]
    mirror = {"plan": plan, "mirror_superfluous": superfluous}
    mirror |= {"mirror_root": str(tmp_path), "mirror_url": "http://127.0.0.1:8900"}
    hosts = {"mirror1": mirror, "data1": {}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": LOCAL, "hosts": hosts}}), encoding="utf-8")
    (tmp_path / "prune.yml").write_text(PRUNING.format(layers=REPOSITORY / "playbooks" / "layers"), encoding="utf-8")
    # In check mode: the receipt is in /opt/deeplearning.
    _, output = ansible_programs.play("--check", "-i", tmp_path / "hosts.yml", tmp_path / "prune.yml", *options)
    assert ("TASK [mirror : Remove what is no longer needed]" in output) is (not reason), output
    sentence = f"mirror_prune needs every host of the inventory, but {reason}. The mirror keeps everything"
    assert (sentence in output) is bool(reason), output


def test_what_an_environment_of_any_host_needs_stays_in_the_mirror():
    names = ["tf1.15-cpu-py27-el7-0123456789ab", "unknown-stack-0123456789ab"]
    environments = SimpleNamespace(deeplearning=SimpleNamespace(environments=dict.fromkeys(names)))
    kept_environments = installed_environments([cast(Host, SimpleNamespace(known=environments))])
    assert kept_environments == [["tf1.15-cpu-py27-el7", "2.7"]]
    variables = {"plan": {"mirror_environments": [], "mirror_kept": kept_environments}, "mirror_prune": True}
    message = "msg={{ mirror_superfluous | map(attribute='name') | join(' ') }}"
    answer = ansible_programs.run(
        *("ansible", "-i", "localhost,", "-c", "local", "-m", "debug", "-a", message, "localhost"),
        *("-e", f"@{REPOSITORY / 'playbooks/group_vars/all.yml'}", "-e", json.dumps(variables)),
    )
    assert "tensorflow_cpu-2.15" in answer.stdout
    assert "tensorflow_cpu-1.15" not in answer.stdout


@pytest.mark.parametrize("name", ["upgrade_stack", "site", "mirror", "build_tensorflow"])
def test_the_mirror_is_pruned_last(name):
    layers = [layer for layer in imports(name) if layer.startswith("layers/")]
    assert layers[-2:] == ["layers/mirror_prune.yml", "layers/run_unlock.yml"]
