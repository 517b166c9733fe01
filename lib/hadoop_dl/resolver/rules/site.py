"""Rules of the site that no TensorFlow changes: one operating system, YARN's GPU scheduling, CDSW, slices of GPUs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.findings import Finding, against, warning
from hadoop_dl.resolver.gpus import Gpu
from hadoop_dl.resolver.hosts import Hadoop, System
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.versions import listed, version

YARN_GPUS = "3.1.0"  # the first Hadoop that schedules GPUs


class Site(Part):
    """One operating system for a host, GPU scheduling only where Hadoop has it, one model of GPU for CDSW."""

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
            where = gpus[0].subject.sources if isinstance(gpus[0].subject, Gpu) else ()
            yield Finding(f"{gpus[0].label} was named together with no GPU", where)
        yield from self.yarn(items)
        yield from self.cdsw(items, gpus)

    def asked(self, items: Sequence[Item], key: str) -> bool:
        return any(item.key == key and item.text not in ("false", "none") for item in items)

    def yarn(self, items: Sequence[Item]) -> Iterator[Finding]:
        if not self.asked(items, "yarn_gpu"):
            return
        where = tuple(self.compat.fact("hadoop", "YARN resource types")["source"])
        if any(item.key == "yarn_gpu" and not item.flag for item in items):
            yield Finding("GPU scheduling was requested and refused", where)
        for hadoop in (item.subject for item in items):
            if not isinstance(hadoop, Hadoop):
                continue
            if hadoop.hadoop is None:
                said = f"YARN schedules GPUs from Hadoop {YARN_GPUS} on, but the data does not name the one of {hadoop.label}"
                yield against(said, hadoop.sources, verified=False)
            elif version(hadoop.hadoop) < version(YARN_GPUS):
                said = f"YARN schedules GPUs from Hadoop {YARN_GPUS} on, but {hadoop.label} is Hadoop {hadoop.hadoop}"
                yield against(said, where + hadoop.sources, hadoop.verified)
        if any(isinstance(item.subject, Gpu) and item.subject.mig for item in items):
            yield warning("YARN schedules whole GPUs: whether it finds slices (MIG) is not verified", where)

    def cdsw(self, items: Sequence[Item], gpus: Sequence[Item]) -> Iterator[Finding]:
        if not self.asked(items, "cdsw"):
            return
        if len(gpus) > 1:
            row = self.compat.fact("cdsw", "only CUDA-enabled")
            said = f"CDSW requires the same make and model of GPU on all its hosts, but {listed([item.label for item in gpus])} were named"
            yield Finding(said, tuple(row["source"]))
        row = self.compat.fact("cdsw", "last RPM line")
        for item in items:
            if isinstance(item.subject, System) and item.subject.key != "rhel7":
                said = f"CDSW's packages are for RHEL 7 ({row['value']}), but the host has {item.label}"
                yield Finding(said, tuple(row["source"]))
        if any(isinstance(item.subject, Gpu) and item.subject.mig for item in gpus):
            yield warning(
                "CDSW does not support slices of GPUs (MIG)",
                tuple(self.compat.fact("cdsw", "only CUDA-enabled")["source"]),
            )
        yield warning(
            "A CDSW engine has its own operating system: the driver follows the host, TensorFlow and CUDA follow the engine image",
            tuple(self.compat.fact("cdsw", "legacy engines need")["source"]),
        )

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        found = list(self.findings(items))
        if any(finding.refuses for finding in found):
            return None
        return Choice(warnings=[*found, *self.remarks(build, items)])

    def remarks(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        """Warnings about the Hadoop release that do not depend on the scheduler."""
        bare = any(item.host_fact == "gpus" for item in items)
        for hadoop in (item.subject for item in items):
            if not isinstance(hadoop, Hadoop):
                continue
            old = hadoop.hadoop is not None and version(hadoop.hadoop) < version(YARN_GPUS)
            if old and build.gpu and not bare and not self.asked(items, "yarn_gpu"):
                said = f"{hadoop.label} (Hadoop {hadoop.hadoop}) does not schedule GPUs: every job on a host sees all of them"
                yield warning(said, tuple(self.compat.fact("hadoop", "YARN resource types")["source"]) + hadoop.sources)
            if not hadoop.verified:
                yield warning(f"The data on {hadoop.label} is not verified", hadoop.sources)

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        yield from (finding for finding in self.findings(items) if finding.refuses)
