"""Rules between a TensorFlow build and its environment: the operating system, each GPU, each fact of the host."""

from collections.abc import Iterable, Iterator

from hadoop_dl.data.compat import Row
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild, python_of
from hadoop_dl.resolver.findings import Finding, against, sources, warning
from hadoop_dl.resolver.gpus import Gpu, architecture
from hadoop_dl.resolver.hosts import System
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.versions import cc, listed, version

# Major compute capabilities, one entry for each generation of machine code. 10 and 12 are both Blackwell.
GENERATIONS = {2: 0, 3: 1, 5: 2, 6: 3, 7: 4, 8: 5, 9: 6, 10: 7, 11: 7, 12: 7}


def build_findings(catalog: BuildCatalog, item: Item, build: TensorflowBuild) -> Iterator[Finding]:
    """Everything that an environment item (os, gpu, host) contributes about a build."""
    subject = item.subject
    if isinstance(subject, System):
        yield from wheel_on_system(catalog, subject, build)
        yield from cuda_on_system(catalog, subject, build)
        if not item.host_fact:  # On a host that was read, its own Pythons count.
            yield from python_on_system(catalog, subject, build)
    elif isinstance(subject, Gpu):
        yield from code_for_gpu(catalog, subject, build)
    elif item.key == "gpu" and item.absent and build.gpu:
        yield Finding("A build of TensorFlow for CUDA is for hosts with GPUs", sources(build.release))
    elif isinstance(subject, HostProfile):
        yield from host_findings(catalog, subject, item.host_fact, build)


def platform(catalog: BuildCatalog, system: System) -> Row:
    if system.other:
        return {"os": "other", "glibc": system.other[0], "verified": True, "source": ()}
    row = next(row for row in catalog.compat.rows("platforms", "systems") if row["os"] == system.key)
    older, release = row.get("older"), version(system.release)
    if older and len(release.release) > 1 and release < version(older["before"]):
        return {**row, "glibc": older["glibc"]}
    return row


def release_row(catalog: BuildCatalog, system: System) -> Row:
    if system.other:
        pythons = [{"python": python, "since": None} for python in system.other[1]]
        return {"os": "other", "pythons": pythons, "verified": True, "source": ()}
    return next(row for row in catalog.compat.rows("platforms", "releases") if row["os"] == system.key)


def system_pythons(catalog: BuildCatalog, system: System) -> list[str]:
    """The vendor's Pythons for this minor release, oldest first; for all minor releases if none is named."""
    system_version = version(system.release)
    return sorted(
        (
            entry["python"]
            for entry in release_row(catalog, system)["pythons"]
            if not entry["since"] or len(system_version.release) < 2 or version(entry["since"]) <= system_version
        ),
        key=version,
    )


def wheel_on_system(catalog: BuildCatalog, system: System, build: TensorflowBuild) -> Iterator[Finding]:
    row, release = platform(catalog, system), release_row(catalog, system)
    if not (row["verified"] and release["verified"]):
        yield warning(
            f"The data on {system.label} (glibc {row['glibc']}, its Pythons) is not verified", sources(row, release)
        )
    glibc_min = build.glibc_min or build.line["wheel_min_glibc"]
    if version(glibc_min) > version(row["glibc"]):
        python = f" for Python {build.python}" if build.abi_glibc else ""
        text = f"The wheels of TensorFlow {build.version}{python} need glibc {glibc_min}"
        if build.from_source:
            text = f"A build of TensorFlow {build.name} against glibc older than {glibc_min} was not seen"
        yield against(
            f"{text}, but {system.label} has {row['glibc']}", sources(build.release, build.line, row), row["verified"]
        )


def cuda_on_system(catalog: BuildCatalog, system: System, build: TensorflowBuild) -> Iterator[Finding]:
    """A wheel whose CUDA pip can bring needs no packages of the operating system."""
    row = next((row for row in catalog.compat.rows("cuda", "os_support") if row["os"] == system.key), None)
    if build.cuda is None:
        return
    if row is None:
        if not build.pip_cuda:
            yield warning(f"That NVIDIA packages CUDA {build.cuda} for {system.label} is not verified")
        return
    note = f"NVIDIA packages CUDA {row['first']} to {row['last']} for {system.label}"
    if version(row["first"]) <= version(build.cuda) <= version(row["last"]):
        if not row["verified"] and not build.pip_cuda:
            yield warning(f"That NVIDIA packages CUDA {build.cuda} for {system.label} is not verified", sources(row))
    elif build.pip_cuda:
        yield warning(
            f"{note}, but TensorFlow {build.name} needs CUDA {build.cuda}: take it from pip, as tensorflow[and-cuda]",
            sources(row, build.line),
        )
    else:
        is_known_to_fail = row["verified"] and version(build.cuda) > version(row["last"])
        text = f"TensorFlow {build.name} needs CUDA {build.cuda}, but {note}"
        if version(build.cuda) < version(row["first"]):
            text += ": its packages for an older system, or its runfile, were not tried there"
        yield against(text, sources(build.line, row), is_known_to_fail)


