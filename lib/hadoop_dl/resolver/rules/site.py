"""Rules of the site that no TensorFlow changes: one operating system, YARN's GPU scheduling, CDSW, slices of GPUs."""

import re
from collections.abc import Hashable, Iterator, Sequence

from hadoop_dl.data.yarn_work import NOT_ISOLATED, schedules_gpus
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.findings import Finding, against, warning
from hadoop_dl.resolver.gpus import Gpu
from hadoop_dl.resolver.hosts import Hadoop, System
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.versions import known, listed, version

ON_MAPR = (
    "On MapR, hosts require its file system mounted at /mapr/CLUSTER (NFS or FUSE), and jobs the site's Spark (spark_home). GPUs under YARN, drains and "
    "node labels are refused. No MapR was seen (docs/reference/hadoop.md)"
)
YARN_GPUS = "3.1.0"  # the first Hadoop that schedules GPUs; 2.10 got it afterwards


class Site(Part):
    """One operating system for a host, GPU scheduling only if Hadoop has it, one model of GPU for CDSW."""

    level = "site"

    def __init__(self, catalog: BuildCatalog) -> None:
        self.compat = catalog.compat

    def classify(self, build: TensorflowBuild) -> Hashable:
        return build.gpu

    def findings(self, items: Sequence[Item]) -> Iterator[Finding]:
        """The findings of all rules: refusals, doubts and warnings."""
        gpus = [item for item in items if isinstance(item.subject, Gpu)]
        systems = {item.subject.key: item.label for item in items if isinstance(item.subject, System)}
        if len(systems) > 1:
            yield Finding(f"A host has one operating system, but {listed(systems.values())} were named", ())
        if gpus and any(item.key == "gpu" and item.absent for item in items):
            urls = gpus[0].subject.sources if isinstance(gpus[0].subject, Gpu) else ()
            yield Finding(f"{gpus[0].label} was named together with no GPU", urls)
        yield from self.maprfs(items)
        yield from self.yarn(items)
        yield from self.cdsw(items, gpus)

    def asked(self, items: Sequence[Item], key: str) -> bool:
        return any(item.key == key and item.text not in ("false", "none") for item in items)

    def maprfs(self, items: Sequence[Item]) -> Iterator[Finding]:
        urls = tuple(self.compat.fact("hadoop", "TensorFlow HDFS access")["source"])
        hdfs_requested = any(item.key == "hdfs" and item.flag for item in items)
        for hadoop in (item.subject for item in items):
            if isinstance(hadoop, Hadoop) and hadoop.has_maprfs:
                note = f"TensorFlow reads hdfs:// and viewfs://, but the file system of {hadoop.label} is maprfs://"
                yield Finding(note, urls + hadoop.sources, refuses=hdfs_requested)
                yield warning(ON_MAPR, hadoop.sources)

    def yarn(self, items: Sequence[Item]) -> Iterator[Finding]:
        if not self.asked(items, "yarn_gpu"):
            return
        urls = tuple(self.compat.fact("hadoop", "YARN resource types")["source"])
        if any(item.key == "yarn_gpu" and not item.flag for item in items):
            yield Finding("GPU scheduling was requested and refused", urls)
        for hadoop in (item.subject for item in items):
            if not isinstance(hadoop, Hadoop):
                continue
            if hadoop.has_maprfs:
                yield Finding(
                    f"YARN of {hadoop.label} is run by MapR's Warden, which these playbooks do not configure",
                    hadoop.sources,
                )
            newer = hadoop.newer
            if newer and newer.hadoop and version(newer.hadoop) < version(YARN_GPUS):
                note = f"{hadoop.label} is older than {newer.label} (Hadoop {newer.hadoop}), and YARN schedules GPUs from Hadoop {YARN_GPUS} on"
                yield Finding(note, urls + newer.sources)
            elif hadoop.hadoop is None:
                note = f"YARN schedules GPUs from Hadoop {YARN_GPUS} on, but the data does not name the one of {hadoop.label}"
                yield against(note, hadoop.sources, verified=False)
            elif not schedules_gpus(hadoop.hadoop):
                note = f"YARN schedules GPUs from Hadoop {YARN_GPUS} on, and in 2.10, but {hadoop.label} is Hadoop {hadoop.hadoop}"
                yield against(note, urls + hadoop.sources, hadoop.verified)
            elif re.fullmatch(r"CDP 7\.0(\..*)?", hadoop.label):
                row = self.compat.fact("hadoop", "CDP 7.0 does not support")
                yield Finding(
                    f"YARN of {hadoop.label} does not support GPUs; that of CDP 7.1 does", tuple(row["source"])
                )
        yield warning(
            "YARN gets yarn.io/gpu in resource-types.xml, yarn-site.xml and capacity-scheduler.xml (playbooks/yarn_gpu.yml); where Cloudera Manager or "
            f"Ambari owns these files, the plan prints the properties. With the default container executor {NOT_ISOLATED}",
            urls,
        )
        if any(isinstance(item.subject, Gpu) and item.subject.mig for item in items):
            yield warning("YARN schedules whole GPUs: whether it finds slices (MIG) is not verified", urls)

    def cdsw(self, items: Sequence[Item], gpus: Sequence[Item]) -> Iterator[Finding]:
        if not self.asked(items, "cdsw"):
            return
        if len(gpus) > 1:
            row = self.compat.fact("cdsw", "only CUDA-enabled")
            note = f"CDSW requires the same make and model of GPU on all its hosts, but {listed([item.label for item in gpus])} were named"
            yield Finding(note, tuple(row["source"]))
        row = self.compat.fact("cdsw", "last RPM line")
        last = row["value"].partition(".x")[0]
        for item in items:
            if item.key == "cdsw" and any(
                version(spec.text) > version(f"{last}.99") for spec in item.specs if known(spec.text)
            ):
                yield against(
                    f"No CDSW {item.text} is known: the last one is {last}", tuple(row["source"]), verified=False
                )
            if isinstance(item.subject, System) and item.subject.key != "rhel7":
                note = f"CDSW's packages are for RHEL 7 ({row['value']}), but the host has {item.label}"
                yield Finding(note, tuple(row["source"]))
        if any(isinstance(item.subject, Gpu) and item.subject.mig for item in gpus):
            urls = tuple(self.compat.fact("cdsw", "only CUDA-enabled")["source"])
            yield Finding("CDSW does not support slices of GPUs (MIG)", urls)
        yield warning(
            "A CDSW engine has its own operating system: the driver follows the host, TensorFlow and CUDA follow the engine image",
            tuple(self.compat.fact("cdsw", "legacy engines need")["source"]),
        )

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        findings = list(self.findings(items))
        if any(finding.refuses for finding in findings):
            return None
        return Choice(warnings=[*findings, *self.remarks(build, items)])

    def remarks(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        """Warnings about the Hadoop release that do not depend on the scheduler."""
        bare = any(item.host_fact == "gpus" for item in items)
        for hadoop in (item.subject for item in items):
            if not isinstance(hadoop, Hadoop):
                continue
            old = hadoop.hadoop is not None and not schedules_gpus(hadoop.hadoop)
            if old and build.gpu and not bare and not self.asked(items, "yarn_gpu"):
                note = f"{hadoop.label} (Hadoop {hadoop.hadoop}) does not schedule GPUs: every job on a host sees all of them"
                yield warning(note, tuple(self.compat.fact("hadoop", "YARN resource types")["source"]) + hadoop.sources)
            if hadoop.hadoop is None and not hadoop.java:
                yield warning(
                    f"{hadoop.label} is not in this data: nothing that depends on it was checked", hadoop.sources
                )
            elif not hadoop.verified:
                yield warning(f"The data on {hadoop.label} is not verified", hadoop.sources)

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        yield from (finding for finding in self.findings(items) if finding.refuses)
