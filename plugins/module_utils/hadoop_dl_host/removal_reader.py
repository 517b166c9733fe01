"""What this project has on a host, by the records of its roles there, and who uses it. Python 2.7 and 3, standard library; reads only."""

import glob
import os
import pwd
import re

from . import (
    bazel_versions,
    earlier_records,
    hdfs_record,
    host_cdsw,
    host_lock,
    host_system,
    ledger,
    own_entries,
    yarn_cluster,
)
from . import environment_packages as packages
from .own_entries import names, read_json

ENVIRONMENT = re.compile(r"^(\.removing-|\.link-)?(?P<name>.+-[0-9a-f]{12})(\.\d+|\.client)?$")
# The GPU layer.
GPU = {"nvidia_driver": "driver", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL", "gpu_check": "gpu-check"}
OF_ENVIRONMENTS = (
    ("deeplearning", "deeplearning_command"),
    ("tfos-submit", "tensorflowonspark"),
    ("the links to Hadoop", "hadoop_client"),
    ("services of TensorBoard", "tensorboard"),
)
OWN_SERVICE = re.compile(r"/deeplearning-tensorboard-[^/\s]+\.service$", re.MULTILINE)  # in the cgroups of a process
ENGINE_RECORD = "etc/cdsw_engine.json"
BAZEL = (
    "/etc/yum.repos.d/deeplearning-bazel.repo",
    "/etc/pki/rpm-gpg/*-deeplearning-bazel*",
)
OTHERS = re.compile(
    r"^(bin|etc|envs|hadoop|jars|spark|state|(\.new-)?(current|CURRENT\.txt)|\.run\.json|%s|%s|\.removing-.*|%s)$"
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
        parts = [(title, self.has(component)) for title, component in OF_ENVIRONMENTS]
        parts += [("settings of Spark and Hadoop", own_entries.settings(self.root))]
        parts += [("downloads", own_entries.below(self.root))]
        parts += [("the link current", self.exists("current") and not lines)]
        parts += [("the probe of a killed switch", own_entries.probes(self.root))]
        receipts = [] if lines else own_entries.receipts(self.root)
        parts += [("the receipt of " + os.path.basename(path)[: -len(".json")], True) for path in receipts]
        return lines + [text for text, content in parts if content]

    def has(self, component):
        """Whether it has a ledger, which is written before its files; on a host of release 0.2 these and records tell."""
        return self.exists("state/%s.json" % component) or earlier_records.are_present(
            component, self.root, self.system
        )

    def exists(self, name):
        return os.path.lexists(os.path.join(self.root, name))

    def hdfs(self):
        """The record of what this host put into HDFS."""
        path = os.path.join(self.root, "etc", "hdfs.json")
        return dict(hdfs_record.read(path), record=path)

    def gpu(self):
        """The roles of the GPU layer that left something, each with what it is."""
        return dict((role, self.versions(role)) for role in sorted(GPU) if self.has(role))

    def versions(self, role):
        record = read_json(os.path.join(self.root, "etc", "gpu-check-%s.json" % role))
        versions = record.get(role) or []
        if role == "nvidia_driver":
            versions = [read_json(os.path.join(self.root, "etc", "gpu-check.json")).get("driver") or ""]
        return " ".join([GPU[role]] + sorted(str(version) for version in versions if version))

    def container_runtime(self):
        """What goes of NVIDIA's container runtime. A package that was there before stays."""
        record = read_json(os.path.join(self.root, "etc", "container_runtime.json"))
        if not self.has("container_runtime"):
            return []
        package = " ".join(str(record[key]) for key in ("name", "version") if record.get(key))
        lines = [package] if package and not record.get("existed") else []
        lines += ["the runtime in daemon.json"] if ledger.rows("container_runtime", self.root) else []
        return lines or ["its repository and record"]

    def yarn_gpu(self):
        """Hadoop's files that the role changed, and the daemons that restart; empty for none."""
        if not self.has("yarn_gpu"):
            return {}
        rows = ledger.rows("yarn_gpu", self.root)
        return {"files": sorted(set(row["path"] for row in rows)), "services": ledger.services("yarn_gpu", self.root)}

    def cdsw(self):
        """Settings of CDSW that the role changed, with what the role needs to change them back; empty for none."""
        record = read_json(os.path.join(self.root, "etc", "cdsw.json"))
        if not (record or self.has("cdsw")):
            return {}
        workbench = host_cdsw.read(host_system.System(self.system)) or {}
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
        """The directories and accounts that builds of TensorFlow created, by their ledger."""
        if not self.has("tensorflow_build"):
            return []
        places, accounts = [ledger.rows("tensorflow_build", self.root, kind) for kind in ("place", "account")]
        lines = [row["path"] for row in places if os.path.isdir(row["path"])]
        return lines + ["the account " + row["path"] for row in accounts if not row["existed"]] or ["its receipt"]

    def bazel(self):
        marks = bazel_versions.versions(self.bazel_root)
        managed_versions = dict((name, mark) for name, mark in marks.items() if mark["managed"])
        traces = [path for pattern in BAZEL for path in glob.glob(self.system + pattern)]
        if not (managed_versions or traces):
            return {}
        package = any(mark.get("source") == "repository" for mark in managed_versions.values()) or bool(traces)
        return {"versions": sorted(managed_versions), "package": package}

    def mirror(self):
        """The directories of the mirror, by its ledger, and its own files."""
        if not self.has("mirror"):
            return []
        roots = [row["path"] for row in ledger.rows("mirror", self.root, "place")]
        manifests = [(root, read_json(os.path.join(root, "manifest.json"))) for root in roots]
        lines = ["%s (%d files)" % (root, len(manifest.get("artifacts") or {})) for root, manifest in manifests]
        own_paths = [row["path"] for row in ledger.rows("mirror", self.root, "own")]
        return lines + own_entries.present(own_paths) or ["its receipt"]

    def stays(self):
        """What is in the directories of this project and is not managed by it, and engine images, by their archives or their record."""
        leftovers = [os.path.join(self.root, name) for name in names(self.root) if not OTHERS.match(name)]
        if self.exists(ENGINE_RECORD) and not self.exists("engines"):
            leftovers.append(os.path.join(self.root, ENGINE_RECORD))
        envs = os.path.join(self.root, "envs")
        own_paths = tuple(row["path"] for row in ledger.rows("tensorflowonspark", self.root, "own"))
        beside = sorted(path for name in ("jars", "spark") for path in glob.glob(os.path.join(self.root, name, "*")))
        leftovers += [path for path in beside if not path.startswith(own_paths)]
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
