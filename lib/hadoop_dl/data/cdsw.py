"""Requirements of Cloudera Data Science Workbench's releases for GPUs: rows of compat/cdsw.yml as objects."""

from dataclasses import dataclass
from functools import cache

from hadoop_dl.data import compat
from hadoop_dl.data.stacks import Stack
from hadoop_dl.data.versions import numbers

WHERE = {"rpm": "cdsw.conf", "parcel": "Cloudera Manager"}  # where an installation of this kind has its settings


@dataclass(frozen=True)
class Support:
    """How sessions of these releases get GPUs; driver_path has the placeholder {driver}."""

    first: str
    before: str | None
    runtime: str | None
    driver_path: str | None
    library: str | None
    mig: bool | None


@dataclass(frozen=True)
class Engine:
    """A base engine image of Cloudera's; None if no source names a value."""

    engine: str
    cdsw: str | None
    ubuntu: str | None
    glibc: str | None
    pythons: tuple[str, ...] | None

    def problem(self, stack: Stack, python: str) -> str:
        """Why the stack does not fit this engine; empty if no known reason exists."""
        if problem := wheel_problem(stack, python):
            return problem
        record, oldest = stack.record(python), stack.version("glibc_min")
        symbol = record.provenance["symbols"].get("GLIBC") if record else None
        if self.glibc and symbol and numbers(self.glibc) < numbers(symbol):
            return f"The wheel of TensorFlow in {stack.name} requires GLIBC_{symbol}, but engine {self.engine} has glibc {self.glibc}."
        if self.pythons is not None and python not in self.pythons:
            return f"Engine {self.engine} has Python {' and '.join(self.pythons)}, but {stack.name} requires Python {python}."
        if self.glibc and oldest and numbers(self.glibc) < numbers(oldest):
            return (
                f"Engine {self.engine} is Ubuntu {self.ubuntu} with glibc {self.glibc}, "
                f"but {stack.name} requires glibc {oldest} or later."
            )
        return ""


def engines() -> list[Engine]:
    """Every base engine, the newest first."""
    rows = compat.load().rows("cdsw", "engines")
    return [
        Engine(
            row["engine"], row["cdsw"], row["ubuntu"], row["glibc"], tuple(row["pythons"]) if row["pythons"] else None
        )
        for row in rows
    ]


def session_problem(stack: Stack, python: str) -> str:
    """Why no base engine can run the stack, as the newest one's reason; empty if one can."""
    problems = [engine.problem(stack, python) for engine in engines()]
    return problems[0] if all(problems) else ""


def wheel_problem(stack: Stack, python: str) -> str:
    """Why no session can use the TensorFlow that the site builds for the stack; empty if it can, or if TensorFlow is prebuilt."""
    if not stack.is_built:
        return ""
    name, record = f"the wheel of TensorFlow {stack.data['tensorflow']}", stack.record(python)
    if record is None:
        return f"{stack.name} requires {name} that this site builds, but none is recorded. For CDSW choose a prebuilt stack: scripts/stack list"
    system = record.provenance["os"]
    if str(system["short"]).startswith("ubuntu"):
        return ""
    return (
        f"{stack.name} has {name} that was built on {system['name']}, but engines of CDSW run Ubuntu, and a wheel runs only on the system that it was built for. "
        "For CDSW choose a prebuilt stack: scripts/stack list"
    )


def session_words(count: int | None) -> str:
    """The sessions that a restart ends, for messages. count: of the sessions; None if they could not be counted."""
    if count is None:
        return "its sessions could not be counted; a restart ends them"
    if count == 0:
        return "no session runs"
    return f"{count} session{'s run' if count > 1 else ' runs'}; a restart ends {'them' if count > 1 else 'it'}"


def within(release: str, first: str, before: str | None) -> bool:
    return numbers(first) <= numbers(release) and (before is None or numbers(release) < numbers(before))


@cache
def support(release: str) -> Support | None:
    """None for a release without GPUs, such as 1.0."""
    for row in compat.load().rows("cdsw", "gpu_support"):
        if within(release, row["first"], row["before"]):
            return Support(**{name: row[name] for name in Support.__dataclass_fields__})
    return None


def driver_path(release: str, driver: str) -> str:
    """The driver's directory that CDSW's settings must name; empty if it needs none."""
    release_support = support(release)
    return release_support.driver_path.format(driver=driver) if release_support and release_support.driver_path else ""


def settings(kind: str, release: str, driver: str) -> dict[str, str]:
    """The switches of this release, by the names of cdsw.conf (rpm) or of Cloudera Manager (parcel)."""
    values = {"true": "true", "driver_path": driver_path(release, driver)}
    return {
        row["name"]: values[row["value"]]
        for row in compat.load().rows("cdsw", "settings")
        if row["where"] == WHERE[kind] and within(release, row["first"], row["before"])
    }
