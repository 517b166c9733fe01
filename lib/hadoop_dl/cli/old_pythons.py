"""Versions that fit together, by resolvelib, if one has no wheel: uv does not take source distributions that have a recipe."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, ResolutionTooDeep, Resolver

from hadoop_dl.data.locks import StackError, canonicalize_name

PYTHONS = ("2.7", "3.4", "3.5", "3.6", "3.7")  # gast 0.2.2, which 1.15 to 2.1 require, has no wheel; uv ends at 3.6
LINES = ("2.4", "2.5", "2.6")  # of TensorFlow: they require termcolor 1.1 and wrapt 1.12, which have none either
ROUNDS = 2000


@dataclass(frozen=True)
class Index:
    """The files of a project that the Python can use, and what one of them requires. `versions` is the newest first."""

    versions: Callable[[str], Sequence[tuple[str, str]]]  # project -> (version, requires-python)
    requires: Callable[[str, str], Sequence[Requirement]]  # project, version -> requirements
    needed: Callable[[Requirement], bool]  # whether its marker holds


@dataclass(frozen=True)
class Need:
    requirement: Requirement
    of: str  # project and version, or the stack's file


def needs_recipes(tensorflow: str, python: str) -> bool:
    return python in PYTHONS or tensorflow.rpartition(".")[0] in LINES


class Provider(AbstractProvider):  # type: ignore[type-arg]
    def __init__(self, index: Index, python: str) -> None:
        self.index, self.python = index, python

    def identify(self, requirement_or_candidate: Need | tuple[str, str]) -> str:
        entry = requirement_or_candidate
        return str(canonicalize_name(entry.requirement.name)) if isinstance(entry, Need) else entry[0]

    def get_preference(
        self, identifier: str, resolutions: Any, candidates: Any, information: Any, backtrack_causes: Any
    ) -> tuple[bool, bool, str]:
        causes = {self.identify(cause.requirement) for cause in backtrack_causes}
        pinned = any("==" in str(info.requirement.requirement.specifier) for info in information[identifier])
        return (not pinned, identifier not in causes, identifier)

    def find_matches(
        self, identifier: str, requirements: Mapping[str, Iterator[Need]], incompatibilities: Mapping[str, Any]
    ) -> list[tuple[str, str]]:
        needs, refused = list(requirements[identifier]), {version for _, version in incompatibilities[identifier]}
        return [
            (identifier, version)
            for version, requires_python in self.index.versions(identifier)
            if version not in refused
            and runs_on(requires_python, self.python)
            and all(self.is_satisfied_by(need, (identifier, version)) for need in needs)
        ]

    def is_satisfied_by(self, requirement: Need, candidate: tuple[str, str]) -> bool:
        specifier = requirement.requirement.specifier
        return bool(specifier.contains(candidate[1], prereleases=bool(specifier.prereleases)))

    def get_dependencies(self, candidate: tuple[str, str]) -> list[Need]:
        requires = self.index.requires(*candidate)
        return [Need(entry, " ".join(candidate)) for entry in requires if self.index.needed(entry)]


def resolve(requirements: Iterable[str], python: str, index: Index) -> dict[str, str]:
    """Project -> version. StackError names the requirements that contradict each other."""
    needs = [Need(Requirement(text), "the stack's file") for text in requirements]
    try:
        resolver: Resolver[Need, tuple[str, str], str] = Resolver(Provider(index, python), BaseReporter())
        result = resolver.resolve(needs, max_rounds=ROUNDS)
    except ResolutionImpossible as error:
        causes = dict.fromkeys(
            f"{cause.requirement.of} requires {cause.requirement.requirement}" for cause in error.causes
        )
        raise StackError(f"No set of versions was found for Python {python}: {'; '.join(causes)}.") from error
    except ResolutionTooDeep as error:
        raise StackError(
            f"No set of versions was found for Python {python} in {ROUNDS} rounds. Pin more exactly."
        ) from error
    return dict(result.mapping.values())


def runs_on(requires_python: str, python: str) -> bool:
    """Whether a release is for this Python. One whose Requires-Python cannot be read is left out.

    TensorFlowOnSpark 2.2.5 writes it in quotes: >="3.6".
    """
    try:
        return SpecifierSet(requires_python.replace('"', "")).contains(f"{python}.18")
    except InvalidSpecifier:
        return False


def newest_first(versions: Iterable[str]) -> list[str]:
    """Versions without what is none."""

    def parsed(text: str) -> Version | None:
        try:
            return Version(text)
        except InvalidVersion:
            return None

    valid = {text: version for text in set(versions) if (version := parsed(text))}
    return sorted(valid, key=lambda text: valid[text], reverse=True)
