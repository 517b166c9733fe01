"""The steps of every layer of checks: lint, unit, molecule, e2e, long. hadoop_dl_dev.checks runs them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hadoop_dl_dev.demo import tour
from hadoop_dl_dev.demo.cluster import Cluster

REPO = Path(__file__).resolve().parents[2]
LONG = "long"  # make test-long: slow tests
STACKS = ("tf1.15-py27-el7", "tf2.15-cpu-py3-el9")  # the GPU form of the second is 2.8 GB
SECURE = STACKS[1]  # its cluster has Kerberos
# Tests that depend on the stack run for each. The rest (queues, exit codes, printed commands, faults of hosts) runs for the first one only.
JOBS = ("training", "jobs", "deeplearning_command", "notebook", "benchmark", "tensorboard_page", "gpus_in_cdsw_engine")
# The first cluster has no GPU and no nvidia-smi, as a site's data nodes may have none; the second one has stand-ins of both.
OF_GPUS = tuple(f"tests/e2e/test_{name}.py" for name in ("gpus_in_yarn", "gpu_jobs"))
JOBS_OF_A_STACK = (*(f"tests/e2e/test_{name}.py" for name in JOBS), *OF_GPUS)
FAULTS_OF_A_STACK = ("tests/faults/test_repeated_run.py", "-k", "second_run")
OF_KERBEROS = "tests/e2e/test_kerberos.py"  # also the testinfra suite, whose answers it reads; ends with the removal
# tests/long asks for the notebook of Python 2.7.
NOT_OF_THE_FIRST = (OF_KERBEROS, "tests/e2e/test_notebook.py", *OF_GPUS)
# The longest scenarios start first, because the last one to start decides when the layer ends.
LONGEST_SCENARIOS = ("nvidia_driver", "upgrade_driver")
# In their order: NVIDIA's real module, and everything installed and removed on two systems (six to ten minutes each); 190 MB of packages;
# bazel compiled for 20 minutes; a Docker engine inside a node.
LONG_SCENARIOS = ("real_driver", "remove", "tensorflow_build_debian", "bazel_bootstrap", "cdsw_engine")
# They have tasks that only make test-long runs (`when: scenario_long`).
TWO_TIERS = ("nvidia_driver", "upgrade_driver", "cuda", "bazel")
# For all runs of Ansible in checks: the project's own callback, and the one that packs modules once.
CALLBACKS = ":".join(str(REPO / one / "callback") for one in ("plugins", "tests"))
# For ansible-lint: if the inventory of ansible.cfg, a demo's, is missing, imported playbooks fail to load, and it tries each for every import.
NO_INVENTORY = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "False"}
NO_ADVERTISEMENT = {"NO_MKDOCS_2_WARNING": "1"}  # of another generator, by the theme of mkdocs

# Folders with files that may begin with #!/bin/sh or bash.
SHELL_FOLDERS = ("scripts", ".ci", "demo", "lib", "roles", "molecule", "examples", "tests")

# Code for hosts, which have Python 2.7, or a Python 3 as old as RHEL 8's 3.6.
HOST_CODE = ("plugins/modules", "plugins/module_utils", "roles", "examples")
PYTHON3_HOST_CODE = (  # the mirror host
    "plugins/module_utils/hadoop_dl_host/mirror_bundle.py",
    "plugins/module_utils/hadoop_dl_host/mirror_files.py",
    "plugins/module_utils/hadoop_dl_host/mirror_index.py",
    "plugins/module_utils/hadoop_dl_host/mirror_pages.py",
    "plugins/module_utils/hadoop_dl_host/mirror_prune.py",
    "plugins/module_utils/hadoop_dl_host/mirror_served.py",
    "plugins/module_utils/hadoop_dl_host/package_sets.py",
    "plugins/modules/mirror_artifacts.py",
    "plugins/modules/mirror_packages.py",
    "roles/mirror/files/mirror_server.py",
)


@dataclass
class Step:
    """One command. Its log, and its JUnit file if it writes one, are named after it."""

    layer: str
    name: str
    command: Sequence[str]
    always: bool = False  # clean-up: runs also after a failure
    environment: dict[str, str] = field(default_factory=dict)
    needs_tests: bool = False  # a run that executed no test has verified nothing: molecule only warns about that
    outcome: str = "not run"
    seconds: float = 0.0

    @property
    def slug(self) -> str:
        return f"{self.layer}-{self.name}".replace(" ", "-").replace("/", "-")


def shell_scripts(repo: Path) -> list[str]:
    """Find the files that a shell will read."""
    candidates = [path for folder in SHELL_FOLDERS for path in sorted((repo / folder).rglob("*"))]
    return [
        str(path.relative_to(repo))
        for path in candidates
        if path.is_file() and path.read_bytes()[:64].split(b"\n")[0].endswith((b"bash", b"/sh", b"bash -e", b"sh -e"))
    ]


def lint_steps(repo: Path) -> list[Step]:
    vermin = ["vermin", "--quiet", "--no-tips", "--violations"]
    exclude = [part for path in PYTHON3_HOST_CODE for part in ("--exclude-regex", f"{path}$")]
    return [
        Step("lint", "ansible-lint", ["ansible-lint", "--strict", "--offline"], environment=NO_INVENTORY),  # longest
        Step("lint", "ruff", ["ruff", "check", "."]),
        Step("lint", "ruff format", ["ruff", "format", "--check", "."]),
        Step("lint", "shellcheck", ["shellcheck", "--severity=warning", *shell_scripts(repo)]),
        Step("lint", "yamllint", ["yamllint", "--strict", "."]),
        Step("lint", "mypy", ["mypy"]),
        Step("lint", "python 2.7", [*vermin, "-t=2.7-", "-t=3.6-", *exclude, *HOST_CODE]),
        Step("lint", "python 3.6", [*vermin, "-t=3.6-", *PYTHON3_HOST_CODE]),
        Step("lint", "documents", ["mkdocs", "build", "--strict"], environment=NO_ADVERTISEMENT),
        Step("lint", "structure", ["scripts/_run", "hadoop_dl_dev.structure"]),
    ]


def unit_steps(repo: Path, jobs: int) -> list[Step]:
    """The unit tests, a file at a time in each of `jobs` processes and one more: most of them wait for a process or a server."""
    workers = ["--numprocesses", str(jobs + 1), "--dist", "loadfile", "--no-loadscope-reorder"]
    return [Step("unit", "tests", ["pytest", "tests/unit", *workers, *junit("unit-tests", repo)], needs_tests=True)]


def scenarios(repo: Path) -> list[str]:
    names = sorted(path.parent.name for path in (repo / "molecule").glob("*/molecule.yml"))
    return [name for name in LONGEST_SCENARIOS if name in names] + [
        name for name in names if name not in LONGEST_SCENARIOS
    ]


def molecule_step(layer: str, name: str, repo: Path) -> Step:
    """A scenario; testinfra adds its own JUnit file."""
    report = junit(f"{layer}-{name}", repo)[0]
    command = ["molecule", "test", "--scenario-name", name]
    environment = {"PYTEST_ADDOPTS": report, **({"SCENARIO_LONG": "yes"} if layer == LONG else {})}
    return Step(layer, name, command, environment=environment, needs_tests=True)


def molecule_steps(repo: Path) -> list[Step]:
    return [molecule_step("molecule", name, repo) for name in scenarios(repo) if name not in LONG_SCENARIOS]


def long_steps(repo: Path) -> list[Step]:
    """Steps that take too long for every change: slow scenarios, and each file of tests/long."""
    steps = [molecule_step(LONG, name, repo) for name in scenarios(repo) if name in (*TWO_TIERS, *LONG_SCENARIOS)]
    for path in sorted((repo / "tests" / "long").glob("test_*.py")):
        name = path.stem.removeprefix("test_")
        command = ["pytest", str(path.relative_to(repo)), *junit(f"{LONG}-{name}", repo)]
        steps.append(Step(LONG, name, command, needs_tests=True))
    return steps


def stack_steps(repo: Path) -> list[Step]:
    """Every lock of every stack, installed on a node of its system; a node for each image."""
    return [
        Step(
            LONG,
            f"stacks {image}",
            ["pytest", "tests/stacks", "--image", image, *junit(f"{LONG}-stacks-{image}", repo)],
            needs_tests=True,
        )
        for image in ("el7", "el7-hadoop2", "el8", "el9", "el10")
    ]


def e2e_cluster(stack: str) -> Cluster:
    """The demo itself for the first stack. The next cluster is made beside the jobs of the one before, so each has a name of its own."""
    name = {STACKS[0]: Cluster.name, SECURE: "second"}.get(stack, stack)
    return Cluster(stack, name=name, kerberos=stack == SECURE, gpu_nodes=None if stack == SECURE else 0)


def e2e_steps(repo: Path, stack: str) -> list[list[Step]]:
    """A new cluster, in two parts: what make demo does; the suite, jobs, what breaks or removes something. Commands are those that it prints."""
    cluster = e2e_cluster(stack)
    demo, _status, _shell, verify, down = (item.command.split() for item in tour.suggestions(cluster))
    play = ("ansible-playbook", "-i", str(cluster.inventory.relative_to(REPO)), "site.yml", "--check", "--diff")
    absent = ("docker", "exec", cluster.container("data1"), "test", "!", "-e", "/opt/deeplearning")
    variables = {"E2E_STACK": stack, "E2E_CLUSTER": cluster.name}

    def step(name: str, *command: str, always: bool = False) -> Step:
        return Step("e2e", f"{stack} {name}", command, always, variables)

    def tests(name: str, *arguments: str) -> Step:
        command = ["pytest", *arguments, *junit(f"e2e-{stack}-{name}", repo)]
        return Step("e2e", f"{stack} {name}", command, environment=variables, needs_tests=True)

    of_gpus = ["--kerberos"] if cluster.kerberos else ["--gpu-nodes", "0"]
    up = ("scripts/demo", "up", "--name", cluster.name, "--stack", stack, *of_gpus)
    setup = [
        step("earlier cluster", *down),  # a killed run leaves nodes of the same names
        step("cluster", *up),
        step("site.yml --check", *play),
        step("nothing was made", *absent),
        step("make demo", *demo),
    ]
    jobs = [step("testinfra", *verify), tests("jobs", "tests/e2e", *(f"--ignore={path}" for path in NOT_OF_THE_FIRST))]
    faults = [tests("faults", "tests/faults")]
    if cluster.kerberos:
        jobs = [tests("jobs", *JOBS_OF_A_STACK)]
        faults = [tests("faults", *FAULTS_OF_A_STACK), tests("kerberos", OF_KERBEROS)]
    return [setup, [*jobs, *faults, step("demo-down", *down, always=True)]]


def e2e_phases(repo: Path, stacks: Sequence[str]) -> list[list[list[Step]]]:
    """Lanes that run side by side, phase by phase. The first cluster is made alone; then each has a lane, as jobs wait for YARN a third of their time."""
    (setup, tests), *lanes = [e2e_steps(repo, stack) for stack in stacks]
    return [[setup], [tests, *([*setup, *tests] for setup, tests in lanes)]]


def junit(slug: str, repo: Path) -> list[str]:
    return [f"--junitxml={repo / '.cache' / 'test' / (slug + '.xml')}"]
