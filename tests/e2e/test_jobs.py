"""Jobs from another terminal: tfos-submit jobs, stop and logs, with and without Kerberos."""

import time

# Its driver waits for Spark, so it notices the end of the application.
SLEEPS = "import time\nfrom pyspark import SparkContext\nSparkContext().parallelize(range(2), 2).map(lambda number: time.sleep(600)).count()\n"


def test_a_job_is_listed_and_stopped_from_another_terminal_and_its_logs_are_read(shell):
    """The job is ended as soon as its executors run."""

    def tfos_submit(arguments: str) -> tuple[int, str]:
        return shell("edge1", f"su analyst -c 'cd /tmp && /opt/deeplearning/bin/tfos-submit {arguments}'")

    def eventually(check) -> bool:
        end = time.monotonic() + 150  # beside other work a job may start after a minute
        while not check():
            if time.monotonic() > end:
                return False
            time.sleep(1)
        return True

    def listed() -> list[str]:
        """The cells of the newest job with this name that runs: identifier, name, state, queue, age, containers, GPUs, address."""
        rows = [line.split() for line in tfos_submit("jobs")[1].splitlines()]
        return next((row for row in rows if row[1:3] == ["listed", "RUNNING"]), [])

    code, output = shell(
        "edge1", f"cat > /tmp/listed.py <<'END'\n{SLEEPS}END\nchmod 644 /tmp/listed.py; rm -f /tmp/listed.status"
    )
    assert code == 0, output
    submit_arguments = (
        "--name listed --memory 1g --timeout 400 /tmp/listed.py > /tmp/listed.log 2>&1; echo $? > /tmp/listed.status"
    )
    code, output = shell(
        "edge1", f"su analyst -c 'cd /tmp && (/opt/deeplearning/bin/tfos-submit {submit_arguments}) > /dev/null 2>&1 &'"
    )
    assert code == 0, output
    assert eventually(lambda: listed()[5:6] == ["3"]), tfos_submit("jobs")[1]
    name = listed()[0]
    assert tfos_submit(f"stop {name}") == (0, f"tfos-submit: {name} was ended.\n")
    assert tfos_submit(f"stop {name}") == (0, f"tfos-submit: {name} had already ended.\n")
    assert eventually(lambda: shell("edge1", "cat /tmp/listed.status") == (0, "1\n"))
    code, output = tfos_submit(f"logs {name}")
    assert code == 0, output
    assert "LogType:stderr" in output
    rows = [line.split() for line in tfos_submit("jobs")[1].splitlines()]
    assert [row[2] for row in rows if row[0] == name] == ["KILLED"]
