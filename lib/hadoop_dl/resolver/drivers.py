"""The driver: its branch and kernel module, for CUDA, every GPU and the operating system. And rules of the site itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from hadoop_dl.compat import Row
from hadoop_dl.resolver.core_rules import from_ptx
from hadoop_dl.resolver.findings import Finding, sources
from hadoop_dl.resolver.gpus import Gpu, architecture
from hadoop_dl.resolver.hosts import Hadoop, System
from hadoop_dl.resolver.parts import Choice
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.universe import Core, Universe
from hadoop_dl.resolver.versions import cc, known, listed, version

KINDS = {"LTSB": 0, "PB": 1}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A branch at one version, with one kind of kernel module."""

    row: Row
    version: str
    module: Row

    @property
    def branch(self) -> int:
        return int(self.row["branch"])


def least_driver(toolkit: Row) -> str:
    """What CUDA needs: for 11 and later the floor of minor version compatibility is enough."""
    floors = [str(text) for text in (toolkit["min_driver"], toolkit["min_driver_minor_compat"]) if text]
    return min(floors, key=version)


def branch_of(text: str) -> str:
    return text.partition(".")[0]


class Driver:
    """Supported branches first, long-term before production before the rest; then the newest."""

    level = "driver"

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        compat = universe.compat
        rows = compat.rows("drivers", "branches")
        self.branches = sorted(
            rows, key=lambda row: (row["is_eol"] is not False, KINDS.get(row["kind"], 2), -int(row["branch"]))
        )
        self.names = [row["branch"] for row in sorted(rows, key=lambda row: int(row["branch"]))]
        self.modules = sorted(compat.rows("drivers", "modules"), key=lambda row: row["module"] == "open")
        self.first: dict[Hashable, tuple[Candidate, list[Finding]] | None] = {}
        self.only_open = {
            row["architecture"]: row for row in compat.rows("drivers", "architectures_without_proprietary_module")
        }

    def classify(self, core: Core) -> Hashable:
        return core.name, core.source, core.cuda

    def needed(self, core: Core, items: Sequence[Item]) -> str:
        """PTX that the driver has to compile needs one as new as the toolkit that made it."""
        toolkit = self.universe.toolkits[core.cuda or ""]
        gpus = [item.thing for item in items if isinstance(item.thing, Gpu)]
        if not core.built and any(from_ptx(core.line, gpu) for gpu in gpus):
            return str(toolkit["bundled_driver"])
        return least_driver(toolkit)

    def candidates(self, items: Sequence[Item]) -> Iterator[Candidate]:
        exact = [
            spec.text
            for item in items
            if item.key == "driver"
            for spec in item.specs
            if spec.kind == "prefix" and "." in spec.text and known(spec.text)
        ]
        for row in self.branches:
            for text in [*[text for text in exact if branch_of(text) == row["branch"]], row["latest_known"]]:
                for module in self.modules:
                    yield Candidate(row, text, module)

    def item_finding(self, item: Item, candidate: Candidate) -> Finding | None:
        """Why this item does not want this driver, or what to know about the two."""
        row, number = candidate.row, candidate.branch
        if item.key == "driver" and not item.accepts(candidate.version):
            return Finding(f"{item.label} was asked for", ())
        if item.key == "driver_branch" and not item.accepts(row["branch"]):
            return Finding(f"{item.label} was asked for", ())
        if item.key == "driver_module" and not item.accepts(candidate.module["module"]):
            return Finding(f"{item.label} was asked for", ())
        if (
            isinstance(item.thing, System)
            and item.thing.key.startswith("rhel")
            and item.thing.key not in row["rpm_for"]
        ):
            return Finding(
                f"branch {row['branch']} has no packages for {item.label}", sources(row), bool(row["verified"])
            )
        if isinstance(item.thing, Gpu):
            return self.gpu_finding(item.thing, candidate, number)
        return None

    def gpu_finding(self, gpu: Gpu, candidate: Candidate, number: int) -> Finding | None:
        row, arch = candidate.row, architecture(self.universe.compat, gpu)
        sure = bool(row["verified"])
        if cc(row["min_cc"]) > gpu.capability:
            return Finding(f"branch {row['branch']} has no code for {gpu.name}", sources(row), sure)
        if arch["last_driver_branch"] and number > int(arch["last_driver_branch"]):
            return Finding(f"{gpu.name} needs branch {arch['last_driver_branch']} or older", sources(arch))
        if arch["first_driver_branch"] and number < int(arch["first_driver_branch"]):
            return Finding(f"{gpu.name} needs branch {arch['first_driver_branch']} or newer", sources(arch))
        module = candidate.module["module"]
        if module == "open" and not arch["open_kernel_module"]:
            return Finding(f"{gpu.name} is not driven by the open modules", sources(arch))
        if module == "proprietary" and gpu.architecture in self.only_open:
            return Finding(f"{gpu.name} needs the open modules", sources(self.only_open[gpu.architecture]))
        return None

    def module_exists(self, candidate: Candidate) -> bool:
        first, last = candidate.module["first_branch"], candidate.module["last_branch"]
        return (not first or candidate.branch >= int(first)) and (not last or candidate.branch <= int(last))

    def best(self, core: Core, items: Sequence[Item]) -> Choice | None:
        asked = [item for item in items if item.key.startswith("driver")]
        if core.cuda is None:
            return Choice() if all(item.absent for item in asked) else None
        needed = self.needed(core, items)
        if not all(item.accepts(needed) for item in items if item.key == "driver_min"):
            return None
        known = needed, tuple((item.key, item.text, item.thing) for item in items)
        if known not in self.first:
            if len(self.first) > 20_000:
                self.first.clear()
            self.first[known] = self.find_first(needed, items)
        found = self.first[known]
        bare = any(item.only == "gpus" for item in items)
        return self.choice(core, found[0], needed, found[1], bare) if found else None

    def find_first(self, needed: str, items: Sequence[Item]) -> tuple[Candidate, list[Finding]] | None:
        """The first driver that is new enough and that no item refuses, with what there is to know about it."""
        for candidate in self.candidates(items):
            if version(candidate.version) < version(needed) or not self.module_exists(candidate):
                continue
            found = [finding for finding in (self.item_finding(item, candidate) for item in items) if finding]
            if not any(finding.refuses for finding in found):
                return candidate, found
        return None

    def choice(self, core: Core, candidate: Candidate, needed: str, found: list[Finding], bare: bool) -> Choice:
        """The driver with its reasons; a host without GPUs (`bare`) gets none, so its age is no news there."""
        row, toolkit = candidate.row, self.universe.toolkits[core.cuda or ""]
        least, module = least_driver(toolkit), candidate.module["module"]
        ptx = "" if needed == least else " to compile PTX for these GPUs; without that it would be " + least
        kind = {"LTSB": "a long-term branch", "PB": "a production branch"}.get(row["kind"], "the newest that fits")
        choice = Choice(
            {"driver_min": needed, "driver_branch": row["branch"], "driver_module": module},
            [
                Finding(
                    f"driver_min {needed}: CUDA {core.cuda} needs it{ptx}", sources(toolkit, core.line if ptx else None)
                ),
                Finding(
                    f"driver_branch {row['branch']}: {kind} that fits CUDA, the GPUs and the operating system",
                    sources(row),
                ),
                Finding(
                    f"driver_module {module}: the first kind that this branch and every GPU have",
                    sources(candidate.module),
                ),
            ],
            list(found),
        )
        if row["is_eol"] and not bare:
            choice.warnings.append(
                Finding(f"Driver branch {row['branch']} is past its end of life", sources(row), False)
            )
        if version(candidate.version) > version(row["latest_known"]):
            choice.warnings.append(
                Finding(
                    f"Driver {candidate.version} is newer than {row['latest_known']}, the newest that is known of its branch",
                    sources(row),
                    False,
                )
            )
        if not row["verified"]:
            choice.warnings.append(
                Finding(f"The data on driver branch {row['branch']} is not verified", sources(row), False)
            )
        return choice

    def facts(self, core: Core, items: Sequence[Item]) -> Iterator[Finding]:
        if core.cuda is None:
            yield Finding(f"{core.package} {core.version} is a CPU build and needs no driver", sources(core.release))
        elif self.without_cuda(items):
            needed = self.needed(core, items)
            yield Finding(
                f"TensorFlow {core.name} needs CUDA {core.cuda}, which needs driver {needed} or newer",
                sources(core.line, self.universe.toolkits[core.cuda]),
            )
        modules = any(item.key == "driver_module" for item in items)
        for item in items:
            yield self.item_fact(item, modules)

    def without_cuda(self, items: Sequence[Item]) -> bool:
        """Whether the items alone would leave a driver: then it is CUDA that refuses it."""
        for candidate in self.candidates(items):
            found = [self.item_finding(item, candidate) for item in items]
            if self.module_exists(candidate) and not any(finding and finding.refuses for finding in found):
                return True
        return False

    def item_fact(self, item: Item, modules: bool) -> Finding:
        if isinstance(item.thing, System):
            there = [row for row in self.branches if item.thing.key in row["rpm_for"]]
            ends = sorted(int(row["branch"]) for row in there)
            newest_row = max(there, key=lambda row: int(row["branch"])) if there else None
            span = f"{ends[0]} to {ends[-1]}" if ends else "no branch"
            return Finding(f"{item.label} has driver packages of branches {span}", sources(newest_row))
        if isinstance(item.thing, Gpu):
            arch = architecture(self.universe.compat, item.thing)
            fits = [
                row["branch"]
                for row in self.branches
                if not (
                    found := self.gpu_finding(
                        item.thing, Candidate(row, row["latest_known"], {"module": ""}), int(row["branch"])
                    )
                )
                or not found.refuses
            ]
            numbers = sorted(map(int, fits))
            text = f"{item.label} ({item.thing.architecture}) is driven by branches {numbers[0]} to {numbers[-1]}"
            only = self.only_open.get(item.thing.architecture)
            if not arch["open_kernel_module"]:
                text += ", by the proprietary kernel modules only" if modules else ""
            elif only:
                text += ", by the open kernel modules only"
            return Finding(text, sources(arch, only if modules else None))
        if item.key == "driver_module":
            module = next((row for row in self.modules if item.accepts(row["module"])), None)
            if module and module["module"] == "open":
                needs = f"needs driver branch {module['first_branch']} or newer and GPUs of Turing or newer"
            else:
                needs = f"needs driver branch {module['last_branch']} or older" if module else "was asked for"
            return Finding(f"{item.label} {needs}", sources(module))
        return Finding(f"{item.label} was asked for", self.branch_sources(item))

    def branch_sources(self, item: Item) -> tuple[str, ...]:
        """Where the data speaks of the branch that was asked for, or of its neighbour where there is none."""
        text = branch_of(item.specs[0].text.lstrip("<>=!~")) if item.specs else ""
        number = int(text) if text.isdigit() else 0
        return sources(min(self.branches, key=lambda row: abs(int(row["branch"]) - number)))


