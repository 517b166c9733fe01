"""scripts/mirror with an inventory: what a site's mirror holds, without asking a host, and that the role has nothing to fetch after it."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import ansible_programs
import pytest
import yaml
from ansible.module_utils.hadoop_dl_host import package_sets
from ansible_programs import REPOSITORY
from built_wheel import PROVENANCE
from faulty_server import Index
from plan_hosts import made, make_host

from hadoop_dl.cli import mirror, mirror_site
from hadoop_dl.data import stacks
from hadoop_dl.hosts import mirror_contents

STACK = "ours-el9"
PLAY = """
- hosts: localhost
  gather_facts: false
  vars_files: [{variables}]
  vars:
    plan: {{mirror_environments: [[{stack}, "3.11"]]}}
  tasks:
    - mirror_artifacts:
        root: {root}
        artifacts: "{{{{ mirror_artifacts }}}}"
      register: answer
    - debug:
        msg: "fetched {{{{ answer.fetched | length }}}} of {{{{ mirror_artifacts | length }}}}, changed {{{{ answer.changed }}}}"
"""


class Site:
    """An inventory with a stack of its own, whose artifacts the index has."""

    def __init__(self, directory: Path, served: Index) -> None:
        self.directory, self.index, self.root = directory, served, directory.parent / "carried"
        (directory / "stacks" / "locks").mkdir(parents=True)
        data = dict(stacks.load_stack("tf2.15-cpu-py3-el9").data)
        self.data = {**data, "name": STACK, "python": "3.11", "files": []}
        self.write_stack()
        groups = {"data_nodes": ["data1", "data2"], "mirror_host": ["mirror1"], "cdsw_hosts": ["cdsw1"]}
        children = {group: {"hosts": dict.fromkeys(names, {})} for group, names in groups.items()}
        (directory / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": children}}))
        self.variables: dict[str, Any] = {"deeplearning_request": STACK, "mirror_url": "http://mirror1:8900"}

    def write_stack(self, **changes: Any) -> None:
        (self.directory / "stacks" / f"{STACK}.yml").write_text(yaml.safe_dump({**self.data, **changes}))
        lines = []
        for component, project, suffix in (
            ("pip", "pip", "-24.0-py3-none-any.whl"),
            ("tensorflow", "six", "-1.16.0-py2.py3-none-any.whl"),
            ("tensorflow", "ours", "-0.2.2-py3-none-any.whl"),
        ):
            entry = self.index.artifact(project + suffix, project.encode())
            version = suffix.split("-")[1]
            lines.append(f"# component: {component}")
            lines.append(f"{project}=={version} --hash=sha256:{entry['sha256']}  # {entry['name']} {entry['size']}")
        (self.directory / "stacks" / "locks" / f"{STACK}.txt").write_text("\n".join(lines) + "\n")

    def file(self, name: str, content: bytes) -> dict[str, str]:
        """A file that the site names in mirror_files."""
        sha256 = str(self.index.artifact(name, content)["sha256"])
        return {"file": f"{self.index.url}/files/{name}", "sha256": sha256}

    def run(self, command: str, *options: str) -> int:
        (self.directory / "group_vars").mkdir(exist_ok=True)
        (self.directory / "group_vars" / "all.yml").write_text(yaml.safe_dump(self.variables))
        address = ["--index-url", f"{self.index.url}/simple"] if command == "fetch" else []
        return mirror.main([command, "-i", str(self.directory), "--root", str(self.root), *address, *options])


@pytest.fixture
def site(tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(stacks, "_site", [])
    monkeypatch.setattr(mirror_site, "PYTHON", sys.executable)
    monkeypatch.setenv("ANSIBLE_CONFIG", str(REPOSITORY / "ansible.cfg"))
    stacks._load.cache_clear()
    return Site(tmp_path / "site", index)


def test_a_mirror_that_is_filled_of_an_inventory_is_complete_for_the_role(site, capsys):
    site.variables["mirror_files"] = {"bazel-0.26.1": site.file("bazel-0.26.1", b"bazel")}
    assert site.run("fetch") == 0
    assert "holds 4 artifacts (at least 0 MB), each verified; 4 fetched now." in capsys.readouterr().out
    assert site.run("verify") == 0
    assert site.run("prune") == 0
    assert "removed 0 artifacts of other stacks; kept the 4 that" in capsys.readouterr().out
    request_count = len(site.index.requests)
    play = site.root.parent / "play.yml"
    variables = REPOSITORY / "playbooks/group_vars/all.yml"
    play.write_text(PLAY.format(variables=variables, stack=STACK, root=site.root))
    local = shlex.join(f"{key}={value}" for key, value in ansible_programs.LOCAL.items())
    (site.root.parent / "local").write_text(f"localhost {local}\n")
    sources = ("-i", site.directory, "-i", site.root.parent / "local")
    status, output = ansible_programs.play(*sources, play, PIP_INDEX_URL=f"{site.index.url}/simple")
    assert status == 0, output
    assert "fetched 0 of 4, changed False" in output
    assert len(site.index.requests) == request_count


def test_the_list_names_kind_address_and_what_needs_it(site, capsys):
    file = site.file("bazel-0.26.1", b"bazel")
    site.variables |= {
        "mirror_files": {"bazel-0.26.1": file},
        "bazel_files": {"0.26.1": {**file, "file": "{{ mirror_url }}/files/bazel-0.26.1"}},
        "cdsw_engine_stack": "tf1.15-cpu-py36-el7",
    }
    assert site.run("list", "tf1.15-cpu-py27-el7:2.7") == 0
    rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    path_rows = {row[1]: row for row in rows if STACK in row[5] or row[3] == "file"}
    groups = f"{STACK} on Python 3.11 (cdsw_hosts, data_nodes)"
    assert path_rows["wheels/six-1.16.0-py2.py3-none-any.whl"][2:] == ["3", "wheel", "pypi:six", groups]
    assert path_rows["wheels/ours-0.2.2-py3-none-any.whl"][2:] == ["4", "wheel", "pypi:ours", groups]
    bazel = ["-", "file", f"{site.index.url}/files/bazel-0.26.1", "mirror_files, bazel_files"]
    assert path_rows["files/bazel-0.26.1"][2:] == bazel
    needs = {user for row in rows for user in row[5].split(", ")}
    assert {"tf1.15-cpu-py27-el7 on Python 2.7", "tf1.15-cpu-py36-el7 on Python 3.6 (cdsw_engine_stack)"} <= needs


GPU_LAYER = {"el9": {"hosts": ["data1"], "packages": ["kmod-nvidia-open-dkms-580.82.07"]}}


def plan_of(site: Site, **changes: Any) -> str:
    """A plan's file, as playbooks/plan.yml writes it."""
    (site.root.parent / "key.asc").write_text("key")
    site.variables |= {"mirror_gpu_key": "{{ inventory_dir }}/../key.asc"}
    site.variables |= {"mirror_gpu_repositories": {"el9": "http://packages.example.com"}}
    hosts = dict.fromkeys(("data1", "mirror1", "cdsw1"), {})
    file = site.root.parent / "plan.json"
    file.write_text(json.dumps({"hosts": hosts, "problems": [], "gpu_packages": GPU_LAYER, **changes}))
    return str(file)


