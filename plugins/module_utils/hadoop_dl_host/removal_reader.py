# -*- coding: utf-8 -*-
"""What this project has on a host, by the records of its roles there, and who uses it. Python 2.7 and 3, standard library; reads only."""

from __future__ import absolute_import, division, print_function

import glob
import os
import pwd
import re

from . import (
    bazel_versions,
    build_place,
    hdfs_record,
    host_lock,
    host_system,
    host_workbench,
    ledger,
    own_entries,
    yarn_cluster,
)
from . import environment_packages as packages
from .own_entries import names, read_json

ENVIRONMENT = re.compile(r"^(\.removing-|\.link-)?(?P<name>.+-[0-9a-f]{12})(\.\d+|\.client)?$")
# Each part of the GPU layer: its repository, and what else tells that its role was here. Globs.
GPU = {
    "nvidia_driver": (
        "nvidia-driver",
        ["{root}/etc/nvidia-driver-*", "/etc/modprobe.d/deeplearning-nouveau.conf"],
    ),
    "cuda": ("cuda", ["{root}/etc/gpu-check-cuda.json", "/etc/profile.d/deeplearning-cuda.sh"]),
    "cudnn": ("cudnn", ["{root}/etc/gpu-check-cudnn.json"]),
    "nccl": ("nccl", ["{root}/etc/gpu-check-nccl.json"]),
    "gpu_check": ("gpu-check", ["{root}/etc/gpu-check.json", "{root}/bin/gpu-check"]),
}
# Units of the role tensorboard; what a site added to one (NAME.service.d) is the site's.
TENSORBOARD = [
    "/etc/systemd/system/deeplearning-" + name
    for name in ("tensorboard-*.service", "ticket-*.service", "ticket-*.timer")
]
OWN_SERVICE = re.compile(r"/deeplearning-tensorboard-[^/\s]+\.service$", re.MULTILINE)  # in the cgroups of a process
RUNTIME = ("{root}/etc/container_runtime.json", "{root}/etc/daemon.json*", "{root}/state/container_runtime.json")
YARN = ("{root}/etc/yarn_gpu.json", "{root}/state/yarn_gpu.json")
WORKBENCH = ("{root}/etc/cdsw.json*", "{root}/state/cdsw.json")
BUILD_ROOT, PUBLISHED = "/var/lib/deeplearning-build", "/published/"  # if nothing else was asked for; below it
ENGINE_RECORD = "etc/cdsw_engine.json"
DEFINITIONS = (
    "/etc/yum.repos.d/deeplearning-%s.repo",
    "/etc/pki/rpm-gpg/RPM-GPG-KEY-deeplearning-%s",
    "/etc/pki/rpm-gpg/RPM-GPG-KEY-deeplearning-%s.trusted-before",
)
MIRROR = (
    "/etc/systemd/system/deeplearning-mirror.service",
    "/usr/local/lib/deeplearning-mirror",
    "/etc/deeplearning-mirror",
    "/var/log/deeplearning-mirror.log",
)
OTHERS = re.compile(
    r"^(bin|etc|envs|state|(\.new-)?(current|CURRENT\.txt)|\.run\.json|%s|%s|(\.removing-)?(%s))$"
    % (re.escape(host_lock.NAME), re.escape(own_entries.PROBE), "|".join(own_entries.DIRECTORIES))
)


PARTS = ("environments", "yarn_gpu", "cdsw", "container_runtime", "gpu", "build", "bazel", "mirror")
QUESTIONS = ("hdfs", "stays", "users", "applications")


