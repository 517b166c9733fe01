"""Run the testinfra suite against an inventory, and report the result as text, JSON and JUnit. The role verify calls this.

A failure can be expected: if there is no GPU, the question whether TensorFlow computes on it must fail. It is
reported as such; and an expected failure that does not happen fails the run, because then the expectation is wrong.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hadoop_dl.data import host_code
from hadoop_dl.data.terminal import PARAGRAPH, one_line
from hadoop_dl.hosts import host_script

REPOSITORY = Path(__file__).resolve().parents[3]
PROBE = REPOSITORY / "roles/verify/files/probe.py"
QUESTIONS = REPOSITORY / "roles/verify/files/environment_questions.py"
ROOT = "/opt/deeplearning"
PASSED, FAILED, EXPECTED, SURPRISE, SKIPPED = "passed", "failed", "expected failure", "unexpected success", "skipped"
XPASS = "[XPASS(strict)] "  # how pytest begins the message of a test that should have failed


@dataclass(frozen=True)
class Result:
    """One question about one host, and its result."""

    host: str
    test: str
    question: str
    outcome: str
    message: str
    seconds: float


def probe_script(expectation: Mapping[str, Any]) -> str:
    """The script that answers every question about one host of which this is expected."""
    environment = str(expectation.get("environment") or f"{ROOT}/current")
    count = int(expectation.get("gpu_count") or 0)
    minimum = (expectation.get("stack") or {}).get("driver_min", "")
    gpus = {"gpu_count": str(count), "driver_min": minimum} if count > 0 else {}
    programs = {path.stem: path.read_text(encoding="utf-8") for path in (QUESTIONS, host_code.GPU_CHECK / "product.py")}
    login, yarn = expectation.get("hadoop") or {}, expectation.get("yarn") or {}
    return host_script.pack({"probe": PROBE}, ROOT, environment, gpus, programs, login, yarn)


def answer_file(directory: Path, host: str) -> Path:
    """Where the answers of a host are kept for the suite."""
    return directory / "answers" / f"{host.replace('/', '_')}.json"


def expectation_file(directory: Path, host: str) -> Path:
    """Where the suite finds what must be true on a host."""
    return directory / "expected" / f"{host.replace('/', '_')}.json"


def results(junit: Path) -> list[Result]:
    """pytest's results, with expected failures distinguished."""
    results = []
    for case in ElementTree.parse(junit).getroot().iter("testcase"):  # noqa: S314 (written by our own pytest)
        properties = {p.get("name"): p.get("value") for p in case.iter("property")}
        test = case.get("name", "").partition("[")[0]
        problem = next((node for kind in ("error", "failure", "skipped") for node in case.iter(kind)), None)
        results.append(
            Result(
                host=properties.get("host") or "?",
                test=test,
                question=properties.get("question") or test.removeprefix("test_").replace("_", " "),
                outcome=PASSED if problem is None else outcome(problem),
                message="" if problem is None else sentence(problem.get("message") or ""),
                seconds=float(case.get("time", 0)),
            )
        )
    return results


def outcome(problem: ElementTree.Element) -> str:
    if problem.tag == "skipped":
        return EXPECTED if problem.get("type") == "pytest.xfail" else SKIPPED
    return SURPRISE if (problem.get("message") or "").startswith(XPASS) else FAILED


def sentence(message: str) -> str:
    """pytest's message without the repeated expression below it."""
    first = message.split("\nassert ")[0].strip()
    return first.removeprefix("AssertionError: ").removeprefix(XPASS)


def text(results: Sequence[Result], wheels: Mapping[str, str] | None = None) -> str:
    """The result for people: a line for each host, then everything that did not pass, then one line that says it all.

    wheels: what the wheel of a host is made of, if the site built it.
    """
    lines = []
    for host in sorted({result.host for result in results}):
        counts = [
            (outcome, sum(r.outcome == outcome for r in results if r.host == host))
            for outcome in (PASSED, FAILED, EXPECTED, SURPRISE, SKIPPED)
        ]
        lines.append(f"{host:<24} " + ", ".join(f"{count} {outcome}" for outcome, count in counts if count))
    lines += [f"{host:<24} {wheel}" for host, wheel in sorted((wheels or {}).items())]
    for (host, reason), count in Counter((r.host, r.message) for r in results if r.outcome == SKIPPED).items():
        detail = one_line(reason, PARAGRAPH)
        lines.append(f"SKIPPED on {host}: {count} question{'s' if count > 1 else ''}: {detail}")
    for outcome in (EXPECTED, SURPRISE, FAILED):
        for result in results:
            if result.outcome == outcome:
                lines.append(
                    f"{outcome.upper()} on {result.host}: {result.question}: {one_line(result.message, PARAGRAPH)}"
                )
    lines.append(totals(results))
    return "\n".join(lines) + "\n"


