"""Every check of this project, in the order that fails soonest: lint, unit, molecule, e2e; and long.

`make test` runs the first four through scripts/check, `make test-long` the last. The first failure ends the run (of the quick lint steps all are
run); a table of what ran, what did not, and how long each step took comes last in every case. Logs and JUnit files
stay in .cache/test.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hadoop_dl_dev.check_results import Count, causes, count_junit
from hadoop_dl_dev.demo import tour
from hadoop_dl_dev.demo.cluster import Cluster

REPO = Path(__file__).resolve().parents[2]
LAYERS = ("lint", "unit", "molecule", "e2e")  # make test
LONG = "long"  # make test-long: what is slow and rarely breaks
WHOLE = ("lint", LONG)  # layers that go on after a failure: all of what they find is wanted
STACKS = ("tf1.15-py27-el7", "tf2.15-cpu-py3-el9")  # the GPU form of the second is 2.8 GB
SECURE = STACKS[1]  # its cluster has Kerberos
# What depends on the stack is asked of each; the rest (queues, exit codes, printed commands, faults of hosts) of the other one only.
JOBS = ("training", "jobs", "additional_stack", "deeplearning_command", "notebook", "benchmark", "tensorboard_page")
JOBS_OF_A_STACK = tuple(f"tests/e2e/test_{name}.py" for name in (*JOBS, "gpus_in_yarn", "gpus_in_cdsw_engine"))
FAULTS_OF_A_STACK = ("tests/faults/test_repeated_run.py", "-k", "second_run")
OF_KERBEROS = "tests/e2e/test_kerberos.py"  # also the testinfra suite, whose answers it reads; ends with the removal
OF_SECURE = (OF_KERBEROS, "tests/e2e/test_additional_stack.py")  # not on the other cluster
# The longest scenarios start first: what starts last decides when the layer ends.
LONGEST_SCENARIOS = ("nvidia_driver", "upgrade_driver")
# One builds NVIDIA's real module, one installs and removes everything on three systems: six to ten minutes each; one has 190 MB of packages,
# one compiles bazel for 20 minutes, one starts a Docker engine of its own inside a node.
LONG_SCENARIOS = ("nvidia_driver_debian", "remove", "tensorflow_build_debian", "bazel_bootstrap", "cdsw_engine")
# They have more to do in make test-long: their own `when: scenario_long`.
TWO_TIERS = ("nvidia_driver", "upgrade_driver", "cuda", "bazel")
# For ansible-lint: if the inventory of ansible.cfg, a demo's, is missing, imported playbooks fail to load, and it tries each for every import.
NO_INVENTORY = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "False"}

# Where a file may begin with #!/bin/sh or bash.
SHELL_FOLDERS = ("scripts", ".ci", "demo", "lib", "roles", "molecule", "examples", "tests")

# What runs on hosts: Python 2.7 there, or a Python 3 as old as RHEL 8's 3.6.
HOST_CODE = ("plugins/modules", "plugins/module_utils", "roles", "examples")
PYTHON3_HOST_CODE = (  # the mirror host
    "plugins/module_utils/hadoop_dl_host/deb_sets.py",
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
    """One command. Its log, and its JUnit file where it writes one, are named after it."""

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
        Step("lint", "shell syntax", ["bash", "-n", *shell_scripts(repo)]),
        Step("lint", "yamllint", ["yamllint", "--strict", "."]),
        Step("lint", "mypy", ["mypy"]),
        Step("lint", "python 2.7", [*vermin, "-t=2.7-", "-t=3.6-", *exclude, *HOST_CODE]),
        Step("lint", "python 3.6", [*vermin, "-t=3.6-", *PYTHON3_HOST_CODE]),
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
    """What takes too long for every change: slow scenarios, and each file of tests/long."""
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
        for image in ("el7", "el7-hadoop2", "el8", "el9")
    ]


def e2e_steps(repo: Path, stacks: Sequence[str]) -> list[Step]:
    """A new cluster for each stack: what make demo prints as its commands, and between them more jobs and the faults."""
    steps = []
    for stack in stacks:
        secure = stack == SECURE
        cluster = Cluster(stack, kerberos=secure)
        demo, _status, _shell, verify, down = (one.command.split() for one in tour.suggestions(cluster))

        def step(name: str, *command: str, always: bool = False, stack: str = stack) -> Step:
            return Step("e2e", f"{stack} {name}", command, always, {"E2E_STACK": stack})

        def tests(name: str, *arguments: str, stack: str = stack) -> Step:
            report = junit(f"e2e-{stack}-{name}", repo)
            command = ["pytest", *arguments, *report]
            return Step("e2e", f"{stack} {name}", command, environment={"E2E_STACK": stack}, needs_tests=True)

        steps += [
            step("cluster", "scripts/demo", "up", "--stack", stack, *(["--kerberos"] if secure else [])),
            step("site.yml --check", "ansible-playbook", "-i", "inventories/demo", "site.yml", "--check", "--diff"),
            step("nothing was made", "docker", "exec", "demo-data1", "test", "!", "-e", "/opt/deeplearning"),
            step("make demo", *demo),
            *([] if secure else [step("testinfra", *verify)]),
            tests("jobs", *(JOBS_OF_A_STACK if secure else ["tests/e2e", *(f"--ignore={path}" for path in OF_SECURE)])),
            tests("faults", *(FAULTS_OF_A_STACK if secure else ["tests/faults"])),
            *([tests("kerberos", OF_KERBEROS)] if secure else []),
            step("demo-down", *down, always=True),
        ]
    return steps


def junit(slug: str, repo: Path) -> list[str]:
    return [f"--junitxml={repo / '.cache' / 'test' / (slug + '.xml')}"]


class Runner:
    """Runs steps, keeps their logs, and knows the result."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.logs = repo / ".cache" / "test"
        self.steps: list[Step] = []
        self.running: set[subprocess.Popen[bytes]] = set()
        self.failed = False
        self.stopped = False

    def environment(self, step: Step) -> dict[str, str]:
        # molecule and ansible-lint call ansible-config and friends by name.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        if step.command[0] == "molecule":
            path = f"{self.repo / 'molecule/shared/bin'}{os.pathsep}{path}"
        given = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", **step.environment}
        # Without bytecode, each start of Ansible compiles some 400 modules first: a quarter of its time.
        given.pop("PYTHONDONTWRITEBYTECODE", None)
        return given

    def run(self, step: Step, show: bool) -> None:
        log = self.logs / f"{step.slug}.log"
        (self.logs / f"{step.slug}.xml").unlink(missing_ok=True)
        started = time.monotonic()
        code: int | None = None
        with log.open("wb") as out:
            try:
                process = subprocess.Popen(
                    step.command,
                    cwd=self.repo,
                    env=self.environment(step),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if show else out,
                    stderr=subprocess.STDOUT,
                )
            except OSError as error:
                out.write(f"{error}\n".encode())
                say(f"    {error}")
            else:
                self.running.add(process)
                for line in process.stdout or ():
                    out.write(line)
                    sys.stdout.buffer.write(line)
                    sys.stdout.flush()
                code = process.wait()
                self.running.discard(process)
        if code == 0 and step.needs_tests and not self.tests(step).passed:
            with log.open("a") as out:
                out.write(f"{step.layer} {step.name} must run at least one test, but ran none. Add tests to it.\n")
            code = 1
        step.seconds = time.monotonic() - started
        step.outcome = "passed" if code == 0 else "FAILED"
        self.failed = self.failed or code != 0

    def tests(self, step: Step) -> Count:
        report = self.logs / f"{step.slug}.xml"
        return count_junit(report) if report.exists() else Count()

    def run_in_order(self, steps: Sequence[Step], show: bool = True) -> None:
        """Run one step after the other. A failure, also one beside them, ends the run of all layers but WHOLE, and not the clean-up."""
        for step in steps:
            over = self.failed and step.layer not in WHOLE and not (step.always and was_started(step, steps))
            if over or self.stopped:
                continue
            say(f"==> {step.layer}: {step.name} (log: .cache/test/{step.slug}.log)")
            self.run(step, show)
            say(f"<== {step.layer}: {step.name} {step.outcome} in {clock(step.seconds)}")
            if step.outcome != "passed" and not show:
                say((self.logs / f"{step.slug}.log").read_text(errors="replace")[-12000:])

    def run_side_by_side(self, lanes: Sequence[Sequence[Step]], jobs: int, show: bool = False) -> None:
        """Run `jobs` lanes at a time, each in order; without `show`, print a step's log only if it failed."""
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for done in [pool.submit(self.run_in_order, lane, show) for lane in lanes]:
                    done.result()
            except KeyboardInterrupt:
                self.stop()
                raise

    def stop(self) -> None:
        self.stopped = True
        for process in list(self.running):
            process.send_signal(signal.SIGINT)

    def count(self) -> Count:
        """Add up every test; a step without a JUnit file counts as one check."""
        total = Count()
        for step in self.steps:
            if step.outcome == "not run":
                continue
            counted = self.tests(step)
            if step.outcome == "FAILED" and not counted.failed:
                counted.failed += 1
            elif counted == Count():
                counted.passed += 1
            total.add(counted)
        return total

    def summary(self) -> str:
        """A table of the steps, the causes of what failed, and the count. The end of a log is what is read first: the causes are there."""
        lines = ["", "layer     step                                      result     time"]
        for layer in (*LAYERS, LONG):
            mine = [step for step in self.steps if step.layer == layer]
            ran = [step for step in mine if step.outcome != "not run"]
            lines += [f"{s.layer:9} {s.name:41} {s.outcome:10} {clock(s.seconds)}" for s in ran]
            if len(ran) < len(mine):
                lines.append(f"{layer:9} {f'{len(mine) - len(ran)} of {len(mine)} steps':41} not run")
            if ran:
                lines.append(f"{layer:9} {'':41} {'':10} {clock(sum(s.seconds for s in ran))}")
        for step in self.steps:
            if step.outcome == "FAILED":
                lines += ["", f"FAILED: {step.layer} {step.name} (.cache/test/{step.slug}.log)"]
                lines += [f"    {line}" for line in causes(self.logs / f"{step.slug}.log")]
        return "\n".join([*lines, "", str(self.count())])