def test_a_plan_adds_the_gpu_layer_with_the_inputs_by_which_hosts_find_it(site, capsys):
    assert site.run("list", "--plan", plan_of(site)) == 0
    output = capsys.readouterr()
    row = output.out.splitlines()[-1]
    assert row == (
        "-  rpm/gpu-el9  -  set  http://packages.example.com  the plan of data1 (kmod-nvidia-open-dkms-580.82.07)"
    )
    assert "The plan does not have data2, so that packages" in output.err
    lines = output.err.partition("# For the group_vars of hosts with el9: data1\n")[2]
    addresses = yaml.safe_load(lines)
    assert addresses["cudnn_repository_url"] == "{{ mirror_url }}/rpm/gpu-el9"
    assert {name.rpartition("_repository_")[0] for name in addresses} == {
        *("nvidia_driver", "cuda", "cudnn", "nccl", "container_runtime")
    }


def test_a_plan_of_another_inventory_and_one_without_an_inventory_are_refused(site, capsys):
    other = plan_of(site, hosts={"data1": {}, "gpu77": {}})
    assert site.run("list", "--plan", other) == 1
    assert "has gpu77, which the inventory does not have" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        mirror.main(["list", "tf2.15-cpu-py3-el9", "--plan", other])
    assert "--plan requires the inventory" in capsys.readouterr().err


