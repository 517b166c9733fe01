"""scripts/stack new: the file of a stack that meets a request; versions for old Pythons. No index is asked."""

import shlex
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hadoop_dl.cli import lock_maker, mirror, old_pythons, stack, stack_new
from hadoop_dl.data.compat import load
from hadoop_dl.data.locks import StackError
from hadoop_dl.data.stacks import load_stack, load_stacks, stack_names, stack_problems
from hadoop_dl.resolver import resolve
from hadoop_dl.resolver.versions import version

V100 = {"os": "rhel-8.8", "gpu": ["V100"], "tensorflow": "2.12"}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """inventories/SITE/stacks of a site, and an index that has any Spark."""
    offer = {"sha256": "a" * 64, "size": 7}
    versions = [f"{major}.{minor}.{patch}" for major in (2, 3, 4) for minor in range(6) for patch in range(12)]
    offers = [{"name": f"pyspark-{version}.tar.gz", **offer} for version in versions]
    monkeypatch.setattr(mirror, "offers", lambda project: offers)
    monkeypatch.setattr("hadoop_dl.data.stacks._site", [])
    return tmp_path / "stacks"


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was locked; each lock is as short as a lock may be."""
    names: list[str] = []

    def update(found: lock_maker.Stack, check: bool, cache: Path) -> bool:
        names.append(found.name)
        path = found.lock_path(found.pythons[0])
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# component: pip\npip==25.3 --hash=sha256:{'a' * 64}  # pip-25.3-py3-none-any.whl 1\n")
        return False

    monkeypatch.setattr(lock_maker, "update", update)
    return names


def test_the_next_step_of_an_answer_without_a_stack_can_be_pasted_and_ends_in_one(directory, locks, capsys):
    line = "resolve --os rhel-8.8 --gpu V100 'tensorflow>=2.12,<2.13'"
    assert stack.main(shlex.split(line)) == 0
    step = capsys.readouterr().out.splitlines()[-1].strip()
    assert step.startswith(
        "scripts/stack new tf2.12-py311-el8 --stacks inventories/SITE/stacks --os rhel-8.8 --gpu V100 "
    )
    words = shlex.split(step.replace("inventories/SITE/stacks", str(directory)))
    assert stack.main(words[1:]) == 0
    assert locks == ["tf2.12-py311-el8"]
    assert "deeplearning_request: tf2.12-py311-el8" in capsys.readouterr().out
    assert stack.main([*shlex.split(line), "--stacks", str(directory)]) == 0
    assert capsys.readouterr().out.startswith("tf2.12-py311-el8: TensorFlow 2.12.1")


def test_the_name_in_the_step_is_free():
    request = {
        "os": "rhel-7.4",
        "gpu": "V100-PCIE-16GB",
        "hadoop": "cdh-6.3",
        "tensorflow": "1.4",
        "driver": "535.183.06",
    }
    assert "tf1.4-py27-el7" in stack_names()
    assert "/tf1.4-py27-el7-2.yml as " in resolve(request).next[0]


def test_a_host_of_the_plan_is_described_in_the_step(directory):
    from hadoop_dl.data.host_facts import HostProfile
    from hadoop_dl.resolver import unmet

    host = HostProfile(os="rhel-8.8", gpus=("10de:1db6",), hadoop="cdp-7.1", pythons=("3.9",))
    problem = unmet({"tensorflow": "2.12"}, host).problems[0]
    step = "scripts/stack new tf2.12-py39-el8 --stacks INVENTORY/stacks --os rhel-8.8 --gpu 10de:1db6 --hadoop cdp-7.1 tensorflow=2.12"
    assert step in problem


@pytest.mark.parametrize(
    ("request_", "present", "absent"),
    [
        (V100, {"tensorflow==2.12.1", "tensorflow-io==0.32.0", "kafka-python==2.2.21", "packaging"}, {"protobuf"}),
        ({**V100, "gpu": ["none"]}, {"tensorflow-cpu==2.12.1"}, {"nvidia-cublas-cu12"}),
        ({**V100, "tensorflow": "2.16"}, {"tensorflow[and-cuda]==2.16.2"}, set()),
        ({"os": "rhel-9.4", "tensorflow": "2.9", "gpu": ["none"]}, {"numpy<2"}, set()),
        ({"os": "rhel-7.9", "tensorflow": "1.12", "python": "2.7"}, {"pip==20.3.4", "h5py<3"}, {"tensorboard"}),
        ({"os": "rhel-9.4", "tensorflow": "2.21", "python": "3.12"}, {"nvidia-cublas-cu12==12.5.3.2"}, set()),
    ],
)
def test_the_file_requires_what_the_answer_has(directory, request_, present, absent):
    new = stack_new.new_stack(load(), "new", directory, request_, resolve(request_))
    assert not stack_problems(new.data, "new")
    lines = [line for texts in new.data["requirements"].values() for line in texts]
    assert present <= set(lines)
    assert not absent & {Requirement(line).name for line in lines}
    assert len({Requirement(line).name for line in lines}) == len(lines), "a project is required once"


def test_a_stack_without_an_operating_system_is_for_the_hosts_of_the_nearest(directory: Path) -> None:
    """TensorFlow 2.8 is for glibc 2.12, but no cryptography is any more."""
    request = {"tensorflow": "2.8", "python": "3.9"}
    new = stack_new.new_stack(load(), "new", directory, request, resolve(request))
    assert (new.data["os"], new.data["glibc_min"]) == (["el8", "el9"], "2.28")


def test_a_refused_lock_leaves_the_file_and_names_its_lines(directory, monkeypatch, capsys):
    reason = "Because keras==2.12.0 depends on numpy>=2 and tensorflow==2.12.1 depends on numpy<=1.24.3"

    def refuse(*_: object) -> bool:
        raise StackError(reason)

    monkeypatch.setattr(lock_maker, "update", refuse)
    words = ["--os", "rhel-8.8", "--gpu", "V100", "tensorflow=2.12"]
    assert stack.main(["new", "tf2.12", "--stacks", str(directory), *words]) == 1
    error = capsys.readouterr().err
    path = directory / "tf2.12.yml"
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers = {text: lines.index(f"  - {text}") + 1 for text in ("tensorflow==2.12.1", "keras==2.12.0")}
    named = " or ".join(f"line {number} ({text})" for text, number in numbers.items())
    assert error.splitlines()[-1] == f"Change {named} in {path}, then: scripts/stack lock tf2.12 --stacks {directory}"
    assert reason in error


@pytest.mark.parametrize(
    ("name", "place", "words", "status", "sentence"),
    [
        ("../x", "stacks", [], 1, "must be small letters, digits"),
        ("tf2.15-py3-el9", "stacks", [], 1, "exists already (scripts/stack show tf2.15-py3-el9)"),
        ("new", "none/stacks", [], 1, "does not exist. Name the directory of your inventory"),
        (
            "new",
            "stacks",
            ["--os", "rhel-9.4", "--gpu", "A100", "tensorflow=2.15"],
            0,
            "deeplearning_request: tf2.15-py3-el9",
        ),
        ("new", "stacks", ["--os", "rhel-7.9", "--gpu", "A100", "tensorflow=1.15"], 2, "The request cannot be met"),
        (
            "new",
            "stacks",
            ["--os", "rhel-7.4", "--gpu", "none", "tensorflow=1.6", "kafka=true"],
            1,
            "nothing was written: write inventories/SITE/stacks/tf1.6-cpu-py27-el7.yml as docs/operate/build.md says",
        ),
    ],
)
def test_what_needs_no_new_stack_is_said_and_nothing_is_written(tmp_path, name, place, words, status, sentence, capsys):
    assert stack.main(["new", name, "--stacks", str(tmp_path / place), *words]) == status
    captured = capsys.readouterr()
    assert sentence in captured.out + captured.err
    assert list(tmp_path.iterdir()) == []


# --- what uv does not resolve ----------------------------------------------------------------------------------------------

RELEASES: dict[str, dict[str, tuple[str, list[str]]]] = {  # project -> version -> Requires-Python, requirements
    "tensorflow": {"1.12.3": ("", ["tensorboard<1.13,>=1.12", "weakref==1.0rc1", 'mock; python_version >= "3"'])},
    "tensorboard": {"1.15.0": ("", []), "1.12.2": ("", ["six>=1.10"])},
    "weakref": {"1.0": ("", []), "1.0rc1": ("", [])},
    "six": {"2.0": (">=3.8", []), "1.17.0": (">=2.7, !=3.0.*", []), "1.16.0": ("", []), "1.18rc1": ("", [])},
    "tensorflowonspark": {"2.2.5": ('>="3.6"', ["six<1.17"])},
}


def index(python: str) -> old_pythons.Index:
    environment = lock_maker.marker_environment(python)
    return old_pythons.Index(
        lambda project: [
            (version, RELEASES[project][version][0]) for version in old_pythons.newest_first(RELEASES.get(project, ()))
        ],
        lambda project, version: [Requirement(text) for text in RELEASES[project][version][1]],
        lambda requirement: lock_maker.needed(requirement, (), environment),
    )


def test_versions_that_have_no_wheel_are_left_to_the_resolver_that_knows_recipes():
    """uv would run a setup.py or refuse: TensorFlow 2.5 on Python 3.9 requires termcolor 1.1, as 2.4 and 2.6 do."""
    locks = [
        (found.data["tensorflow"], python, found.base_lock(python))
        for found in load_stacks()
        for python in found.pythons
    ]
    for release, python, lock in locks:
        from_source = any(artifact["name"].endswith(".tar.gz") for artifact in lock.artifacts)
        assert old_pythons.needs_recipes(release, python) or not from_source, (release, python)
    assert old_pythons.needs_recipes("2.5.3", "3.9")
    pythons = [row["python"] for row in load().rows("python", "pythons")]
    assert all(old_pythons.needs_recipes("1.15.5", python) for python in pythons if version(python) < version("3.8"))
    assert not old_pythons.needs_recipes("2.15.1", "3.9")


def test_the_newest_versions_that_fit_and_run_on_the_python_are_chosen():
    versions = old_pythons.resolve(["tensorflow==1.12.3"], "2.7", index("2.7"))
    assert versions == {"tensorflow": "1.12.3", "tensorboard": "1.12.2", "weakref": "1.0rc1", "six": "1.17.0"}


def test_an_earlier_version_is_taken_if_a_later_project_requires_it():
    assert old_pythons.resolve(["six", "tensorflowonspark"], "3.6", index("3.6"))["six"] == "1.16.0"


@pytest.mark.parametrize(
    ("requirements", "sentence"),
    [
        (["tensorflow", "tensorboard>=1.15"], r"tensorflow 1\.12\.3 requires tensorboard<1\.13,>=1\.12"),
        (["keras==2.3"], r"the stack's file requires keras==2\.3"),
        (["tensorflowonspark"], "the stack's file requires tensorflowonspark"),
    ],
)
def test_requirements_that_contradict_each_other_are_named(requirements, sentence):
    with pytest.raises(StackError, match=sentence):
        old_pythons.resolve(requirements, "2.7", index("2.7"))


def test_a_new_stack_copies_from_its_own_line_if_there_is_one():
    for found in load_stacks():
        if not found.is_built and not found.base:
            versions = {**found.data, "python": found.pythons[0]}
            near = stack_new.nearest(versions)
            assert near.data["tensorflow"] == load_stack(found.name).data["tensorflow"]