def totals(results: Sequence[Result]) -> str:
    failed = sum(result.outcome in (FAILED, SURPRISE) for result in results)
    expected = sum(result.outcome == EXPECTED for result in results)
    skipped = sum(result.outcome == SKIPPED for result in results)
    passed = len(results) - failed - expected - skipped
    hosts = len({result.host for result in results})
    tail = f", {skipped} skipped" if skipped else ""
    return f"verify: {hosts} hosts, {passed} passed, {failed} failed, {expected} failed as expected{tail}"


def pytest_command(options: argparse.Namespace, junit: Path) -> list[str]:
    command = [sys.executable, "-m", "pytest", str(options.suite), "-q", "-p", "no:cacheprovider", "--tb=short"]
    command += [f"--hosts={','.join('ansible://' + host for host in options.hosts.split(','))}"]
    return [*command, f"--ansible-inventory={options.inventory}", f"--junitxml={junit}", "-o", "junit_family=xunit2"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: everything is as expected; 1: something is not; 2: the suite could not be run."""
    parser = argparse.ArgumentParser(
        prog="python -m hadoop_dl.hosts.verify", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--inventory", required=True, help="inventory, as for ansible-playbook -i")
    parser.add_argument("--hosts", default="all", help="hosts or groups, separated by commas (default: %(default)s)")
    parser.add_argument(
        "--report",
        type=Path,
        required=True,
        help="directory for report.txt, report.json, junit.xml (created if missing)",
    )
    parser.add_argument(
        "--facts",
        type=Path,
        metavar="DIRECTORY",
        help="what must be true of each host, and what each answered, as the action plugin suite_facts wrote it",
    )
    parser.add_argument(
        "--expect-failure", action="append", default=[], metavar="TEST", help="a test that must fail here"
    )
    parser.add_argument("--suite", type=Path, default=REPOSITORY / "tests" / "infra", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.report.mkdir(parents=True, exist_ok=True)
    junit = options.report / "junit.xml"
    junit.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(host_code.GPU_CHECK.parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    environment["VERIFY_EXPECTED_FAILURES"] = " ".join(options.expect_failure)
    environment.setdefault("ANSIBLE_CONFIG", str(REPOSITORY / "ansible.cfg"))
    wheels: dict[str, str] = {}
    if options.facts:
        expectations_file = options.report / "expectations.json"
        paths = {host: expectation_file(options.facts, host) for host in options.hosts.split(",")}
        expectations = {host: json.loads(path.read_text(encoding="utf-8")) for host, path in paths.items()}
        wheels = {
            host: expectation["stack"]["built"]
            for host, expectation in expectations.items()
            if "built" in expectation.get("stack", {})
        }
        expectations_file.write_text(json.dumps(expectations, indent=1) + "\n", encoding="utf-8")
        environment["VERIFY_EXPECTATIONS"] = str(expectations_file.resolve())
        environment["VERIFY_ANSWERS"] = str(options.facts.resolve())
    completed = subprocess.run(
        pytest_command(options, junit),
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    (options.report / "pytest.log").write_text(completed.stdout + completed.stderr, encoding="utf-8")
    outcomes = results(junit) if junit.exists() else []
    if not outcomes:
        print(
            f"pytest must run the suite, but ran no test (it ended with status {completed.returncode}):\n{(completed.stdout + completed.stderr)[-3000:]}"
        )
        return 2
    report = text(outcomes, wheels)
    (options.report / "report.txt").write_text(report, encoding="utf-8")
    (options.report / "report.json").write_text(
        json.dumps([asdict(result) for result in outcomes], indent=1) + "\n", encoding="utf-8"
    )
    # playbooks/report.yml shows when hosts were verified.
    run = {"inventory": options.inventory, "at": int(time.time())}
    (options.report / "run.json").write_text(json.dumps(run) + "\n", encoding="utf-8")
    print(report, end="")
    return 1 if any(result.outcome in (FAILED, SURPRISE) for result in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