def python_on_system(catalog: BuildCatalog, system: System, build: TensorflowBuild) -> Iterator[Finding]:
    """A site may install any Python: one that the vendor does not package is a warning only."""
    row, pythons = release_row(catalog, system), system_pythons(catalog, system)
    if build.python not in pythons:
        yield warning(
            f"{system.label[0].upper()}{system.label[1:]} has Python {listed(pythons)}: install Python {build.python} on the hosts from elsewhere",
            sources(row),
        )


def code_for_gpu(catalog: BuildCatalog, gpu: Gpu, build: TensorflowBuild) -> Iterator[Finding]:
    """README of the data, "Deciding whether a GPU fits", 3 and 4, and "Deciding about PTX"."""
    if build.cuda is None:
        form = "is built without CUDA" if build.from_source else "is a CPU build"
        yield Finding(f"{build.package} {build.version} {form} and does not use {gpu.name}", sources(build.release))
        return
    if gpu.unlisted:
        yield warning(
            f"Of {gpu.name} only the compute capability is known: which driver is the first that knows it is not checked"
        )
    if gpu.arm:
        note = f"{gpu.name} is part of an Arm host, but all data is for x86_64"
        yield Finding(note, sources(build.release))
    yield from (built_code if build.from_source else wheel_code)(catalog, build, build.cuda, gpu)


def native(line: Row, gpu: Gpu) -> bool:
    """Whether the wheel holds machine code that this GPU runs: the same major capability, and no newer minor."""
    major, minor = gpu.capability
    return any(cc(entry)[0] == major and cc(entry)[1] <= minor for entry in line["wheel_sm"])


def from_ptx(line: Row, gpu: Gpu) -> str | None:
    """The newest PTX in the wheel that the driver can compile for this GPU; None if it needs none or has none."""
    if native(line, gpu):
        return None
    usable = [entry for entry in line["wheel_ptx"] if cc(entry) <= gpu.capability]
    return max(usable, key=cc) if usable else None


def named(gpu: Gpu) -> str:
    return gpu.name if gpu.cc in gpu.name else f"{gpu.name} (compute capability {gpu.cc})"


def built_code(catalog: BuildCatalog, build: TensorflowBuild, cuda: str, gpu: Gpu) -> Iterator[Finding]:
    toolkit = catalog.toolkits[cuda]
    least, most = toolkit["nvcc_min_cc"], toolkit["nvcc_max_cc"]
    if not cc(least) <= gpu.capability <= cc(most):
        yield Finding(
            f"TensorFlow {build.name} is built with CUDA {cuda}; CUDA {cuda} makes code for capabilities {least} to {most}, "
            f"none for {named(gpu)}",
            sources(build.line, toolkit, architecture(catalog.compat, gpu.cc)),
        )