def test_a_bundle_requires_a_key_that_signs_it_and_everything_that_it_must_have(site, capsys):
    target = site.root.parent / "site.bundle"
    assert site.run("fetch", "--bundle", str(target)) == 1
    assert "requires the inventory's mirror_bundle_key, a file on this machine" in capsys.readouterr().err
    (site.root.parent / "bundle.asc").write_text("no key")
    site.variables["mirror_bundle_key"] = "{{ inventory_dir }}/../bundle.asc"
    assert site.run("fetch", "--bundle", str(target)) == 1
    assert "mirror_bundle_key must be an OpenPGP public key" in capsys.readouterr().err
    site.variables["tensorflow_build_source"] = {
        **site.file("tf.bundle", b"x"),
        "file": "{{ mirror_url }}/files/tf.bundle",
    }
    assert site.run("fetch", "--bundle", str(target)) == 1
    assert "site.bundle was not written, because it would not be complete" in capsys.readouterr().err
    assert list(site.root.parent.glob("site.bundle*")) == []
    with pytest.raises(SystemExit):
        site.run("verify", "--bundle", str(target))
    assert "--bundle is an option of fetch" in capsys.readouterr().err


def test_a_file_that_nothing_fetches_is_named_and_may_be_put_there(site, capsys):
    bundle = {**site.file("tf.bundle", b"bundle"), "file": "{{ mirror_url }}/files/tf.bundle"}
    site.variables["tensorflow_build_source"] = bundle
    assert site.run("fetch") == 1
    errors = capsys.readouterr().err
    assert "tf.bundle (missing) is required by tensorflow_build_source, but no address of it is known." in errors
    assert (site.root / "wheels" / "six-1.16.0-py2.py3-none-any.whl").exists()
    (site.root / "files").mkdir(exist_ok=True)
    (site.root / "files" / "tf.bundle").write_bytes(b"bundle")
    assert site.run("fetch") == 0
    (site.root / "files" / "tf.bundle").write_bytes(b"other!")
    assert site.run("verify") == 1
    errors = capsys.readouterr().err
    assert "tf.bundle: other bytes than the lock's" in errors
    assert "Fetch them: the same command, with fetch in place of verify." in errors


def test_a_wheel_that_the_site_built_is_listed_and_not_fetched(site, capsys):
    site.write_stack(tensorflow_source="built", tensorflow="1.15.0", tensorflow_commit="5" * 40, bazel="0.26.1")
    (site.directory / "stacks" / "built").mkdir()
    record = {**PROVENANCE, "version": "1.15.0", "commit": "5" * 40, "python": {"version": "3.11", "abi": ""}}
    (site.directory / "stacks" / "built" / f"{STACK}.json").write_text(json.dumps(record))
    assert site.run("list") == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "  built  " in line]
    assert PROVENANCE["wheel"]["name"] in row
    assert site.run("fetch") == 1
    assert "this site builds" in capsys.readouterr().err


