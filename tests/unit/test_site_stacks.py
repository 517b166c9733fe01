"""A site's own stacks beside its inventory, and packages that it adds to a stack; nothing here asks an index."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ansible_programs
import pytest
import yaml
from environments import wheel
from faulty_server import Index, serving
from packaging.requirements import Requirement

from hadoop_dl.cli import lock_maker, mirror
from hadoop_dl.cli import stack as stack_cli
from hadoop_dl.data import extras, stacks
from hadoop_dl.data.locks import Entry
from hadoop_dl.data.stacks import StackError, load_stack, stack_names
from hadoop_dl.plan import target
from hadoop_dl_dev import invented_hosts

BASE = "tf2.15-cpu-py3-el9"
FACTS = {"os": {"short": "el9", "name": "RHEL 9.4"}, "pythons": {"3.11": "/usr/bin/python3.11"}}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """inventories/SITE/stacks of a site, known to this process."""
    monkeypatch.setattr(stacks, "_site", [])
    target.locked.cache_clear()
    monkeypatch.setattr(target, "verdict", lambda name, node: {"problems": [], "warnings": []})
    directory = tmp_path / "stacks"
    (directory / "locks").mkdir(parents=True)
    stacks.add_site_stacks([tmp_path])
    return directory


def copy_stack(site: Path, name: str, **changes) -> None:
    base = load_stack(BASE)
    data = {**base.data, "name": name, "python": "3.11", **changes}
    (site / f"{name}.yml").write_text(yaml.safe_dump(data))
    shutil.copy(base.lock_path("3.11"), site / "locks" / f"{name}.txt")


def resolve(**variables) -> target.Target:
    return target.target_for(variables, invented_hosts.facts(FACTS), ["data_nodes"])


def test_a_stack_beside_the_inventory_is_known_by_its_name(site):
    copy_stack(site, "ours-el9")
    assert "ours-el9" in stack_names()
    host_target = resolve(deeplearning_request="ours-el9")
    assert host_target.problems == []
    assert host_target.environment == f"ours-el9-{load_stack('ours-el9').lock().digest}"


def test_an_inventory_file_has_its_stacks_in_the_same_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(stacks, "_site", [])
    (tmp_path / "stacks").mkdir()
    (tmp_path / "hosts.yml").touch()
    stacks.add_site_stacks([tmp_path / "hosts.yml", "host1,host2,"])
    assert stacks.directories() == [stacks.DIRECTORY, (tmp_path / "stacks").resolve()]


def test_a_name_that_the_project_has_is_refused(site):
    copy_stack(site, BASE)
    with pytest.raises(StackError, match="must be unique"):
        load_stack(BASE)


@pytest.mark.parametrize("command", [mirror.main, stack_cli.main])
def test_the_commands_read_the_stacks_of_a_directory(site, command, monkeypatch, capsys):
    copy_stack(site, "ours-el9")
    monkeypatch.setattr(stacks, "_site", [])
    name = ["ours-el9"] if command is mirror.main else []
    assert command(["list", *name, "--stacks", str(site)]) == 0
    assert ("tensorflow_cpu-2.15.1" if name else "ours-el9") in capsys.readouterr().out


def test_packages_without_a_lock_are_refused_with_the_command(site):
    host_target = resolve(deeplearning_request=BASE, deeplearning_extra_packages=["pandas", "dask<2025"])
    [problem] = host_target.problems
    assert f"scripts/stack lock {BASE} --extra 'dask<2025' --extra 'pandas' --stacks" in problem


def test_packages_make_a_stack_of_its_own_with_its_own_digest(site, monkeypatch):
    text = load_stack(BASE).lock("3.11").text
    line = f"pandas==2.3.0 --hash=sha256:{'a' * 64}  # pandas-2.3.0-cp311-cp311-manylinux_2_17_x86_64.whl 9\n"
    lock_text = text.replace("# component: tensorflow\n", f"# component: tensorflow\n{line}")
    monkeypatch.setattr(lock_maker, "make_lock", lambda *_, **__: lock_text)
    assert lock_maker.main([BASE, "--extra", "pandas", "--stacks", str(site)]) == 0
    host_target = resolve(deeplearning_request=BASE, deeplearning_extra_packages=["pandas"])
    assert host_target.problems == []
    assert host_target.data["based_on"] == BASE
    assert "pandas" in host_target.data["requirements"]["tensorflow"]
    assert host_target.environment.startswith(f"{BASE}-extra-")
    assert host_target.environment.rpartition("-")[2] != load_stack(BASE).lock("3.11").digest


def test_the_base_keeps_its_versions(site, monkeypatch):
    locked_versions = {}

    def resolve_versions(requirements, python, glibc, locked):
        locked_versions.update(locked)
        raise lock_maker.StackError("enough")

    monkeypatch.setattr(lock_maker, "resolve", resolve_versions)
    stack = extras.extended(load_stack(BASE), ["pandas"], site)
    with pytest.raises(lock_maker.StackError, match="enough"):
        lock_maker.make_lock(stack, "3.11", site, print)
    assert locked_versions["numpy"] == "1.26.4"


@pytest.fixture
def indexes(tmp_path, monkeypatch):
    """The site's index, and another one with newer versions that every other setting of uv and pip names."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with serving(Index()) as own_index, serving(Index()) as public:
        for index, version in ((own_index, "1.0"), (public, "99.0")):
            path = wheel(tmp_path, "internal", version)
            index.artifact(path.name, path.read_bytes())
        monkeypatch.setenv("PIP_INDEX_URL", f"{own_index.url}/simple")
        for name in ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
            monkeypatch.setenv(name, f"{public.url}/simple")
        monkeypatch.setenv("UV_FIND_LINKS", f"{public.url}/wheels/")
        monkeypatch.setenv("UV_INDEX_STRATEGY", "unsafe-best-match")
        yield own_index, public


