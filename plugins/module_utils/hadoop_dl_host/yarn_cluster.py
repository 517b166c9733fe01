"""Where YARN's ResourceManager is, and which environments its applications name. Python 2.7 and 3, standard library only.

tfos-submit marks each application with its environment; an application that waits in a queue has no process on any host yet.
"""

import errno
import io
import json
import os
import re
import shlex

from . import connections, hadoop_files, kerberos_login, processes
from .text_columns import printable

TIMEOUT = 10  # seconds for one answer as a whole
LARGEST = 32 * 1024 * 1024  # bytes of one
LONGEST = 2000  # characters of a text
LIVING = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
MARK = "environment-"  # then the 12 digits at the end of the environment's name: a tag has at most 100 characters
NEGOTIATE = [
    "curl",
    "-q",
    "--proto",
    "=http,https",
    "--max-filesize",
    str(LARGEST),
    "--silent",
    "--show-error",
    "--write-out",
    "\\n%{http_code}",
    "--negotiate",
    "--user",
    ":",
    "--noproxy",
    "*",
]
# No answer: unreachable, a standby's page, a required ticket, a certificate, another or half an answer.
NO_ANSWER = (IOError, OSError, ValueError, KeyError, TypeError, AttributeError)


def mark(environment):
    """The tag of an application that uses the environment at this path, or with this name."""
    return MARK + os.path.basename(environment).rpartition("-")[2]


