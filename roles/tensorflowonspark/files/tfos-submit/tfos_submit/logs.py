"""The logs of a job's containers."""

import re
import time

from ansible.module_utils.hadoop_dl_host.yarn_cluster import NO_ANSWER, fetch

DRIVER = r"_000001$"  # the container of the application's master, which runs the script in cluster mode
NO_LOGS = (
    "the containers' logs could not be read: %s has ended and YARN collects no logs, or has not yet. Try: yarn logs -applicationId %s; "
    "without log aggregation (yarn.log-aggregation-enable) they lie in yarn.nodemanager.log-dirs on the nodes."
)
# What `yarn logs` prints around the files.
FRAME = re.compile(
    r"^(?:LogLastModifiedTime|Log Upload Time|LogLength|Log ?Contents|LogAggregationType|[=*]{20,}$|End of LogType)"
)
LOG_LINES = 60  # of each container's log are printed after a failure


def files_of(text):
    """(container, host, file, lines) of what `yarn logs` prints, without its frame; first the lines before all containers."""
    files = [("", "", "stderr", [])]
    for line in text.splitlines():
        header = re.match(r"^Container: (\S+) on (\S+)", line)
        start = re.match(r"^LogType: ?(\S+)", line)
        if header:
            files.append(header.groups() + ("", []))
        elif start:
            files.append(files[-1][:2] + (start.group(1), []))
        elif not FRAME.match(line):
            files[-1][3].append(line)
    return [file for file in files if file[2].startswith(("stderr", "stdout"))]


def shorten_logs(text, lines=LOG_LINES):
    """The ends of the standard output and error of every container, out of what `yarn logs` prints."""
    excerpts = []
    for container, host, kind, body in files_of(text):
        if container and any(line.strip() for line in body):
            last = ", the last %d lines of %d" % (lines, len(body)) if len(body) > lines else ""
            excerpts.append("---- %s on %s, %s%s" % (container, host, kind, last))
            excerpts.extend(body[-lines:])
    return "\n".join(excerpts)


def answers(address):
    """Whether a NodeManager answers at its web address."""
    try:
        return bool(fetch(address + "/ws/v1/node/info"))
    except NO_ANSWER:
        return False


def live_logs(manager, application):
    """The ends of the logs of the containers that run now, from their NodeManagers, in the form of `yarn logs`."""
    texts = []
    for container, address in manager.containers(application):
        for kind in ("stderr", "stdout"):
            try:
                text = fetch("%s/ws/v1/node/containerlogs/%s/%s?size=-20000" % (address, container, kind))
            except NO_ANSWER:
                continue
            texts.append("Container: %s on %s\nLogType:%s\n%s" % (container, address, kind, text))
    return "\n".join(sorted(texts))


def collected_logs(yarn, application, pause, needed=r"LogType", containers=0):
    """What `yarn logs` prints; each host collects in the seconds after the end.

    needed: a pattern that must be in it. containers: so many have logs once all hosts have collected; of a lost host none come, so fewer count when
    no more came in one pause.
    """
    logs, count = "", 0
    for last in (False,) * 5 + (True,):
        logs = yarn.logs(application, quietly=not last)
        found = len(set(re.findall(r"(?m)^Container: (\S+) on ", logs)))
        if re.search(needed, logs) and (found >= containers or found == count):
            return logs
        count = found
        time.sleep(pause)
    return logs if "LogType" in logs else ""


def driver_file(logs, name):
    """One file of the driver's container, out of what `yarn logs` prints; None if it is missing."""
    container = ""
    pattern = r"(?m)^(?:Container: (\S+) on .*|LogType: ?(\S+)\n(?:Log.*\n)*?LogLength: ?(\d+)\nLog ?Contents: ?\n)"
    position = 0
    while True:
        match = re.compile(pattern).search(logs, position)
        if not match:
            return None
        position = match.end()
        if match.group(1):
            container = match.group(1)
            continue
        content = logs[position:].encode("utf-8")[: int(match.group(3))].decode("utf-8", "replace")
        if match.group(2) == name and re.search(DRIVER, container):
            return content
        position += len(content)