def wheel_code(catalog: BuildCatalog, build: TensorflowBuild, cuda: str, gpu: Gpu) -> Iterator[Finding]:
    line, toolkit = build.line, catalog.toolkits[cuda]
    urls = sources(line, toolkit, architecture(catalog.compat, gpu.cc))
    low, top = min(line["wheel_sm"], key=cc), max(line["wheel_sm"], key=cc)
    needs, generated = f"TensorFlow {build.name} needs CUDA {cuda}", str(line.get("generated_ptx", ""))
    ptx = from_ptx(line, gpu)
    if native(line, gpu):
        if gpu.capability > cc(toolkit["nvcc_max_cc"]):
            yield warning(
                f"CUDA {cuda} of TensorFlow {build.name} is older than {named(gpu)}: its code runs, untuned", urls
            )
    elif ptx is None:
        yield Finding(f"{needs}, and its wheel has code for capabilities {low} to {top}, none for {named(gpu)}", urls)
    elif gpu.capability > catalog.toolkit_max_cc(build):
        yield Finding(f"{needs}; CUDA {cuda} has no code for {named(gpu)}", urls)
    elif GENERATIONS[gpu.capability[0]] - GENERATIONS[cc(ptx)[0]] > 1:
        yield Finding(
            f"{needs}, and its wheel has code up to capability {top}, which is too old for {named(gpu)}", urls
        )
    elif generated.endswith("a"):
        # PTX of an "a" target runs on exactly that capability: CUDA_ERROR_INVALID_PTX on every newer GPU.
        yield Finding(
            f"The wheel of TensorFlow {build.name} has its generated kernels as PTX for sm_{generated.replace('.', '')} only, "
            f"which does not run on {named(gpu)}",
            tuple(line["source"][-3:]),
        )
    else:
        yield warning(
            f"The wheel of TensorFlow {build.version} has no machine code for {named(gpu)}: the driver compiles it from PTX {ptx} "
            f"when it is first used, which takes long (docs/train/jobs.md) and needs driver {toolkit['bundled_driver']} or newer",
            urls,
        )
        if generated:
            yield warning(
                f"XLA of TensorFlow {build.name} does not support {named(gpu)}: set jit_compile=False in Keras. "
                "That everything else works there is not verified",
                tuple(line["source"][-1:]),
            )


def cpu_features(catalog: BuildCatalog, build: TensorflowBuild) -> tuple[tuple[str, ...], Row | None]:
    """The CPU features that this wheel requires; a source build is made for the CPU that it runs on."""
    if build.from_source:
        return (), None
    for row in catalog.compat.rows("tensorflow", "cpu_features"):
        last = row["last"]
        if version(row["first"]) <= version(build.name) and (last is None or version(build.name) <= version(last)):
            return tuple(row["features"]), row
    return (), None


def loading_findings(
    catalog: BuildCatalog, build: TensorflowBuild, features: Iterable[str], items: Iterable[Item]
) -> Iterator[Finding]:
    """What a program must do before it can use these features of the wheel on these hosts; a read host knows its own glibc."""
    subjects = [item.subject for item in items]
    glibc_by_place = {
        f"glibc {subject.glibc}": subject.glibc
        for subject in subjects
        if isinstance(subject, HostProfile) and subject.glibc
    }
    if not glibc_by_place:
        rows = [(subject.label, platform(catalog, subject)) for subject in subjects if isinstance(subject, System)]
        glibc_by_place = {f"{label} with its glibc {row['glibc']}": row["glibc"] for label, row in rows}
    for row in catalog.compat.rows("tensorflow", "loading"):
        covers_line = version(row["first"]) <= version(build.name) <= version(row["last"])
        if build.from_source or row["feature"] not in features or not covers_line:
            continue
        for place, glibc in glibc_by_place.items():
            if version(glibc) >= version(row["glibc"]):
                yield warning(f"On {place}, {row['what']}. What to do: {row['do']}", sources(row))


def host_findings(catalog: BuildCatalog, host: HostProfile, fact: str, build: TensorflowBuild) -> Iterator[Finding]:
    """Builds that a host that was read cannot run."""
    if fact == "python" and build.python not in (host.pythons or ()):
        own = listed(host.pythons or ()) or "none"
        runs = listed(
            sorted({python_of(abi) for wheel in build.release["wheels"] for abi in wheel["abis"]}, key=version)
        )
        yield Finding(
            f"TensorFlow {build.version} runs on Python {runs}, but the host has Python {own}", sources(build.release)
        )
    if fact == "glibc" and build.glibc_min and version(build.glibc_min) > version(host.glibc or "0"):
        yield Finding(
            f"The wheels of TensorFlow {build.version} need glibc {build.glibc_min}, but the host has {host.glibc}",
            sources(build.release, build.line),
        )
    if fact == "cpu":
        required_features, row = cpu_features(catalog, build)
        missing = [feature for feature in required_features if feature not in (host.cpu_features or ())]
        if missing:
            yield Finding(
                f"The wheels of TensorFlow {build.version} need a CPU with {listed(missing)}, but this host's does not show it: "
                "build from source for it",
                sources(row),
            )
    if fact == "architecture" and not build.from_source:
        yield Finding(
            f"The wheels of TensorFlow {build.version} in the data are for x86_64, but the host is {host.architecture}",
            sources(build.release),
        )
