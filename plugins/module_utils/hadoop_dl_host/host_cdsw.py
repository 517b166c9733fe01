"""What a host has of Cloudera Data Science Workbench (CDSW) and of Docker. Python 2.7 and 3, standard library only; a part of host_reader.

Where things are: compat/cdsw.yml. Of cdsw.conf only SETTINGS are read: the file may hold secrets.
"""

import json
import os
import re

from . import ledger

CONF = "/etc/cdsw/config/cdsw.conf"  # of an installation from the RPM
PARCEL = "/opt/cloudera/parcels/CDSW"  # a link to CDSW-<build>, made by Cloudera Manager
DATA = "/var/lib/cdsw"  # on the master
DRIVERS = "/var/lib/nvidia-docker/volumes/nvidia_driver"
DAEMON_JSON = "/etc/docker/daemon.json"
PACKAGE = "cloudera-data-science-workbench"
RUNTIMES = ("nvidia-docker", "nvidia-docker2", "nvidia-container-toolkit")
SETTINGS = ("NVIDIA_GPU_ENABLE", "NVIDIA_LIBRARY_PATH", "MASTER_IP")
# As the kubelet labels containers (dockershim); a session's, job's or application's own container is called engine.
ENGINES = ("ps", "--quiet", "--filter", "label=io.kubernetes.container.name=engine")
IMAGES = ("images", "--format", "{{.Repository}}:{{.Tag}}")


def read(system):
    """The workbench of this host, or None."""
    parcel, settings = parcel_build(system), read_settings(system.text(CONF))
    if parcel is None and settings is None:
        return None
    kind = "rpm" if parcel is None else "parcel"
    return {
        "kind": kind,
        "release": installed_release(system, parcel),
        "settings": settings or {},
        "master": is_master(system, kind, settings or {}),
        "drivers": [os.path.basename(path) for path in system.glob(DRIVERS + "/[0-9]*")],
        "sessions": count(ask(system, ENGINES)),
        "images": images(ask(system, IMAGES)),
        "mig": mig(system),
        "restart_pending": ledger.pending("cdsw", system.at(ledger.ROOT)),
    }


def parcel_build(system):
    """Such as 1.7.2.p1.2066404; None if no parcel is active."""
    if not os.path.islink(system.at(PARCEL)):
        return "" if system.exists(PARCEL) else None
    return os.path.basename(os.readlink(system.at(PARCEL)))[len("CDSW-") :]


def installed_release(system, parcel):
    """The release, from the parcel's build or else from the package; None if neither tells."""
    build = packages(system, [PACKAGE]).get(PACKAGE, "") if parcel is None else parcel
    match = re.match(r"\d+\.\d+(\.\d+)?", build)
    return match.group(0) if match else None


def read_settings(text):
    """The SETTINGS of cdsw.conf that are set, the last line of each; None without the file."""
    if text is None:
        return None
    settings = {}
    for line in text.splitlines():
        match = re.match(r"""^\s*(?:export\s+)?(\w+)=(?:"([^"]*)"|'([^']*)'|([^\s#]*))\s*(?:#.*)?$""", line)
        if match and match.group(1) in SETTINGS:
            settings[match.group(1)] = next((value for value in match.groups()[1:] if value), "")
    return settings


def is_master(system, kind, settings):
    """With a cdsw.conf the host that has MASTER_IP, else the one with CDSW's data."""
    if kind == "parcel":
        return system.exists(DATA)
    return bool(settings.get("MASTER_IP")) and settings["MASTER_IP"] in addresses(system)


def addresses(system):
    """This host's own IPv4 addresses, without loopback: the /32 host LOCAL leaves of /proc/net/fib_trie."""
    text = system.text("/proc/net/fib_trie") or ""
    return set(re.findall(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL", text))


def ask(system, arguments):
    return system.output(["/usr/bin/docker"] + list(arguments)) if system.exists("/usr/bin/docker") else None


def count(output):
    return None if output is None else len(output.split())


def images(output):
    """Docker's images that are engines, or that this project built."""
    if output is None:
        return None
    return sorted(
        name for name in output.split() if re.search(r"(^|/)(cdsw/(cuda-)?engine|deeplearning/engine):", name)
    )


def mig(system):
    """Whether a GPU is divided; None if nothing answers. Drivers before 450 do not know the field."""
    if not system.exists("/usr/bin/nvidia-smi"):
        return None
    output = system.output(["/usr/bin/nvidia-smi", "--query-gpu=mig.mode.current", "--format=csv,noheader"], range(3))
    if output is None or not re.search(r"^(Enabled|Disabled|\[N/A\])", output, re.M):
        return None
    return "Enabled" in output.split()


def packages(system, names):
    """Versions of installed packages, from rpm."""
    query = ["/usr/bin/rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"] + list(names)
    # The status counts those that are missing.
    text = system.output(query, accepted=range(len(names) + 1)) if system.exists(query[0]) else None
    rows = re.findall(r"^(\S+) (\S+)$", text or "", re.M)
    return dict((name, version) for name, version in rows if name in names)


def containers(system):
    """Docker of this host, and what of NVIDIA's is in it; None without Docker."""
    if not (system.exists("/usr/bin/docker") or system.exists("/usr/bin/dockerd") or system.exists("/etc/docker")):
        return None
    text = system.text(DAEMON_JSON)
    try:
        settings = json.loads(text) if text else {}
        problem = None if isinstance(settings, dict) else "it is no mapping"
    except ValueError as error:
        settings, problem = {}, str(error)
    runtimes = settings.get("runtimes") if problem is None else None
    return {
        "runtimes": sorted(runtimes) if isinstance(runtimes, dict) else [],
        "daemon_json_problem": problem,
        "packages": packages(system, RUNTIMES),
    }
