"""The driver: its branch and kernel module, for CUDA, every GPU and the operating system."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from hadoop_dl.data.compat import Row
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.findings import Finding, against, sources, warning
from hadoop_dl.resolver.gpus import Gpu, architecture
from hadoop_dl.resolver.hosts import System
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.rules.driver_branches import BranchRows, branch_of, least_driver, newest_of
from hadoop_dl.resolver.rules.tensorflow import from_ptx, platform
from hadoop_dl.resolver.versions import cc, known, listed, version

FORWARD = "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html"
LISTED_FROM = 515  # the first branch whose supported GPUs NVIDIA lists by device (gpu_devices.yml)


def first_driver(gpu: Gpu) -> str:
    """The first release that knows one of its devices; empty if no list has it."""
    return min((device.least() or "" for device in gpu.devices if device.first_drivers), key=version, default="")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A branch at one version, with one kind of kernel module. `named`: it runs on the host, or was requested by its version."""

    row: Row
    version: str
    module: Row
    named: bool = False

    @property
    def branch(self) -> int:
        return int(self.row["branch"])


class Driver(Part):
    """Supported branches first, long-term before production before the rest; then the newest. One that runs comes first."""

    level = "driver"

    def __init__(self, catalog: BuildCatalog) -> None:
        self.catalog = catalog
        compat = catalog.compat
        self.rows = BranchRows(compat)
        self.branches, self.newest = self.rows.branches, self.rows.newest
        self.modules = sorted(compat.rows("drivers", "modules"), key=lambda row: row["module"] == "open")
        self.only_open = {
            row["architecture"]: row for row in compat.rows("drivers", "architectures_without_proprietary_module")
        }

    def classify(self, build: TensorflowBuild) -> Hashable:
        return build.name, build.source, build.cuda

    # --- how new it must be ------------------------------------------------------------------------------------------

    def floors(
        self, build: TensorflowBuild, items: Sequence[Item], every: bool = True
    ) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Each lower limit with its reason: CUDA, PTX that the driver must compile, every GPU.

        every: a name may mean several cards, and the driver must know all of them; else it must know one.
        """
        toolkit = self.catalog.toolkits[build.cuda or ""]
        own = least_driver(toolkit)
        yield own, f"CUDA {build.cuda} needs it", sources(toolkit)
        for gpu in (item.subject for item in items):
            if not isinstance(gpu, Gpu):
                continue
            if not build.from_source and from_ptx(build.line, gpu):
                why = f"CUDA {build.cuda} needs it to compile PTX for {gpu.name}; without that it would be {own}"
                yield str(toolkit["bundled_driver"]), why, sources(toolkit, build.line)
            arch = architecture(self.catalog.compat, gpu.cc)
            if arch["first_driver_branch"]:
                yield str(arch["first_driver_branch"]), f"the first branch for {gpu.architecture}", sources(arch)
            least = gpu.least_driver if every else gpu.first_driver
            if least:
                prefix = "every " if len({device.least() for device in gpu.devices}) > 1 else ""
                yield least, f"the first that knows {prefix}{gpu.name}", gpu.sources

    def needed(self, build: TensorflowBuild, items: Sequence[Item], every: bool = True) -> str:
        return max((floor for floor, _, _ in self.floors(build, items, every)), key=version)

    # --- which there are -----------------------------------------------------------------------------------------------

    def candidates(self, items: Sequence[Item]) -> Iterator[Candidate]:
        """The driver that runs on the host, then each branch at the versions that were asked for and at its newest."""
        running = [
            item.subject.driver for item in items if isinstance(item.subject, HostProfile) and item.subject.driver
        ]
        exact = [
            spec.text
            for item in items
            if item.key in ("driver", "driver_branch")
            for spec in item.specs
            if spec.kind == "prefix" and known(spec.text) and ("." in spec.text or self.rows.is_newer(spec.text))
        ]
        for text in [*running, *exact]:
            row = self.rows.of(text)
            yield from (Candidate(row, text, module, "." in text) for module in self.modules if row)
        system = next((item.subject.key for item in items if isinstance(item.subject, System)), "")
        for row in self.branches:
            yield from (Candidate(row, newest_of(row, system), module) for module in self.modules)

    def module_exists(self, candidate: Candidate) -> bool:
        first, last = candidate.module["first_branch"], candidate.module["last_branch"]
        return (not first or candidate.branch >= int(first)) and (not last or candidate.branch <= int(last))

    # --- whether an item wants one ---------------------------------------------------------------------------------------

    def item_findings(self, item: Item, candidate: Candidate) -> Iterator[Finding]:
        """Why this item refuses this driver, or warnings about the two."""
        own = {
            "driver": candidate.version,
            "driver_branch": candidate.row["branch"],
            "driver_module": candidate.module["module"],
        }
        if item.key in own and not item.accepts(own[item.key]):
            yield Finding(f"{item.label} was requested", ())
        if isinstance(item.subject, System) and item.subject.key.startswith("rhel"):
            findings = self.system_findings(item.subject, candidate)
            # A driver that runs, or that was named as one that does, need not have come from packages.
            yield from (warning(finding.text, finding.sources) for finding in findings) if candidate.named else findings
        if isinstance(item.subject, Gpu):
            yield from self.gpu_findings(item.subject, candidate)

    def system_findings(self, system: System, candidate: Candidate) -> Iterator[Finding]:
        row, own = candidate.row, platform(self.catalog, system)
        if candidate.module["module"] == "open" and system.key == "rhel7":
            yield Finding(f"{system.label} has no packages of the open modules", sources(candidate.module))
        last = own.get("driver_rpm_max")
        if last and candidate.branch > int(last):
            yield Finding(
                f"branch {row['branch']} has no packages for {system.label}, the last is {last}", sources(own, row)
            )
        elif not row["releases"]:
            yield warning(
                f"Whether branch {row['branch']} has packages for {system.label} is not checked", sources(row)
            )
        elif system.key not in row["releases"]:
            yield against(f"branch {row['branch']} has no packages for {system.label}", sources(row), row["verified"])

    def gpu_findings(self, gpu: Gpu, candidate: Candidate) -> Iterator[Finding]:
        row, arch, number = candidate.row, architecture(self.catalog.compat, gpu.cc), candidate.branch
        module = candidate.module["module"]
        if cc(row["min_cc"]) > gpu.capability:
            yield against(f"branch {row['branch']} has no code for {gpu.name}", sources(row), row["verified"])
        if arch["last_driver_branch"] and number > int(arch["last_driver_branch"]):
            yield Finding(f"{gpu.name} needs branch {arch['last_driver_branch']} or older", sources(arch))
        if arch["first_driver_branch"] and number < int(arch["first_driver_branch"]):
            yield Finding(f"{gpu.name} needs branch {arch['first_driver_branch']} or newer", sources(arch))
        if module == "open" and not arch["open_kernel_module"]:
            yield Finding(f"{gpu.name} is not driven by the open modules", sources(arch))
        if module == "proprietary" and gpu.architecture in self.only_open:
            yield Finding(f"{gpu.name} needs the open modules", sources(self.only_open[gpu.architecture]))
        if gpu.virtual and not candidate.named:
            note = f"{gpu.virtual} is a virtual GPU: it requires the guest driver of its hypervisor's vGPU release, and a licence"
            yield warning(note, ("https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide/index.html",))
        yield from self.device_findings(gpu, candidate)

    def device_findings(self, gpu: Gpu, candidate: Candidate) -> Iterator[Finding]:
        """What NVIDIA's lists of supported devices say; they begin with branch 515. Of older ones there are the first drivers of some."""
        late = [device for device in gpu.devices if device.first_drivers]
        unknown = [device for device in late if not device.known_by(candidate.version)]
        if (
            candidate.branch
            < LISTED_FROM
            <= min((int(branch_of(device.least() or "0")) for device in late), default=LISTED_FROM)
        ):
            if late and gpu.capability >= (7, 5):
                note = f"NVIDIA's lists name {gpu.name} from driver {late[0].least()} on and do not cover branch {candidate.branch}"
                yield warning(f"{note}: that it works there is not checked", gpu.sources)
        elif unknown and len(unknown) == len(gpu.devices):
            first = min((device.least() or "0" for device in unknown), key=version)
            reason = (
                f"is in no list of branch {candidate.branch}"
                if candidate.branch > int(branch_of(first))
                else f"needs driver {first} or newer"
            )
            yield Finding(f"{gpu.name} {reason} (driver {candidate.version})", gpu.sources)
        elif unknown:
            drives = listed(dict.fromkeys(device.name for device in gpu.devices if device not in unknown))
            late_ones = listed(dict.fromkeys(f"{device.name} ({device.least()})" for device in unknown))
            note = f"Driver {candidate.version} drives {drives}, but not {late_ones}"
            yield warning(f"{note}. Which is it? Give --gpu the name that nvidia-smi prints", gpu.sources)

    # --- the choice --------------------------------------------------------------------------------------------------------

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        if build.cuda is None:
            return Choice() if all(item.absent for item in items if item.key.startswith("driver")) else None
        pair = self.find(build, items)
        return self.choice(build, pair[0], items, pair[1]) if pair else None

    def find(self, build: TensorflowBuild, items: Sequence[Item]) -> tuple[Candidate, list[Finding]] | None:
        """The first driver that is new enough and that no item refuses, and what there is to know about it; one without doubts before
        one with. What to install must be new enough for every card that a name may mean. One that runs or was named must be for one of
        them, and a warning tells the rest.
        """
        needed, least = self.needed(build, items), self.needed(build, items, every=False)
        if not all(item.accepts(needed) for item in items if item.key == "driver_min"):
            return None
        doubtful = None
        for candidate in self.candidates(items):
            floor = least if candidate.named else needed
            if version(candidate.version) < version(floor) and not self.newer_branch(candidate, needed):
                continue
            if not self.module_exists(candidate):
                continue
            findings = [finding for item in items for finding in self.item_findings(item, candidate)]
            if any(finding.refuses for finding in findings):
                continue
            if not any(finding.doubt for finding in findings):
                return candidate, findings
            doubtful = doubtful or (candidate, findings)
        return doubtful

    def newer_branch(self, candidate: Candidate, needed: str) -> bool:
        """Whether a branch newer than the data was requested without a release: 615 stands for any of its releases."""
        return "." not in candidate.version and candidate.branch > int(branch_of(needed))

    def choice(
        self, build: TensorflowBuild, candidate: Candidate, items: Sequence[Item], findings: list[Finding]
    ) -> Choice:
        """The driver with its reasons; a host without GPUs gets none, so there is no warning about its age there."""
        row, module = candidate.row, candidate.module["module"]
        lowest, why, urls = max(self.floors(build, items), key=lambda floor: version(floor[0]))
        bare = any(item.host_fact == "gpus" for item in items)
        running = next(
            (item.subject.driver for item in items if isinstance(item.subject, HostProfile) and item.subject.driver),
            None,
        )
        kind = {"LTSB": "a long-term branch", "PB": "a production branch"}.get(row["kind"], "the newest that fits")
        if running == candidate.version:
            kind = "runs on the host"
        choice = Choice(
            {"driver_min": lowest, "driver_branch": row["branch"], "driver_module": module},
            [
                Finding(f"driver_min {lowest}: {why}", urls),
                Finding(
                    f"driver_branch {row['branch']}: {kind} that fits CUDA, the GPUs and the operating system"
                    if running != candidate.version
                    else f"driver_branch {row['branch']}: driver {running} {kind}",
                    sources(row),
                ),
                Finding(
                    f"driver_module {module}: the first kind that this branch and every GPU have",
                    sources(candidate.module),
                ),
            ],
            list(findings),
        )
        choice.warnings += [] if bare else self.age(candidate)
        if running and version(running) < version(lowest):
            note = f"Driver {running} runs on the host, but {lowest} or newer is needed: set nvidia_driver_version"
            choice.warnings.append(warning(note, urls))
        return choice

    def age(self, candidate: Candidate) -> list[Finding]:
        """Warnings about a branch past its end of life, and about a driver that is newer than the data."""
        row, warnings = candidate.row, []
        if self.rows.is_newer(row["branch"]):
            data_state = f"{self.newest['branch']}, of {self.catalog.compat.subjects['drivers']['checked']}"
            note = f"Driver {candidate.version} is newer than this data ({data_state}): it runs every older CUDA"
            return [warning(f"{note}, but whether it supports the GPUs is not checked", sources(self.newest))]
        if "taken_for" in row:
            note = f"Driver {candidate.version} is of branch {row['branch']}, which is not in this data"
            return [warning(f"{note}: it was judged as one of branch {row['taken_for']}", sources(row))]
        if row["is_eol"]:
            warnings.append(warning(f"Driver branch {row['branch']} is past its end of life", sources(row)))
        if version(candidate.version) > version(newest_of(row)):
            note = f"Driver {candidate.version} is newer than {row['latest_known']}, the newest that is known of its branch"
            warnings.append(warning(note, sources(row)))
        if not row["verified"]:
            warnings.append(warning(f"The data on driver branch {row['branch']} is not verified", sources(row)))
        return warnings

    # --- why there is none ---------------------------------------------------------------------------------------------

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        if build.cuda is None:
            yield Finding(f"{build.package} {build.version} is a CPU build and needs no driver", sources(build.release))
        elif self.without_cuda(items):
            lowest, why, urls = max(self.floors(build, items), key=lambda floor: version(floor[0]))
            if why == f"CUDA {build.cuda} needs it":
                compat = f"cuda-compat-{build.cuda.replace('.', '-')}"  # NVIDIA has it from CUDA 10.0 on
                why = f"{compat}, NVIDIA's forward compatibility, is not used" * (version(build.cuda).major > 9)
                urls = (*urls, FORWARD)
            because = f" ({why})" if why else ""
            yield Finding(
                f"TensorFlow {build.name} needs CUDA {build.cuda}, which needs driver {lowest} or newer{because}",
                (*sources(build.line), *urls),
            )
        modules = any(item.key == "driver_module" for item in items)
        for item in items:
            if item.key != "host":
                yield self.item_fact(item, items, modules)

    def without_cuda(self, items: Sequence[Item]) -> bool:
        """Whether some driver meets the items without CUDA: then CUDA refuses it."""
        for candidate in self.candidates(items):
            findings = (finding for item in items for finding in self.item_findings(item, candidate))
            if self.module_exists(candidate) and not any(finding.refuses for finding in findings):
                return True
        return False

    def item_fact(self, item: Item, items: Sequence[Item], modules: bool) -> Finding:
        if isinstance(item.subject, System):
            rows = [row for row in self.branches if item.subject.key in row["releases"]]
            branches = sorted(int(row["branch"]) for row in rows)
            newest_row = max(rows, key=lambda row: int(row["branch"])) if rows else None
            span = f"{branches[0]} to {branches[-1]}" if branches else "no branch"
            gpus = [item.subject for item in items if isinstance(item.subject, Gpu)]
            if newest_row and any(branch_of(first_driver(gpu)) == newest_row["branch"] for gpu in gpus):
                span += f" (up to {newest_of(newest_row, item.subject.key)})"
            only = ", of the proprietary modules alone" if modules and item.subject.key == "rhel7" else ""
            return Finding(f"{item.label} has driver packages of branches {span}{only}", sources(newest_row))
        if isinstance(item.subject, Gpu):
            return self.gpu_fact(item.subject, item.label, items, modules)
        if item.key == "driver_module":
            module = next((row for row in self.modules if item.accepts(row["module"])), None)
            if module and module["module"] == "open":
                needs = f"needs driver branch {module['first_branch']} or newer and GPUs of Turing or newer"
            else:
                needs = f"needs driver branch {module['last_branch']} or older" if module else "was requested"
            return Finding(f"{item.label} {needs}", sources(module))
        if item.key == "driver" and any(other_item.key == "driver_branch" for other_item in items):
            for spec in item.specs:
                if spec.kind == "prefix" and known(spec.text):
                    return Finding(f"{item.label} is of branch {branch_of(spec.text)}", self.branch_sources(item))
        return Finding(f"{item.label} was requested", self.branch_sources(item))

    def exact(self, items: Sequence[Item]) -> Iterator[str]:
        for item in items:
            if item.key == "driver":
                yield from (
                    spec.text for spec in item.specs if spec.kind == "prefix" and "." in spec.text and known(spec.text)
                )

    def gpu_fact(self, gpu: Gpu, label: str, items: Sequence[Item], modules: bool) -> Finding:
        """The branches that support it, or the driver that does not support this device."""
        arch = architecture(self.catalog.compat, gpu.cc)
        neutral = {"module": ""}
        for text in self.exact(items):
            row = next((row for row in self.branches if row["branch"] == branch_of(text)), None)
            findings = self.device_findings(gpu, Candidate(row, text, neutral)) if row else ()
            for finding in findings:
                if finding.refuses:  # the request's driver has a sentence of its own
                    return Finding(finding.text.removesuffix(f" (driver {text})"), finding.sources)
        fits = [
            int(row["branch"])
            for row in self.branches
            if not any(finding.refuses for finding in self.gpu_findings(gpu, Candidate(row, newest_of(row), neutral)))
        ]
        first = first_driver(gpu)
        packaged = any(isinstance(item.subject, System) for item in items)
        since = f" (from {first})" if packaged and branch_of(first) == str(min(fits)) else ""
        text = f"{label} ({gpu.architecture}) is driven by branches {min(fits)}{since} to {max(fits)}"
        only = self.only_open.get(gpu.architecture)
        if not arch["open_kernel_module"]:
            text += ", by the proprietary kernel modules only" if modules else ""
        elif only:
            text += ", by the open kernel modules only"
        return Finding(text, sources(arch, only if modules else None) or gpu.sources)

    def branch_sources(self, item: Item) -> tuple[str, ...]:
        """Where the data speaks of the branch that was requested, or of its neighbour if there is none."""
        text = branch_of(item.specs[0].text.lstrip("<>=!~")) if item.specs else ""
        number = int(text) if text.isdecimal() else 0
        return sources(min(self.branches, key=lambda row: abs(int(row["branch"]) - number)))
