"""Read everything about a host that the plan needs, at once, and print it as one JSON line.

Python 2.7 and 3, standard library only, reads and never writes. The action plugin host_facts pipes it, packed with
its helpers (hadoop_dl.hosts.host_script), into the host's Python; tests call read(root) on recorded trees.
A fact that cannot be read is null: the plan decides what its absence means.
"""

import json
import os
import pwd
import re
import sys

from . import (
    disk_space,
    environment_tree,
    host_cdsw,
    host_kerberos,
    host_system,
    host_yarn,
    mapr,
    processes,
    recorded_files,
    sandbox_cell,
)

ROOT = "/opt/deeplearning"
LATE = (
    "the host accepts connections, but reading it gave %s. A disk or a network file system that does not "
    "answer does this; look for processes in state D (ps -eo pid,stat,args), repair the host, and run again"
)
READ_TIMEOUT = 120  # seconds for everything; the files of a large environment take one
HADOOP_HOMES = (
    ("cdh", "/opt/cloudera/parcels/CDH/lib/hadoop"),
    ("hdp", "/usr/hdp/current/hadoop-client"),
    ("mapr", "/opt/mapr/hadoop/hadoop-*"),
    ("apache", "/opt/hadoop"),
    ("apache", "/usr/local/hadoop"),
    ("apache", "/usr/lib/hadoop"),
)
JAVA_HOMES = ("/usr/java/default", "/usr/java/*", "/usr/lib/jvm/*", "/opt/java/*")


