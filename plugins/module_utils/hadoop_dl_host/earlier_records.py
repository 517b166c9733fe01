"""Records of the releases up to 0.2, as rows of the ledger. To be removed, with its test, in release 0.4. Python 2.7 and 3, standard library only.

etc/yarn_gpu.json, etc/cdsw.json with its copy .previous, etc/daemon.json with its copy .before. The first change of the ledger replaces them.
.sha256 and .sizes.json in a directory that came from an archive. The module placed_tree replaces them.
etc/mirror.json and etc/tensorflow_build.json, and which directories and accounts the host had before. Own files had no record: their names tell.
"""

import glob
import json
import os

from . import key_formats

RECORDS = {
    "yarn_gpu": ("yarn_gpu.json",),
    "cdsw": ("cdsw.json", "cdsw.json.previous"),
    "container_runtime": ("daemon.json", "daemon.json.before"),
}
ARCHIVE_MARK = (".sha256", ".sizes.json")
UNITS = "/etc/systemd/system/"
OWN = {
    "gpu_check": ("{root}/bin/gpu-check", "{root}/etc/gpu-check.json", "/usr/local/bin/gpu-check"),
    "deeplearning_command": (
        "{root}/bin/deeplearning",
        "{root}/etc/pip.conf",
        "/usr/local/bin/deeplearning",
        "/etc/pip.conf",
    ),
    "hadoop_client": ("{root}/hadoop",),
    "tensorflowonspark": (
        "{root}/spark/pyspark-*",
        "{root}/jars/tensorflow-hadoop-*",
        "{root}/bin/tfos-submit",
        "/usr/local/bin/tfos-submit",
    ),
    "tensorboard": (UNITS + "deeplearning-tensorboard-*.service", UNITS + "deeplearning-ticket-*"),
    "yarn_gpu": (UNITS + "deeplearning-yarn-cgroup.service", UNITS + "*.service.d/deeplearning-yarn-gpu.conf"),
    "nvidia_driver": ("{root}/etc/nvidia-driver-leaving", "{root}/etc/nvidia-driver-[!l]*"),
    "cuda": ("{root}/etc/gpu-check-cuda.json", "/etc/profile.d/deeplearning-cuda.sh"),
    "cudnn": ("{root}/etc/gpu-check-cudnn.json",),
    "nccl": ("{root}/etc/gpu-check-nccl.json",),
    "container_runtime": ("{root}/etc/container_runtime.json",),
    "mirror": (
        "{root}/etc/mirror.json",
        "/var/log/deeplearning-mirror.log",
        "/etc/deeplearning-mirror",
        "/usr/local/lib/deeplearning-mirror",
        UNITS + "deeplearning-mirror.service",
    ),
    "tensorflow_build": ("{root}/etc/tensorflow_build.json",),
}
BUILD = (
    "home sources archives source builds bazel sessions published check_wheel.py running.json .draft-running.json .lock"
)
IN_PLACES = {"mirror": [], "tensorflow_build": BUILD.split()}
CDSW_CONF, DAEMON_JSON = "/etc/cdsw/config/cdsw.conf", "/etc/docker/daemon.json"


def rows(component, root, read):
    """The rows of a component's record; none if it has no record. read(path): the content, or an exception if it is torn."""
    paths = [os.path.join(root, "etc", name) for name in RECORDS.get(component, ())]
    if not paths or not os.path.exists(paths[0]):
        return []
    return {"yarn_gpu": yarn_gpu, "cdsw": cdsw, "container_runtime": daemon}[component](read(paths[0]), text(paths[-1]))


def are_present(component, root, system=""):
    """Whether a component has own files or records on this host."""
    records = [os.path.join(root, "etc", name) for name in RECORDS.get(component, ())]
    return any(map(os.path.exists, records)) or bool(own_rows(component, root, system))


