"""Whole logs of jobs that failed on the demo cluster: the job, and later `tfos-submit logs`, name cause and next step.

failed_jobs.txt has them as printed. Left out are INFO messages, all but the first frame of a stack, noise of healthy jobs, and the ends of long lines.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from resource_manager import collected
from tfos_submit import hints
from tfos_submit.first_error import first_error


class Job(NamedTuple):
    """What the end of the job, and of `tfos-submit logs`, must say; what spark-submit printed; YARN's logs."""

    name: str
    first: str
    hint: str
    in_logs: bool  # what only the driver's own terminal had, `tfos-submit logs` cannot have
    stderr: str
    stdout: str
    logs: str


def jobs() -> list[Job]:
    text = (Path(__file__).parent / "failed_jobs.txt").read_text(encoding="utf-8")
    found = []
    for section in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        head, *parts = re.split(r"^--- ", section, flags=re.MULTILINE)
        name, first, hint, *other = head.rstrip().split("\n")
        files = {title: body for title, _, body in (part.partition("\n") for part in parts)}
        streams = [files.pop(stream, "") for stream in ("stderr", "stdout")]
        logs = [(*re.split(" on |, ", title), body) for title, body in files.items()]
        found.append(Job(name, first, hint, other == [], *streams, collected(*logs)))  # type: ignore[arg-type] # three parts each, by the form of the file
    return found


JOBS = jobs()


def said(capsys: pytest.CaptureFixture[str], *texts: str) -> str:
    hints.say_causes(*texts)
    return str(capsys.readouterr().err)


@pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])
def test_a_failed_job_and_its_logs_name_cause_and_step(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [said(capsys, job.stderr, job.stdout, job.logs)]
    answers += [said(capsys, "", "", job.logs)] if job.in_logs else []
    for answer in answers:
        *hint, first = answer.splitlines()
        assert [line[: len(job.hint) + 19] for line in hint] == [f"tfos-submit: hint: {job.hint}"] * (job.hint != "-")
        assert first.startswith("tfos-submit: the first error: ")
        assert job.first in first
        assert re.search(r" on \w+|the driver", first)


@pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])
def test_a_loss_allows_another_attempt_and_an_error_of_the_job_never(job: Job) -> None:
    """A closed port may be that of a host which is gone."""
    loss = hints.lost(job.stderr, job.stdout, job.logs, lambda: "data1 is gone")
    assert ("*lost* node" in loss) is job.name.startswith("a decommissioned host")
    assert (loss == "data1 is gone") is job.name.startswith("a closed port")


ANSWERS = (
    WITHOUT_ANSIBLE
    + """
import io, json
sys.path.insert(0, sys.argv[2])
sys.dont_write_bytecode = True
from tfos_submit import first_error, hints
known = hints.known(hints.table())
print(json.dumps([first_error.first_error(text, known) for text in json.load(io.open(sys.argv[3], encoding="utf-8"))]))
"""
)


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_every_python_of_a_host_names_the_same_error(python: str, tmp_path: Path) -> None:
    texts = [text for job in JOBS for text in (job.stderr, job.stdout, job.logs)]
    (tmp_path / "texts").write_text(json.dumps(texts), encoding="utf-8")
    program = Path(hints.__file__).parents[1]
    command = [python, "-c", ANSWERS, UTILITIES, str(program), str(tmp_path / "texts")]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    known = hints.known(hints.table())
    assert json.loads(printed) == [first_error(text, known) for text in texts]