class Reader(host_system.System):
    """Also what was installed on it: Pythons, Java, Hadoop, packages, and what the roles left."""

    def managed(self):
        """What this project's roles installed of CUDA, cuDNN and NCCL, by their own records: versions, and entries of the inputs."""
        component_versions = {}
        for name in ("cuda", "cudnn", "nccl"):
            versions, items = [], []
            try:
                record = json.loads(self.text(ROOT + "/etc/gpu-check-%s.json" % name) or "{}")
                versions = sorted(["%s" % version for version in record.get(name, [])], key=host_system.version_key)
                items = [
                    {"version": "%s" % item["version"], "cuda": "%s" % item["cuda"]}
                    for item in record.get(name + "_items") or []
                ]
            except (ValueError, AttributeError, TypeError, KeyError):
                pass  # a torn record: the receipt beside it tells
            component_versions[name] = versions
            if name != "cuda":
                component_versions[name + "_items"] = items
        return component_versions

    def pythons(self):
        """Interpreters by version, such as {"2.7": "/usr/bin/python2.7"}."""
        interpreters = {}
        for directory in ("/usr/local/bin", "/usr/bin"):
            for path in self.glob(directory + "/python[23].*"):
                match = re.match(r".*/python(\d\.\d+)$", path)
                if match:
                    interpreters[match.group(1)] = path
        return interpreters

    def java(self):
        """Java homes by version, such as [{"home": "/usr/lib/jvm/java-11", "version": "11.0.21", "major": "11"}]."""
        homes, real_paths = [], set()
        for home in [home for pattern in JAVA_HOMES for home in self.glob(pattern)]:
            real = os.path.realpath(self.at(home))
            if real in real_paths or not (os.path.exists(real + "/bin/java") or os.path.exists(real + "/jre/bin/java")):
                continue
            real_paths.add(real)
            version = host_system.java_version(real)
            homes.append({"home": home, "version": version, "major": host_system.java_major(version)})
        return homes

    def hadoop(self):
        for distribution, pattern in HADOOP_HOMES:
            for home in self.glob(pattern):
                if not (self.exists(home + "/bin/hadoop") or self.exists(home + "/libexec")):
                    continue
                jars = [
                    path
                    for place in ("/share/hadoop/common", "", "/lib")
                    for path in self.glob(home + place + "/hadoop-common-[0-9]*.jar")
                ]
                match = re.search(r"hadoop-common-(\d[\w.\-]*?)(?:-tests)?\.jar", jars[0]) if jars else None
                conf = "/etc/hadoop/conf" if self.exists("/etc/hadoop/conf") else home + "/etc/hadoop"
                return {
                    "distribution": distribution,
                    "home": home,
                    "version": match.group(1) if match else None,
                    "conf_dir": conf if self.exists(conf) else None,
                }
        return None

    def configurations(self, hadoop, names):
        """The directories of Hadoop's configuration: its own, and those that inputs name."""
        input_directories = [name for name in names if name.startswith("/") and self.exists(name + "/core-site.xml")]
        return set(input_directories + [(hadoop or {}).get("conf_dir") or "/etc/hadoop/conf"])

    def named(self, names):
        """Of the paths and accounts that inputs name: whether the path exists; the account's number and home, None if there is none.

        And the release of the Spark that is there, by its jar: spark-core_2.11-2.4.0-cdh6.3.4.jar is 2.4.0.
        """
        paths, accounts, sparks = {}, {}, {}
        for name in names:
            if name.startswith("/"):
                paths[name] = self.exists(name)
                for jar in self.glob(name + "/jars/spark-core_*.jar"):
                    match = re.search(r"spark-core_[\d.]+-(\d+\.\d+\.\d+)", jar)
                    sparks.update({name: match.group(1)} if match else {})
                continue
            try:
                entry = pwd.getpwnam(name)
                accounts[name] = {"uid": entry.pw_uid, "home": entry.pw_dir}
            except KeyError:
                accounts[name] = None
        return {"paths": paths, "accounts": accounts, "sparks": sparks}

    def disk_free_mb(self):
        return dict((path, disk_space.free(self.at(path))[0] >> 20) for path in ("/opt", "/usr", "/tmp"))

    def receipts(self):
        """The receipt of each role, and the first difference between it and the host."""
        receipts = {}
        for path in self.glob(ROOT + "/state/*.json"):
            try:
                receipt = json.loads(self.text(path) or "")
                if "rows" in receipt and "digest" not in receipt:
                    continue  # a run was killed before its receipt
                problem = self.receipt_problem(receipt)
                receipts[os.path.basename(path)[: -len(".json")]] = {"digest": receipt["digest"], "problem": problem}
            except (ValueError, KeyError, TypeError, AttributeError):
                receipts[os.path.basename(path)[: -len(".json")]] = {
                    "digest": None,
                    "problem": "%s is not readable" % path,
                }
        return receipts

    def receipt_problem(self, receipt):
        """The first difference between a receipt and the host, as a sentence; None if there is none."""
        return next((sentence for _, sentence in recorded_files.differences(receipt, self.at)), None)

    def environments(self):
        """Environments by name; problem is None for one that is sealed and intact, also if files were added."""
        envs = {}
        for path in self.glob(ROOT + "/envs/*"):
            name = os.path.basename(path)  # a link; its trees are NAME.1, NAME.2, and NAME.client has settings
            if name.startswith(".") or re.search(r"\.(\d+|client)$", name) or not os.path.isdir(self.at(path)):
                continue
            problem, added = environment_tree.state(self.at(path))
            seal = environment_tree.seal_of(self.at(path)) or {}
            envs[name] = {"problem": problem, "python": seal.get("python"), "contents": seal.get("contents_sha256")}
            envs[name]["lock"] = seal.get("lock_sha256")
            if added:
                envs[name]["added"] = added[:3] + ["and %d more" % (len(added) - 3)] * (len(added) > 3)
        return envs

    def deeplearning(self):
        link = self.at(ROOT + "/current")
        return {
            "current": os.path.basename(os.readlink(link)) if os.path.islink(link) else None,
            "environments": self.environments(),
            "receipts": self.receipts(),
        }

    def read(self, names=()):
        workbench, hadoop = host_cdsw.read(self), self.hadoop()
        configurations = self.configurations(hadoop, names)
        return {
            "architecture": os.uname()[4],
            "os": self.operating_system(),
            "cpu": self.cpu(),
            "glibc": self.glibc(),
            "libstdcxx": self.libstdcxx(),
            "kernel": self.kernel(),
            "secure_boot": self.secure_boot(),
            "nvidia": self.nvidia(),
            "cuda": self.cuda(),
            "managed": self.managed(),
            "pythons": self.pythons(),
            "java": self.java(),
            "hadoop": hadoop,
            "mapr_mount": mapr.mount(self.text),
            "yarn": host_yarn.read(self, configurations, (hadoop or {}).get("home")),
            "kerberos": host_kerberos.read(self, configurations),
            "cdsw": workbench is not None,
            "workbench": workbench,
            "containers": host_cdsw.containers(self),
            "cell_problem": None if self.root or os.geteuid() != 0 else sandbox_cell.refusal(),
            "unanswered": self.unanswered,
            "deeplearning": self.deeplearning(),
            "disk_free_mb": self.disk_free_mb(),
            "named": self.named(names),
        }


def read(root="/", names=()):
    """Everything about the host whose file system begins at root, as a mapping that JSON can carry."""
    return Reader(root).read(names)


def times(root=""):
    """When the host's active environment or anything that a role left was changed, and when it was verified after that."""
    changed = []
    for path in [root + ROOT + "/current"] + [
        os.path.join(directory, name)
        for directory, _, names in os.walk(root + ROOT + "/state")
        for name in names
        if name.endswith(".json") and name != "verify.json"
    ]:
        try:
            changed.append(int(os.lstat(path).st_mtime))
        except (IOError, OSError):
            continue
    try:
        verified = int(os.lstat(root + ROOT + "/state/verify.json").st_mtime)
    except (IOError, OSError):
        verified = None
    return {"changed": max(changed) if changed else None, "verified": verified}


def main(names=()):
    try:
        answer = processes.limited(lambda: read(names=names), READ_TIMEOUT)
    except processes.Late as late:
        answer = {"late": LATE % late}
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
