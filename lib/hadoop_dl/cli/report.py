"""The state of every host, with an exit status for cron: runs playbooks/report.yml and prints its report.

    scripts/report -i inventories/SITE [--directory DIR] [--format text|json] [options of ansible-playbook]

Exit status: 0 every host is as planned, 3 something differs from the plan or is damaged, 4 a host is unreachable (also if others
differ), 1 there is no report. It changes nothing. The report is in .cache/report, or in --directory: report.txt, report.json, report.html, and deeplearning.prom
for the textfile collector of node_exporter.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from hadoop_dl.cli.ansible_runs import REPOSITORY, missing_inventory, run

NO_REPORT = 1


class Parser(argparse.ArgumentParser):
    """Misuse is exit status 1: 3 and 4 are results of a report."""

    def error(self, message: str) -> NoReturn:
        print(f"report: {message}. See: scripts/report --help", file=sys.stderr)
        raise SystemExit(NO_REPORT)


def parse(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    parser = Parser(
        prog="report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "-i", "--inventory", action="append", required=True, metavar="PATH", help="as for ansible-playbook"
    )
    parser.add_argument(
        "--directory", type=Path, default=REPOSITORY / ".cache" / "report", metavar="DIR", help="where the report goes"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="for people or for programs")
    options, ansible_options = parser.parse_known_args(arguments)
    if missing := missing_inventory(options.inventory):
        parser.error(f"the inventory must exist, but {missing} does not")
    return options, ansible_options


def fingerprint(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def main(arguments: Sequence[str] | None = None) -> int:
    options, ansible_options = parse(arguments)
    directory = options.directory.resolve()
    path = directory / "report.json"
    old_fingerprint = fingerprint(path)
    inventories = [word for inventory in options.inventory for word in ("-i", inventory)]
    variables = ["-e", json.dumps({"report_directory": str(directory)})]
    completed = run(
        "ansible-playbook", str(REPOSITORY / "playbooks" / "report.yml"), *inventories, *variables, *ansible_options
    )
    if completed.returncode != 0 or fingerprint(path) in (None, old_fingerprint):
        print(completed.stdout, file=sys.stderr)
        print(
            f"report: there is no new report; ansible-playbook ended with status {completed.returncode}, and its output is above.",
            file=sys.stderr,
        )
        return NO_REPORT
    report_path = path if options.format == "json" else directory / "report.txt"
    print(report_path.read_text(encoding="utf-8"), end="")
    if options.format == "text":
        print(f"\nThe page: {directory / 'report.html'}")
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return int(report["status"])


if __name__ == "__main__":
    sys.exit(main())
