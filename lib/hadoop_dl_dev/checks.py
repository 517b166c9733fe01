"""Every check of this project, in the order that fails soonest: lint, unit, molecule, e2e; and long.

`make test` runs the first four, `make test-long` the last, both through scripts/check. The first failure ends the run, except in lint and long,
where all steps run. The last output is always a table of the steps with their results and times. Logs and JUnit files are in .cache/test.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from hadoop_dl_dev.check_results import Count, causes, count_junit
from hadoop_dl_dev.check_steps import (
    CALLBACKS,
    LONG,
    REPO,
    STACKS,
    Step,
    e2e_phases,
    lint_steps,
    long_steps,
    molecule_step,
    molecule_steps,
    scenarios,
    stack_steps,
    unit_steps,
)
from hadoop_dl_dev.demo.shell import say

LAYERS = ("lint", "unit", "molecule", "e2e")  # make test
WHOLE = ("lint", LONG)  # layers that continue after a failure


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
        variables = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", "ANSIBLE_CALLBACK_PLUGINS": CALLBACKS}
        variables |= step.environment
        # Without bytecode, each start of Ansible compiles some 400 modules first: a quarter of its time.
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        return variables

    def run(self, step: Step, show: bool) -> None:
        log = self.logs / f"{step.slug}.log"
        (self.logs / f"{step.slug}.xml").unlink(missing_ok=True)
        start = time.monotonic()
        code: int | None = None
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(
                    step.command,
                    cwd=self.repo,
                    env=self.environment(step),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if show else output,
                    stderr=subprocess.STDOUT,
                )
            except OSError as error:
                output.write(f"{error}\n".encode())
                say(f"    {error}")
            else:
                self.running.add(process)
                for line in process.stdout or ():
                    output.write(line)
                    sys.stdout.buffer.write(line)
                    sys.stdout.flush()
                code = process.wait()
                self.running.discard(process)
        if code == 0 and step.needs_tests and not self.tests(step).passed:
            with log.open("a") as output:
                output.write(f"{step.layer} {step.name} must run at least one test, but ran none. Add tests to it.\n")
            code = 1
        step.seconds = time.monotonic() - start
        step.outcome = "passed" if code == 0 else "FAILED"
        self.failed = self.failed or code != 0

    def tests(self, step: Step) -> Count:
        report = self.logs / f"{step.slug}.xml"
        return count_junit(report) if report.exists() else Count()

    def run_in_order(self, steps: Sequence[Step], show: bool = True) -> None:
        """Run one step after the other. A failure, also one beside them, ends the run of all layers but WHOLE, and not the clean-up."""
        for step in steps:
            over = self.failed and step.layer not in WHOLE and not (step.always and was_started(step, self.steps))
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
                for future in [pool.submit(self.run_in_order, lane, show) for lane in lanes]:
                    future.result()
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
            steps = [step for step in self.steps if step.layer == layer]
            ran = [step for step in steps if step.outcome != "not run"]
            lines += [f"{s.layer:9} {s.name:41} {s.outcome:10} {clock(s.seconds)}" for s in ran]
            if len(ran) < len(steps):
                lines.append(f"{layer:9} {f'{len(steps) - len(ran)} of {len(steps)} steps':41} not run")
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


@contextmanager
def interrupted_politely(runner: Runner) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        runner.stop()
        runner.failed = True
        say("\nInterrupted.")


def main(arguments: Sequence[str] | None = None) -> int:
    layers = (*LAYERS, LONG)
    steps_of_long = [*long_steps(REPO), *stack_steps(REPO)]
    names = [step.name for step in steps_of_long]
    parser = argparse.ArgumentParser(prog="scripts/check", description=__doc__.splitlines()[0] if __doc__ else None)
    text = f"some of: {' '.join(layers)}; none means all but {LONG}"
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=text)
    text = "molecule: only this scenario (repeatable)"
    parser.add_argument("--scenario", action="append", choices=scenarios(REPO), metavar="NAME", help=text)
    parser.add_argument("--stack", action="append", help="e2e: only this stack (repeatable)")
    text = "lint, stacks: steps at a time; unit: processes, molecule: scenarios, and one more (default: %(default)s)"
    parser.add_argument("--jobs", type=int, default=2, help=text)
    text = "long: begin with this step, as the table names it"
    parser.add_argument("--from", dest="begin", choices=names, metavar="STEP", help=text)
    parser.add_argument("--only", choices=names, metavar="STEP", help="long: this step alone")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.layers if name not in layers]:
        parser.error(f"a layer is one of {', '.join(layers)}; found {', '.join(unknown)}. Choose one of those.")

    runner = Runner(REPO)
    runner.logs.mkdir(parents=True, exist_ok=True)
    layer_names = [layer for layer in layers if layer in (options.layers or LAYERS)]
    phases = e2e_phases(REPO, options.stack or STACKS)
    plan = {
        "lint": lint_steps(REPO),
        "unit": unit_steps(REPO, options.jobs),
        "molecule": [molecule_step("molecule", name, REPO) for name in options.scenario]
        if options.scenario
        else molecule_steps(REPO),
        "e2e": [step for lanes in phases for lane in lanes for step in lane],
        LONG: steps_of_long,
    }
    if first := options.only or options.begin:
        place = names.index(first)
        plan[LONG] = plan[LONG][place : place + 1 if options.only else None]
    runner.steps = [step for layer in layer_names for step in plan[layer]]
    with interrupted_politely(runner):
        # ansible-lint has one core for itself for two minutes: the unit tests begin beside it.
        quick = [[step] for layer in layer_names if layer in ("lint", "unit") for step in plan[layer]]
        runner.run_side_by_side(quick, options.jobs + ("unit" in layer_names))
        scenarios_of_roles = [[step] for step in plan["molecule"] if "molecule" in layer_names]
        runner.run_side_by_side(scenarios_of_roles, options.jobs + 1, show=len(scenarios_of_roles) == 1)
        # Alone: beside scenarios a cluster saves no time on two cores, they write its mirror, and a host under an installation was late (tests/faults).
        for lanes in phases if "e2e" in layer_names else []:
            runner.run_side_by_side(lanes, len(lanes), show=len(lanes) == 1)
        stacks = [step for step in plan[LONG] if step.name.startswith("stacks ")]
        if LONG in layer_names:
            runner.run_in_order([step for step in plan[LONG] if step not in stacks])
            runner.run_side_by_side([[step] for step in stacks], options.jobs)
    say(runner.summary())
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