def hadoop_configuration(directory, problems=None):
    """The values of core-site.xml, hdfs-site.xml and yarn-site.xml. problems: a list that gets a sentence for each file that cannot be read."""
    values = {}
    for path in (os.path.join(directory, name) for name in ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")):
        try:
            with open(path, "rb") as handle:
                values.update(hadoop_files.xml_values(handle.read(hadoop_files.LARGEST + 1), includes=True))
        except (IOError, OSError, hadoop_files.Unusable) as error:
            if problems is not None and getattr(error, "errno", None) != errno.ENOENT:
                words = "be readable, but: %s" % error.strerror if isinstance(error, EnvironmentError) else str(error)
                problems.append("%s must %s" % (path, words))
    return values


def resource_manager_addresses(configuration):
    """The web addresses of the ResourceManagers: one, or several of which one is active."""
    secure = configuration.get("yarn.http.policy") == "HTTPS_ONLY"
    scheme, key, port = ("https", "webapp.https.address", 8090) if secure else ("http", "webapp.address", 8088)
    suffixes = [""] + [
        "." + name.strip()
        for name in configuration.get("yarn.resourcemanager.ha.rm-ids", "").split(",")
        if name.strip()
    ]
    addresses = []
    for suffix in suffixes:
        host = configuration.get("yarn.resourcemanager.hostname" + suffix)
        address = configuration.get("yarn.resourcemanager.%s%s" % (key, suffix)) or (host and "%s:%d" % (host, port))
        if address and "${" not in address:
            addresses.append("%s://%s" % (scheme, address))
        elif address and host:
            addresses.append("%s://%s:%s" % (scheme, host, address.rsplit(":", 1)[-1]))
    return addresses


def configuration_directory(environment_file):
    """HADOOP_CONF_DIR in the file that the role hadoop_client wrote; None without it."""
    try:
        with open(environment_file) as handle:
            match = re.search(r"^export HADOOP_CONF_DIR=(.*)$", handle.read(), re.M)
    except (IOError, OSError):
        return None
    return (shlex.split(match.group(1)) or [None])[0] if match else None


class Refused(IOError):
    """The address asks for a Kerberos ticket, and took none; the text says why."""


def fetch(url):
    """What one of YARN's addresses answers. They are in the cluster's own network: never through a proxy, and never elsewhere."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("an address of YARN begins with http:// or https://")
    sink, watch = io.BytesIO(), connections.Watch(TIMEOUT)
    try:
        stream = connections.open_url(url, elsewhere=None, silence=TIMEOUT, watch=watch)
        try:
            size = connections.copy(stream, sink, LARGEST, lambda chunk: None)
        finally:
            stream.close()
    except connections.HTTPError as error:
        if error.code != 401:
            raise
        return negotiated(url)
    except (EOFError, connections.HTTPException, connections.DownloadError) as problem:
        raise IOError(str(problem) or "half an answer")
    finally:
        watch.close()
    if watch.late or size > LARGEST:
        raise IOError("no complete answer of at most %d MB within %d s" % (LARGEST >> 20, TIMEOUT))
    return sink.getvalue().decode("utf-8", "replace")


def whole_number(digits):
    """A number of JSON; Pythons before 3.11 compute for hours with one of a million digits."""
    if len(digits) > 20:
        raise ValueError("a number of %d digits" % len(digits))
    return int(digits)


def ask(url):
    """The JSON at an address of YARN: a mapping, or ValueError. Hadoop 2 has null for a mapping without entries."""
    try:
        answer = json.loads(fetch(url), parse_int=whole_number)
    except RuntimeError:  # of 3.5 and later a RecursionError
        raise ValueError("it is nested too deeply")
    if answer is None:
        return {}
    if not isinstance(answer, dict):
        raise ValueError("it is no mapping")
    return answer


def text(value, pattern=r".*"):
    """One line of limited length that can be printed; empty if it is no text, or not all of it fits the pattern."""
    if isinstance(value, (int, float)):
        value = "%s" % value
    if not isinstance(value, (str, type(printable("")))):
        return ""
    value = printable(" ".join(value[:LONGEST].split()))
    return value if re.match("(?:%s)\\Z" % pattern, value) else ""


def amount(value):
    """A number that is not negative; 0 if it is none: YARN has -1 for what it does not know."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1 << 62 else 0


def negotiated(url):
    """The same with the ticket to which KRB5CCNAME points (SPNEGO). No library of Python's own has it; curl of RHEL 7 to 9 has."""
    answer = processes.run(NEGOTIATE + ["--max-time", str(TIMEOUT), url], TIMEOUT + 5)
    body, _, status = answer.output.rpartition("\n")
    cause = "HTTP status " + status if status in ("401", "403") else None
    if answer.problem:
        cause = answer.problem if answer.late or not answer.error else answer.error.splitlines()[-1]
    if cause:
        raise Refused("%s requires a Kerberos ticket, and answers to curl --negotiate: %s" % (url.split("?")[0], cause))
    if status != "200":
        raise connections.HTTPError(url, int(status), "", {}, io.BytesIO(body.encode("utf-8")))
    return body


def entries(answer, outer, inner):
    """The list at answer[outer][inner]. Hadoop leaves an empty one out and gives one entry without the list around it."""
    for name in [outer, inner] if outer else [inner]:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer if isinstance(answer, list) else [answer] if answer else []


def rows(answer, outer, inner):
    """The mappings of that list; what is of another form is no row."""
    return [row for row in entries(answer, outer, inner) if isinstance(row, dict)]


def every_row(answer, outer, inner):
    """The same of an answer in Hadoop's form, for those who must not miss a row; NO_ANSWER for others, such as a standby's."""
    found, box = entries(answer, outer, inner), answer[outer]
    if not isinstance(box or {}, dict) or (box and inner not in box) or found != rows(answer, outer, inner):
        raise ValueError("%s is no list of mappings" % outer)
    return found


def gpus_in(resources):
    """The GPUs of a part of the ResourceManager's answer, such as a node's usedResource."""
    for resource in rows(resources, "resourceInformations", "resourceInformation"):
        if resource.get("name") == "yarn.io/gpu":
            return int(amount(resource.get("value")))
    return 0


def gpus_of(application):
    """The GPUs that an application has now; None if YARN does not report its resources."""
    parts = rows(application.get("resourceInfo"), None, "resourceUsagesByPartition")
    return sum(gpus_in(part.get("used")) for part in parts) if parts else None


def containers(get, application):
    """Identifiers and NodeManager addresses of an application's containers that run now. get: what answers a path below /ws/v1/cluster."""
    found = []
    for attempt in rows(get("/apps/%s/appattempts" % application), "appAttempts", "appAttempt"):
        name = text(attempt.get("appAttemptId"), r"\w+") or text(attempt.get("id"), r"\w+")
        for container in rows(get("/apps/%s/appattempts/%s/containers" % (application, name)), None, "container"):
            address = text(container.get("nodeHttpAddress"), r"(?:https?://)?[\w.-]+:\d+")
            found.append((text(container.get("containerId"), r"container_\w+"), address))
    return [(name, address) for name, address in found if name and address]


def applications(addresses):
    """Every application that has not ended, and why YARN gave no answer: one of the two is None."""
    problem = "YARN did not report which environments its applications need"
    for address in addresses:
        try:
            living = every_row(ask("%s/ws/v1/cluster/apps?states=%s" % (address, LIVING)), "apps", "app")
            if not all(isinstance(row.get("applicationTags") or printable(""), type(printable(""))) for row in living):
                continue
        except Refused as refused:
            problem = str(refused)
        except NO_ANSWER:
            continue
        else:
            return living, None
    return None, problem


def reasons(names, environment_file, principal=None, keytab=None):
    """Name of each of these environments that YARN may still need -> why, in a few words. With the principal's ticket, if there is one."""
    directory, problems = configuration_directory(environment_file), []
    addresses = resource_manager_addresses(hadoop_configuration(directory, problems)) if directory else []
    if problems:
        return dict.fromkeys(names, problems[0])
    if not addresses:
        return {}
    try:
        with kerberos_login.logged_in(principal, keytab):
            living_applications, problem = applications(addresses)
    except kerberos_login.NoLogin as failure:
        living_applications, problem = None, str(failure)
    if living_applications is None:
        return dict.fromkeys(names, problem)
    needs = {}
    for application in living_applications:
        tags = [tag.strip() for tag in text(application.get("applicationTags")).split(",")]
        for name in names:
            if mark(name) in tags:
                user = text(application.get("user"))
                words = "YARN has the application %s" % text(application.get("id"))
                needs.setdefault(name, words + (" of %s" % user if user else ""))
    return needs