def own_rows(component, root, system=""):
    """The own files that a component has on this host. A link to something else is not this project's."""
    ledger_rows = place_rows(component, root) if component in IN_PLACES else []
    for pattern in OWN.get(component, ()):
        for path in sorted(glob.glob(pattern.replace("{root}", root) if "{root}" in pattern else system + pattern)):
            row = {"kind": "own", "path": path}
            if os.path.islink(path):
                row["link"] = os.readlink(path)
            if row.get("link", root + "/").startswith(root + "/"):
                ledger_rows.append(row)
    return ledger_rows


def place_rows(component, root):
    """The directories that the mirror ever served, or builds used, with the account, and what builds put there."""
    try:
        record = json.loads(text(os.path.join(root, "etc", component + ".json")) or "{}")
        users = record["users"] if "users" in record else {"deeplearning-mirror": record["user_existed"]}
        places = sorted(record["roots"])
        paths = [os.path.join(place, name) for place in places for name in IN_PLACES[component]]
        ledger_rows = [{"kind": "place", "path": path, "existed": record["roots"][path]} for path in places]
        ledger_rows += [{"kind": "account", "path": name, "existed": users[name]} for name in sorted(users)]
        return ledger_rows + [{"kind": "own", "path": path} for path in paths if os.path.lexists(path)]
    except (ValueError, KeyError, TypeError):
        return []


def remove(component, root):
    for name in reversed(RECORDS.get(component, ())):
        path = os.path.join(root, "etc", name)
        if os.path.exists(path) and (name != "cdsw.json" or "before" in json.loads(text(path))):
            os.unlink(path)  # settings of Cloudera Manager are in a cdsw.json that stays


def text(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as handle:
        return handle.read().decode("utf-8")


def key_row(path, key, now, before, listing=False, wanted=None):
    row = {"kind": "key", "path": path, "key": key, "now": now, "before": before, "list": listing}
    return dict(row, wanted=now if wanted is None else wanted)


def restart_row(record, services):
    return {"kind": "restart", "services": services, "pending": record.get("restart_pending") is True}


def yarn_gpu(record, _):
    ledger_rows = [restart_row(record, record.get("services") or [])]
    for path, entry in sorted((record.get("files") or {}).items()):
        ledger_rows += [{"kind": "file", "path": path, "before": None}] if entry.get("created") else []
        for key, setting in sorted(entry["settings"].items()):
            ledger_rows.append(
                key_row(path, key, setting["ours"], setting["before"], setting["list"], setting["wanted"])
            )
    return ledger_rows


def cdsw(record, previous):
    """The record has the lines before, the copy those with which CDSW ran last. What the keys have now is this project's."""
    ledger_rows = [restart_row(record, ["cdsw"])] if record.get("before") else []
    shell, content = key_formats.SHELL, (text(CDSW_CONF) or "").encode("utf-8")
    for key, before in sorted((record.get("before") or {}).items()):
        row = key_row(CDSW_CONF, key, shell.values(content).get(key), before)
        if record.get("restart_pending") and previous is not None:
            row["ran"] = shell.raw(previous.encode("utf-8"), key)
        ledger_rows.append(row)
    return ledger_rows


def daemon(record, before):
    runtime = {"args": [], "path": "nvidia-container-runtime"}
    file_row = {"kind": "file", "path": DAEMON_JSON, "before": before, "sha256": record.get("sha256")}
    return [file_row, key_row(DAEMON_JSON, "runtimes.nvidia", runtime, None)]


def archive_mark(path):
    """The mark of a directory that came from an archive, as placed_tree writes it; None without one."""
    try:
        sha256, sizes = [text(os.path.join(path, name)) for name in ARCHIVE_MARK]
        entries = json.loads(sizes).values()  # of a link: its target
        size = sum(entry if isinstance(entry, int) else len(entry) for entry in entries)
        return {"sha256": sha256.strip(), "files": len(entries), "bytes": size}
    except (IOError, OSError, ValueError, TypeError, AttributeError):
        return None


def remove_archive_mark(path):
    for name in ARCHIVE_MARK:
        if os.path.exists(os.path.join(path, name)):
            os.unlink(os.path.join(path, name))