def test_a_set_of_packages_is_compared_and_without_dnf_all_else_is_fetched(site, capsys):
    planned = ("--plan", plan_of(site))
    assert site.run("fetch", *planned) == 1
    assert "The set gpu-el9: The packages of the GPU layer require dnf's Python module" in capsys.readouterr().err
    assert (site.root / "wheels/six-1.16.0-py2.py3-none-any.whl").exists()
    place = site.root / "rpm" / "gpu-el9"
    (place / "repodata").mkdir(parents=True)
    (place / "repodata" / "repomd.xml").write_text("<repomd/>")
    urls = ["http://packages.example.com"]
    maker = package_sets.Maker(str(site.root), "gpu-el9", GPU_LAYER["el9"]["packages"], urls, "key")
    record = {"request": package_sets.digest(maker.request()), "packages": {}, "elsewhere": ["kernel-devel"]}
    (place / "set.json").write_text(json.dumps(record))
    assert site.run("verify", *planned) == 0
    assert site.run("fetch", *planned) == 0
    assert "rpm/gpu-el9 also requires what none of its repositories has: kernel-devel." in capsys.readouterr().out
    (place / "repodata" / "repomd.xml").unlink()
    assert site.run("verify", *planned) == 1
    assert "rpm/gpu-el9: its metadata is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"deeplearning_request": "ours"}, "data1, data2: The name of a stack is required, but none is called 'ours'"),
        ({"deeplearning_request": ""}, "deeplearning_request must be"),
        (
            {"deeplearning_request": {"tensorflow": "2.15"}},
            "depends on their system and GPUs. Name it on the command line",
        ),
        ({"deeplearning_request": {"tensorflow": "9.9"}}, "deeplearning_request"),
        ({"deeplearning_extra_packages": ["pandas"]}, "tf1.15-py27-el7 with pandas must be locked first"),
        ({"mirror_files": {"x": {"file": "http://x/x"}}}, "mirror_files must be a mapping"),
        ({"cdsw_engine_stack": "lost"}, "engine1: The name of a stack is required, but none is called 'lost'"),
    ],
)
def test_what_an_inventory_does_not_decide_is_a_sentence(variables, words):
    groups = {"data1": "data_nodes", "data2": "data_nodes", "mirror1": "mirror_host", "engine1": "cdsw_engine_host"}
    hosts = [make_host(name, (group,), None, **variables) for name, group in groups.items()]
    problems = mirror_contents.contents(hosts, (), REPOSITORY).problems
    assert words in "\n".join(problems)


def test_a_value_that_only_a_host_decides_is_a_sentence(site, capsys):
    site.variables["deeplearning_request"] = "{{ ansible_facts.os }}"
    assert site.run("list") == 1
    output = capsys.readouterr()
    assert "data1, data2, mirror1: deeplearning_request cannot be evaluated" in output.err
    assert output.out == ""


def test_a_named_stack_decides_between_those_that_fit_the_constraints(site, capsys):
    site.variables["deeplearning_request"] = {"tensorflow": "2.15", "python": "3.11"}
    assert site.run("list", "tf2.15-cpu-py3-el9:3.11") == 0
    output = capsys.readouterr().out
    assert "tf2.15-cpu-py3-el9 on Python 3.11 (cdsw_hosts, data_nodes)" in output
    assert "Python 3.9" not in output


def test_a_vaulted_inventory_is_read_with_its_password(site, tmp_path, capsys):
    (tmp_path / "password").write_text("word")
    (site.directory / "host_vars").mkdir()
    path = site.directory / "host_vars" / "mirror1.yml"
    path.write_text(yaml.safe_dump({"mirror_environment": {"https_proxy": "http://svc:canary@proxy:3128"}}))
    completed = ansible_programs.run("ansible-vault", "encrypt", path, "--vault-password-file", tmp_path / "password")
    assert completed.returncode == 0
    assert site.run("list") == 1
    assert "must read the inventory" in capsys.readouterr().err
    assert site.run("list", "--vault-password-file", str(tmp_path / "password")) == 0
    assert "canary" not in str(capsys.readouterr())


def test_an_inventory_that_is_not_there_and_no_request_at_all_are_refused(capsys):
    assert mirror.main(["list", "-i", "inventories/lost"]) == 1
    assert "inventories/lost does not" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        mirror.main(["list"])
    assert "a stack or an inventory (-i) is required" in capsys.readouterr().err


def test_the_plan_and_the_program_ask_for_the_same_environments():
    """The plan knows the hosts' Pythons; the list has all of the stack's."""
    engine = {"cdsw_engine_stack": "tf1.15-cpu-py36-el7"}
    engines = [make_host(**engine), make_host("engine1", ("cdsw_engine_host",), **engine)]
    hosts = [*engines, make_host("mirror1", ("mirror_host",))]
    site_plan = made(*hosts)
    assert site_plan.problems == []
    mirror_content = mirror_contents.contents(hosts, (), REPOSITORY)
    assert mirror_content.problems == []
    pairs = [[name, python] for name, python in mirror_content.environments]
    assert sorted(site_plan.hosts["mirror1"]["mirror_environments"]) == sorted(pairs)
    assert ["tf1.15-cpu-py36-el7", "3.6"] in pairs


def test_an_engine_of_an_unknown_stack_is_a_problem_of_the_plan():
    hosts = [make_host(), make_host("engine1", ("cdsw_engine_host",), cdsw_engine_stack="lost")]
    assert any("none is called 'lost'" in problem for problem in made(*hosts).problems)