class Site:
    """Rules that no TensorFlow changes: one operating system, YARN's GPU scheduling, CDSW."""

    level = "site"

    def __init__(self, universe: Universe) -> None:
        self.universe = universe

    def classify(self, core: Core) -> Hashable:
        return None

    def refusals(self, items: Sequence[Item]) -> Iterator[Finding]:
        compat = self.universe.compat
        systems = [item for item in items if isinstance(item.thing, System)]
        gpus = [item for item in items if isinstance(item.thing, Gpu)]
        if len({item.thing.key for item in systems if isinstance(item.thing, System)}) > 1:
            yield Finding(
                f"A host runs one operating system, and {listed([item.label for item in systems])} were named", ()
            )
        if gpus and any(item.key == "gpu" and item.absent for item in items):
            yield Finding(
                f"{gpus[0].label} was named together with no GPU",
                gpus[0].thing.sources if isinstance(gpus[0].thing, Gpu) else (),
            )
        if any(item.key == "yarn_gpu" and item.flag for item in items):
            yield from self.yarn(items)
        if any(item.key == "cdsw" and item.text != "false" for item in items):
            if len(gpus) > 1:
                row = compat.fact("cdsw", "only CUDA-enabled")
                yield Finding(
                    f"CDSW needs the same make and model of GPU on all its hosts, and {listed([item.label for item in gpus])} were named",
                    tuple(row["source"]),
                )
            for item in systems:
                if isinstance(item.thing, System) and item.thing.key != "rhel7":
                    row = compat.fact("cdsw", "last RPM line")
                    yield Finding(
                        f"CDSW's packages are for RHEL 7 ({row['value']}), and the host runs {item.label}",
                        tuple(row["source"]),
                    )

    def yarn(self, items: Sequence[Item]) -> Iterator[Finding]:
        row = self.universe.compat.fact("hadoop", "YARN resource types")
        for item in items:
            hadoop = item.thing
            if isinstance(hadoop, Hadoop) and hadoop.hadoop and version(hadoop.hadoop) < version("3.1.0"):
                yield Finding(
                    f"YARN schedules GPUs from Hadoop 3.1.0 on, and {hadoop.label} is Hadoop {hadoop.hadoop}",
                    tuple(row["source"]) + hadoop.sources,
                    hadoop.verified,
                )
            elif isinstance(hadoop, Hadoop) and not hadoop.hadoop:
                yield Finding(
                    f"YARN schedules GPUs from Hadoop 3.1.0 on; which one {hadoop.label} has is not in the data",
                    hadoop.sources,
                    False,
                )
            if item.key == "yarn_gpu" and any(other.key == "yarn_gpu" and not other.flag for other in items):
                yield Finding("GPU scheduling was asked for and refused", tuple(row["source"]))

    def best(self, core: Core, items: Sequence[Item]) -> Choice | None:
        found = list(self.refusals(items))
        if any(finding.refuses for finding in found):
            return None
        choice = Choice(warnings=found)
        compat = self.universe.compat
        for item in items:
            hadoop = item.thing
            old = isinstance(hadoop, Hadoop) and hadoop.hadoop and version(hadoop.hadoop) < version("3.1.0")
            if isinstance(hadoop, Hadoop) and old and core.gpu and not any(other.only == "gpus" for other in items):
                choice.warnings.append(
                    Finding(
                        f"{hadoop.label} (Hadoop {hadoop.hadoop}) does not schedule GPUs: every job on a node sees all of them",
                        tuple(compat.fact("hadoop", "YARN resource types")["source"]) + hadoop.sources,
                        False,
                    )
                )
            if isinstance(hadoop, Hadoop) and not hadoop.verified:
                choice.warnings.append(Finding(f"The data on {hadoop.label} is not verified", hadoop.sources, False))
            if item.key == "cdsw" and item.text != "false":
                row = compat.fact("cdsw", "legacy engines need")
                choice.warnings.append(
                    Finding(
                        "A CDSW engine runs its own operating system, not the host's: the driver follows the host, TensorFlow and CUDA follow the engine image",
                        tuple(row["source"]),
                        False,
                    )
                )
        return choice

    def facts(self, core: Core, items: Sequence[Item]) -> Iterator[Finding]:
        yield from (finding for finding in self.refusals(items) if finding.refuses)