@pytest.mark.parametrize("glibc", ["2.34", "2.27", "2.12", "2.43"])  # uv knows neither those between nor those beyond
def test_the_sites_index_alone_is_asked_for_versions(indexes, glibc):
    own_index, public = indexes
    assert lock_maker.resolve(["internal"], "3.11", glibc) == {"internal": "1.0"}
    assert "/simple/internal/" in [path for path, _ in own_index.requests]
    assert public.requests == []


@pytest.mark.parametrize(("glibc", "minor"), [("2.12", 17), ("2.27", 28), ("2.34", 34), ("2.43", 40)])
def test_a_wheel_for_the_stacks_own_c_library_is_found(glibc, minor):
    """TensorFlow 2.21 has wheels of manylinux_2_27 alone."""
    assert lock_maker.uv_platform(glibc) == f"x86_64-manylinux_2_{minor}"


def test_a_login_of_the_sites_index_is_in_no_command_line(indexes, monkeypatch):
    own_index, _ = indexes
    own_index.login = "reader:a-secret"
    commands = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda argv, **named: commands.append(argv) or run(argv, **named))
    monkeypatch.setenv("PIP_INDEX_URL", f"{own_index.url}/simple".replace("//", f"//{own_index.login}@"))
    assert lock_maker.resolve(["internal"], "3.11", "2.34") == {"internal": "1.0"}
    assert "a-secret" not in str(commands)
    with pytest.raises(lock_maker.StackError) as error:
        lock_maker.resolve(["nobody-has-this"], "3.11", "2.34")
    assert "a-secret" not in str(error.value)


DIRECT = (
    *("pandas @ https://example.com/pandas-2.0-py3-none-any.whl", "pandas @ git+https://example.com/pandas"),
    *("pandas @ file:///tmp/pandas.whl", "git+https://example.com/pandas", "./pandas.whl", "/tmp/pandas.whl"),
    *("--index-url https://example.com/simple", "pandas\n--extra-index-url https://example.com/simple"),
    *("-r other.txt", "pandas --hash=sha256:00", "https://example.com/pandas-2.0-py3-none-any.whl", ""),
)


@pytest.mark.parametrize("packages", ["pandas", [1], {"a": 1}])
def test_what_is_no_list_of_packages_is_refused(site, packages):
    [problem] = resolve(deeplearning_request=BASE, deeplearning_extra_packages=packages).problems
    assert "must be a list" in problem


@pytest.mark.parametrize("text", ["pandas >> 2", *DIRECT])
def test_a_package_that_is_not_from_the_index_is_refused(site, indexes, monkeypatch, capsys, text):
    own_index, public = indexes
    [problem] = resolve(deeplearning_request=BASE, deeplearning_extra_packages=[text]).problems
    assert "must be a name" in problem
    assert lock_maker.main([BASE, f"--extra={text}", "--stacks", str(site)]) == 1
    assert "must be a name" in capsys.readouterr().err
    copy_stack(site, "ours-el9", requirements={"tensorflow": ["tensorflow-cpu==2.15.1", text]})
    assert lock_maker.main(["ours-el9", "--stacks", str(site)]) == 1
    assert "must be a name" in capsys.readouterr().err
    assert own_index.requests == public.requests == []