def was_started(clean_up: Step, steps: Sequence[Step]) -> bool:
    """Say whether any step of this clean-up's cluster ran, so that there is something to clean."""
    return any(step.environment == clean_up.environment and step.outcome != "not run" for step in steps)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def say(text: str) -> None:
    print(text, flush=True)


@contextmanager
def interrupted_politely(runner: Runner) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        runner.stop()
        runner.failed = True
        say("\nInterrupted.")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/check", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "layers", nargs="*", metavar="LAYER", help=f"some of: {' '.join((*LAYERS, LONG))}; none means all but {LONG}"
    )
    parser.add_argument("--scenario", action="append", help="molecule: only this scenario (repeatable)")
    parser.add_argument("--stack", action="append", help="e2e: only this stack (repeatable)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="lint, stacks: steps at a time; unit: processes, molecule: scenarios, and one more (default: %(default)s)",
    )
    parser.add_argument(
        "--from", dest="begin", metavar="STEP", help="long: begin with this step, as the table names it"
    )
    options = parser.parse_args(arguments)
    layers = (*LAYERS, LONG)
    unknown = sorted(set(options.layers) - set(layers))
    if unknown:
        parser.error(f"a layer is one of {', '.join(layers)}; found {', '.join(unknown)}. Choose one of those.")
    known = scenarios(REPO)
    for name in options.scenario or ():
        if name not in known:
            parser.error(f"a scenario is one of {', '.join(known)}; found {name}. Choose one of those.")

    runner = Runner(REPO)
    runner.logs.mkdir(parents=True, exist_ok=True)
    chosen = [layer for layer in layers if layer in (options.layers or LAYERS)]
    plan = {
        "lint": lint_steps(REPO),
        "unit": unit_steps(REPO, options.jobs),
        "molecule": [molecule_step("molecule", name, REPO) for name in options.scenario]
        if options.scenario
        else molecule_steps(REPO),
        "e2e": e2e_steps(REPO, options.stack or STACKS),
        LONG: [*long_steps(REPO), *stack_steps(REPO)],
    }
    if options.begin:
        names = [step.name for step in plan[LONG]]
        if options.begin not in names:
            parser.error(f"a step of {LONG} is one of {', '.join(names)}; found {options.begin}. Choose one of those.")
        plan[LONG] = plan[LONG][names.index(options.begin) :]
    runner.steps = [step for layer in chosen for step in plan[layer]]
    with interrupted_politely(runner):
        # ansible-lint has one core for itself for two minutes: the unit tests begin beside it.
        quick = [[step] for layer in chosen if layer in ("lint", "unit") for step in plan[layer]]
        runner.run_side_by_side(quick, options.jobs + ("unit" in chosen))
        scenarios_of_roles = [[step] for step in plan["molecule"] if "molecule" in chosen]
        runner.run_side_by_side(scenarios_of_roles, options.jobs + 1, show=len(scenarios_of_roles) == 1)
        # Alone: beside scenarios a cluster saves no time on two cores, they write its mirror, and a host under an installation was late (tests/faults).
        runner.run_in_order([step for step in plan["e2e"] if "e2e" in chosen])
        stacks = [step for step in plan[LONG] if step.name.startswith("stacks ")]
        if LONG in chosen:
            runner.run_in_order([step for step in plan[LONG] if step not in stacks])
            runner.run_side_by_side([[step] for step in stacks], options.jobs)
    say(runner.summary())
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