class Removal(object):
    """root: of this project; system: of everything else, for tests."""

    def __init__(self, root, bazel_root="/opt/bazel", system="", login=(None, None)):
        """login: principal and keytab, with which YARN is asked if its cluster has Kerberos."""
        self.root, self.bazel_root, self.system, self.login = root, bazel_root, system, login

    def answer(self):
        """What each part has on this host, the names of the parts that have something, and what the removal must know."""
        answers = dict((name, getattr(self, name)()) for name in PARTS + QUESTIONS)
        return dict(answers, parts=[name for name in PARTS if answers[name]])

    def there(self, patterns):
        paths = [entry.replace("{root}", self.root) if "{root}" in entry else self.system + entry for entry in patterns]
        return sorted(path for pattern in paths for path in glob.glob(pattern))

    def receipt(self, component):
        return read_json(os.path.join(self.root, "state", component + ".json"))

    def current(self):
        link = os.path.join(self.root, "current")
        return os.path.basename(os.readlink(link)) if os.path.islink(link) else ""

    def named(self):
        """The names of the environments, without those of their trees and links."""
        matches = [ENVIRONMENT.match(name) for name in names(os.path.join(self.root, "envs"))]
        return sorted(set(match.group("name") for match in matches if match))

    def environments(self):
        """Environments by name, and what else their part has."""
        lines = [name + (" (active)" if name == self.current() else "") for name in self.named()]
        programs = [(name, self.has_program(name)) for name in ("deeplearning", "tfos-submit")]
        parts = programs + [("settings of Spark and Hadoop", own_entries.settings(self.root))]
        parts += [(name + "/", own_entries.below(self.root, name)) for name in own_entries.DIRECTORIES]
        parts += [
            ("services of TensorBoard", self.there(TENSORBOARD)),
            ("the link current", self.exists("current") and not lines),
        ]
        parts += [("the probe of a killed switch", own_entries.probes(self.root))]
        receipts = [] if lines else own_entries.receipts(self.root)
        parts += [("the receipt of " + os.path.basename(path)[: -len(".json")], True) for path in receipts]
        return lines + [text for text, content in parts if content]

    def has_program(self, name):
        return self.exists("bin/" + name) or self.is_ours("/usr/local/bin/" + name)

    def exists(self, name):
        return os.path.lexists(os.path.join(self.root, name))

    def is_ours(self, link):
        return os.path.islink(self.system + link) and os.readlink(self.system + link).startswith(self.root + os.sep)

    def hdfs(self):
        """The record of what this host put into HDFS; of an older release the archives that its settings name."""
        path = os.path.join(self.root, "etc", "hdfs.json")
        settings = []
        for settings_path in glob.glob(os.path.join(self.root, "envs", "*.client", "spark-defaults.conf")) + [
            os.path.join(self.root, "etc", "spark-defaults.conf")
        ]:
            try:
                with open(settings_path) as handle:
                    settings.append(handle.read())
            except (IOError, OSError):
                continue
        record = hdfs_record.read(path)
        files = sorted(set(record["files"] + hdfs_record.archives_of(settings)))
        return dict(record, files=files, recorded=os.path.exists(path), record=path)

    def gpu(self):
        """The roles of the GPU layer that left something, each with what it is."""
        roles = {}
        for role, (repository, patterns) in sorted(GPU.items()):
            traces = self.there(patterns + [definition % repository for definition in DEFINITIONS])
            if self.receipt(role) or self.exists("state/%s.json" % role) or traces:
                roles[role] = self.versions(role)
        return roles

    def versions(self, role):
        record = read_json(os.path.join(self.root, "etc", "gpu-check-%s.json" % role))
        versions = record.get(role) or []
        if role == "nvidia_driver":
            versions = [read_json(os.path.join(self.root, "etc", "gpu-check.json")).get("driver") or ""]
        title = {"nvidia_driver": "driver", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL", "gpu_check": "gpu-check"}[
            role
        ]
        return " ".join([title] + sorted(str(version) for version in versions if version))

    def container_runtime(self):
        """NVIDIA's container runtime that the role installed; empty for none. `stays`: its package was there before."""
        record = read_json(os.path.join(self.root, "etc", "container_runtime.json"))
        traces = self.there(list(RUNTIME) + [definition % "container-runtime" for definition in DEFINITIONS])
        if not (record or traces):
            return {}
        return {
            "package": " ".join(str(record[key]) for key in ("name", "version") if record.get(key)),
            "stays": bool(record.get("existed", False)),
            "daemon_json": bool(ledger.rows("container_runtime", self.root)),
        }

    def yarn_gpu(self):
        """Hadoop's files that the role changed, and the daemons that restart; empty for none."""
        if not self.there(list(YARN)):
            return {}
        rows = ledger.rows("yarn_gpu", self.root)
        return {"files": sorted(set(row["path"] for row in rows)), "services": ledger.services("yarn_gpu", self.root)}

    def cdsw(self):
        """Settings of CDSW that the role changed, with what the role needs to change them back; empty for none."""
        if not self.there(list(WORKBENCH)):
            return {}
        record = read_json(os.path.join(self.root, "etc", "cdsw.json"))
        workbench = host_workbench.read(host_system.System(self.system)) or {}
        manager = record.get("cloudera_manager") or {}
        return {
            "kind": "parcel" if manager else "rpm",
            "keys": sorted(row["key"] for row in ledger.rows("cdsw", self.root)) if workbench else [],
            "cloudera_manager": manager,
            "release": workbench.get("release") or "",
            "master": bool(workbench.get("master")),
            "sessions": workbench.get("sessions"),
        }

    def applications(self):
        """Why YARN still needs one of the environments here: environment -> a few words."""
        return yarn_cluster.reasons(self.named(), os.path.join(self.root, "etc", "hadoop-env.sh"), *self.login)

    def build(self):
        """What builds of TensorFlow created, by their record: directories, accounts, and the receipt, unless it alone tells of them."""
        roots, users = build_place.present(read_json(os.path.join(self.root, "etc", "tensorflow_build.json")))
        records = [
            os.path.join(self.root, "state", "tensorflow_build.json"),
            os.path.join(self.root, "etc", "tensorflow_build.json"),
        ]
        leftovers = [root for root, below in roots if below] + ["the account " + name for name in users]
        return leftovers + [path for path in records if os.path.exists(path) and not self.unrecorded_builds()]

    def unrecorded_builds(self):
        """Directories of builds by an earlier release, which wrote no record, by the paths of its receipt; each with that receipt."""
        if self.exists("etc/tensorflow_build.json") or not self.exists("state/tensorflow_build.json"):
            return []
        receipt = self.receipt("tensorflow_build")
        paths = list(receipt.get("files") or {}) + list(receipt.get("sizes") or {})
        roots = set(path.rpartition(PUBLISHED)[0] for path in paths if PUBLISHED in path) or [BUILD_ROOT]
        present_roots, _ = build_place.present({"roots": dict.fromkeys(roots, True)})
        return ["%s, of %s/state/tensorflow_build.json" % (root, self.root) for root, below in present_roots if below]

    def bazel(self):
        marks = bazel_versions.versions(self.bazel_root)
        managed_versions = dict((name, mark) for name, mark in marks.items() if mark["managed"])
        traces = self.there([definition % "bazel" for definition in DEFINITIONS])
        if not (managed_versions or traces):
            return {}
        package = any(mark.get("source") == "repository" for mark in managed_versions.values()) or bool(traces)
        return {"versions": sorted(managed_versions), "package": package}

    def mirror(self):
        """Where the mirror's files are, by its record, its unit or its receipt; empty if this host has no mirror."""
        record = read_json(os.path.join(self.root, "etc", "mirror.json"))
        manifests = [path for path in self.receipt("mirror").get("files", {}) if path.endswith("/manifest.json")]
        roots = record.get("roots") or dict((os.path.dirname(path), False) for path in manifests)
        parts = self.there(list(MIRROR))
        if not (roots or parts or self.exists("state/mirror.json")):
            return {}
        artifacts = [read_json(os.path.join(root, "manifest.json")).get("artifacts") or {} for root in sorted(roots)]
        return {
            "before": {"roots": roots, "user_existed": bool(record.get("user_existed", False))},
            "files": [len(rows) for rows in artifacts],
            "parts": parts,
        }

    def stays(self):
        """What is in the directories of this project and is not managed by it, and engine images, by their archives or their record."""
        leftovers = [os.path.join(self.root, name) for name in names(self.root) if not OTHERS.match(name)]
        if self.exists(ENGINE_RECORD) and not self.exists("engines"):
            leftovers.append(os.path.join(self.root, ENGINE_RECORD))
        envs = os.path.join(self.root, "envs")
        leftovers += own_entries.others(self.root) + self.unrecorded_builds()
        probe = own_entries.PROBE
        return leftovers + [
            os.path.join(envs, name) for name in names(envs) if name != probe and not ENVIRONMENT.match(name)
        ]

    def users(self):
        """Processes that use something in the directory of this project: pid, user and command."""
        places = sorted(set([self.root, os.path.realpath(self.root)]))
        users = []
        for pid in packages.in_use(places):
            try:
                with open("/proc/%d/cgroup" % pid) as handle:
                    if OWN_SERVICE.search(handle.read()):
                        continue  # it ends with its environment
                owner = os.stat("/proc/%d" % pid).st_uid
                with open("/proc/%d/cmdline" % pid, "rb") as handle:
                    command = handle.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            except (IOError, OSError):
                continue  # it has ended
            users.append({"pid": pid, "user": user_name(owner), "command": command[:80] or "no command line"})
        return users


def user_name(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