@pytest.mark.parametrize("python", ["3.9", "3.11"])
def test_a_lock_that_fails_leaves_no_stack_and_no_lock(site, monkeypatch, capsys, python):
    def make(stack, wanted, *_):
        if wanted == python:
            raise lock_maker.StackError("no index")
        return "text"

    monkeypatch.setattr(lock_maker, "make_lock", make)
    assert len(load_stack(BASE).pythons) > 1
    assert lock_maker.main([BASE, "--extra", "pandas", "--stacks", str(site)]) == 1
    assert "no index" in capsys.readouterr().err
    assert lock_maker.main([BASE, "--extra", "pandas", "--stacks", str(site / "of" / "a new site")]) == 1
    assert list(site.rglob("*")) == [site / "locks"]


@pytest.mark.parametrize(
    ("base", "names", "told"),
    [
        (BASE, ("nvidia_nccl_cu12-2.32.3-py3-none-manylinux_2_18_x86_64.whl",), "nvidia-nccl-cu12"),
        (BASE, ("nvidia_ml_py-13.0-py3-none-any.whl", "pandas-2.3.0-cp311-cp311-manylinux_2_17_x86_64.whl"), ""),
        ("tf2.15-py3-el9", ("nvidia_nccl_cu12-2.32.3-py3-none-manylinux_2_18_x86_64.whl",), ""),
    ],
)
def test_cuda_that_comes_with_a_package_of_a_cpu_stack_is_told(site, base, names, told):
    """xgboost requires nvidia-nccl-cu12: pypi.org/pypi/xgboost/json."""
    entries = [Entry("tensorflow", "xgboost", "3.1.0", "a" * 64, "xgboost-3.1.0-py3-none-manylinux_2_28_x86_64.whl", 9)]
    requires = {"xgboost": [Requirement(name.partition("-")[0].replace("_", "-")) for name in names]}
    requires["tensorflow-cpu"] = [Requirement("nvidia-nccl-cu12; extra == 'and-cuda'")]
    for name in names:
        entries.append(Entry("tensorflow", name.partition("-")[0].replace("_", "-"), "1", "a" * 64, name, 302_000_000))
    text = extras.cuda_of_others(extras.extended(load_stack(base), ["xgboost"], site), entries, requires)
    assert (f", but xgboost requires {told} (302 MB)" in text) if told else not text


def test_the_file_of_a_stack_comes_after_its_locks(site, monkeypatch):
    """So that a run that was killed leaves no stack without a lock."""
    suffixes = []
    note = lambda path, data, **_: suffixes.append(Path(path).suffix)  # noqa: E731
    monkeypatch.setattr(lock_maker, "make_lock", lambda *_, **__: "text")
    monkeypatch.setattr(lock_maker.atomic_files, "write_whole", note)
    assert lock_maker.main([BASE, "--extra", "pandas", "--stacks", str(site)]) == 0
    assert set(suffixes[:-1]) == {".txt"}
    assert suffixes[-1] == ".yml"


def test_the_order_of_the_packages_does_not_matter():
    assert extras.checked(["pandas", "dask", "pandas"]) == extras.checked(["dask", "pandas"])


def test_a_stack_of_the_site_is_no_inventory(tmp_path):
    """Ansible reads every file below an inventory's directory as hosts, unless ansible.cfg says otherwise."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {data1: }}\n")
    (tmp_path / "stacks" / "locks").mkdir(parents=True)
    copy_stack(tmp_path / "stacks", "ours-el9")
    completed = ansible_programs.run("ansible-inventory", "-i", tmp_path, "--list")
    assert json.loads(completed.stdout)["all"]["children"] == ["ungrouped"]
    assert json.loads(completed.stdout)["ungrouped"]["hosts"] == ["data1"]
    assert "stacks" not in completed.stderr


def test_filters_know_the_stacks_beside_the_inventory(tmp_path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {data1: {ansible_connection: local}}}\n")
    (tmp_path / "stacks" / "locks").mkdir(parents=True)
    copy_stack(tmp_path / "stacks", "ours-el9")
    arguments = ("-m", "ansible.builtin.debug", "-a", "msg={{ 'ours-el9' | stack_lock('3.11', 'pip') }}")
    completed = ansible_programs.run("ansible", "-i", tmp_path, "data1", *arguments)
    assert completed.returncode == 0, completed.stdout
    assert "pip==25.3 --hash=sha256:" in completed.stdout
