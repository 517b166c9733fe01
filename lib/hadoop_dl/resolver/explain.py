"""Why items clash, in sentences: the two facts that exclude each other, and where each is written."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hadoop_dl.resolver.builds import TensorflowBuild
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, Items
from hadoop_dl.resolver.findings import Finding, merged, sources
from hadoop_dl.resolver.gpus import Gpu, UnknownGpu, architecture
from hadoop_dl.resolver.hosts import Unknown
from hadoop_dl.resolver.item_sources import item_sources
from hadoop_dl.resolver.known_values import build_value, nearest_values, value_rows, values
from hadoop_dl.resolver.request import CHOICES, COMPONENTS, Item
from hadoop_dl.resolver.rules.driver_branches import OLDEST
from hadoop_dl.resolver.versions import Spec, cc, known, listed, parse_spec, spans, version

SHARED = ("tensorflow", "python", "cuda", "tensorflow_source", "tensorflow_package")
MOST_REASONS = 3  # of one item against the builds that the others leave


@dataclass(frozen=True)
class Conflict:
    """One clash. `components` are the parts of the request that must change for it to disappear."""

    components: tuple[str, ...]
    message: str
    sources: tuple[str, ...]
    labels: tuple[str, ...] = ()  # the same parts as sentences call them; a single one is wrong by itself
    unknown: bool = False  # a name that the data does not have

    def as_json(self) -> dict[str, object]:
        return {"components": list(self.components), "message": self.message, "sources": list(self.sources)}


def conflicts(problem: ConstraintProblem) -> list[Conflict]:
    """Every clash of the request, the smallest first."""
    clashes = problem.clashes()
    names = clash_labels(problem, clashes)
    all_conflicts = [explain(problem, clash, names) for clash in clashes]
    return list({conflict.message: conflict for conflict in all_conflicts}.values())


def explain(problem: ConstraintProblem, clash: Items, names: Mapping[int, str]) -> Conflict:
    items = [problem.items[number] for number in sorted(clash)]
    findings = unknown_value(problem, items[0]) if len(items) == 1 else at_once(problem, items)
    findings = findings or by_part(problem, clash) or by_environment(problem, clash) or by_projection(problem, clash)
    findings = [*findings, *other_builds(problem, items)]
    text = sentence([finding.text for finding in findings])
    urls = merged(finding.sources for finding in findings) or merged(item_sources(problem, item) for item in items)
    keys = tuple(dict.fromkeys(item.key for item in items))
    unknown = any(isinstance(item.subject, (Unknown, UnknownGpu)) for item in items)
    return Conflict(keys, text, urls, tuple(dict.fromkeys(names[number] for number in sorted(clash))), unknown)


def clash_labels(problem: ConstraintProblem, clashes: Sequence[Items]) -> dict[int, str]:
    """The name of each item in the headline: `B200 or TensorFlow 2.21` is one, if a B200 admits no other TensorFlow."""
    partners: dict[int, set[int]] = {}
    for clash in clashes:
        for number in clash:
            partners.setdefault(number, set()).update(clash - {number})
    groups: dict[int, list[int]] = {}
    for number in sorted(partners):
        candidates = [candidate for candidate in groups if partners[candidate] == partners[number]]
        first = next((candidate for candidate in candidates if requires(problem, candidate, number)), number)
        groups.setdefault(first, []).append(number)
    return {
        number: listed((problem.items[member].label for member in group), "or")
        for group in groups.values()
        for number in group
    }


def requires(problem: ConstraintProblem, number: int, other_number: int) -> bool:
    """Whether one of two items admits only the version that the other requests."""
    masks = {key: problem.mask(frozenset({key})) for key in (number, other_number)}
    return any(
        masks[first] and masks[first] & masks[second] == masks[first] and bool(problem.items[second].specs)
        for first, second in ((number, other_number), (other_number, number))
    )


def together(conflicts: Sequence[Conflict]) -> str:
    """The headline over all conflicts: the parts of the request that exclude each other."""
    labels = dict.fromkeys(label for conflict in conflicts if len(conflict.labels) > 1 for label in conflict.labels)
    several = sorted(labels, key=lambda label: " or " in label)
    if not several:
        return ""
    text = f"{', '.join(several[:-1])}, and {several[-1]}" if " or " in several[-1] else listed(several)
    return f"These requirements conflict: {text}."


def other_builds(problem: ConstraintProblem, items: Sequence[Item]) -> Iterator[Finding]:
    """Builds by others for GPUs that the official wheels of a line have no code for: nothing here installs them."""
    gpus = [item.subject for item in items if isinstance(item.subject, Gpu)]
    pins = [item for item in items if item.key == "tensorflow"]
    for row in problem.catalog.compat.rows("tensorflow", "other_builds"):
        if not pins or not any(cc(row["first_cc"]) <= gpu.capability <= cc(row["last_cc"]) for gpu in gpus):
            continue
        releases = problem.catalog.compat.rows("tensorflow", "releases")
        if {release["line"] for release in releases if pins[0].accepts(release["version"])} == {row["line"]}:
            yield Finding(f"{row['what']}, which nothing here installs", sources(row))


def sentence(parts: Sequence[str]) -> str:
    first, *tail = dict.fromkeys(part.rstrip(".") for part in parts)
    text = "; ".join([first, *(re.sub(r"^(The|A|No|What) ", lambda word: word[0].lower(), part) for part in tail)])
    name = text.split(" ")[0]
    return (text if re.search(r"[\d_=]", name) or name.startswith("tensorflow") else text[:1].upper() + text[1:]) + "."


# --- one item that nothing meets ---------------------------------------------------------------------------------------


def unknown_value(problem: ConstraintProblem, item: Item) -> list[Finding]:
    """An operating system, GPU, Hadoop or version that does not exist or is not known, with the nearest known ones."""
    if isinstance(item.subject, (Unknown, UnknownGpu)):
        is_ambiguous = isinstance(item.subject, UnknownGpu) and item.subject.meant
        near = f" Nearest known: {listed(item.subject.near, 'or')}." if item.subject.near and not is_ambiguous else ""
        return [Finding(f"{item.subject.why}{near}", item_sources(problem, item))]
    if item.key in CHOICES and not any(item.accepts(choice) for choice in CHOICES[item.key]):
        close = difflib.get_close_matches(item.specs[0].text, CHOICES[item.key], n=1, cutoff=0.0)
        text = f"{item.key} is {listed(CHOICES[item.key], 'or')}, not {item.specs[0].text}. Nearest: {close[0]}"
        return [Finding(text, item_sources(problem, item))]
    if not item.specs:
        return []
    known_values = values(problem.catalog, item.key)
    if any(item.accepts(value) for value in known_values) or item.key == "driver" and exists_unlisted(item):
        return []
    parts = item.specs[0].text.split(",")
    if item.specs[0].kind == "range" and len(parts) > 1:
        message = exclusive(item.key, parts, [parse_spec(part) for part in parts], known_values)
        if message:
            return [Finding(message, item_sources(problem, item))]
    around = nearest_values(item.specs[0], known_values)
    words, text = COMPONENTS[item.key].words, item.text
    exists = f"There is no {words} {text}" if item.specs[0].kind == "prefix" else f"No {words} is {text}"
    exists += " in this data"
    if item.specs[0].kind == "invalid":
        exists = f"'{text}' is not a version of {words}"
    exists_elsewhere = any(item.accepts(value) for value, _ in value_rows(problem.catalog, item.key))
    if item.key == "python" and exists_elsewhere:
        exists = f"No TensorFlow has wheels for {words} {text}"
    if item.key == "cuda" and (exists_elsewhere or newer_than_all(item, known_values)):
        return [no_cuda(problem, item)]
    return [Finding(f"{exists}. Nearest known: {listed(around, 'or')}", item_sources(problem, item))]


def exists_unlisted(item: Item) -> bool:
    """Whether a driver's number is that of a branch which the data does not list but judges by its neighbours."""
    text = item.specs[0].text
    return known(text) and "." in text and version(text).major >= OLDEST


def newer_than_all(item: Item, known_values: Sequence[str]) -> bool:
    text = item.specs[0].text
    return known(text) and version(text) > version(known_values[-1])


def no_cuda(problem: ConstraintProblem, item: Item) -> Finding:
    """A CUDA release that exists, but for which no TensorFlow is built."""
    last = problem.catalog.cudas[-1]
    lines = {build.name for build in problem.catalog.builds if build.cuda == last and build.tested}
    text = f"No TensorFlow is built for {item.label}; the newest is CUDA {last} (TensorFlow {spans(lines, problem.catalog.line_names)})"
    return Finding(f"{text}. Nearest known: {last}", item_sources(problem, item))


def at_once(problem: ConstraintProblem, items: Sequence[Item]) -> list[Finding]:
    """Several constraints on one component that exclude each other."""
    keys = {item.key for item in items}
    if len(keys) > 1 or not all(item.specs for item in items):
        return []
    known_values = values(problem.catalog, items[0].key)
    if any(all(item.accepts(value) for item in items) for value in known_values):
        return []
    message = exclusive(items[0].key, [item.text for item in items], [item.specs[0] for item in items], known_values)
    return [Finding(message, item_sources(problem, items[0]))] if message else []


def exclusive(key: str, texts: Sequence[str], specs: Sequence[Spec], known_values: Sequence[str]) -> str:
    """The message that no value meets all of these constraints, if each alone has one that meets it; else empty."""
    newest = [[value for value in known_values if spec.accepts(value)][-1:] for spec in specs]
    if not all(newest):
        return ""
    nearest = listed(dict.fromkeys(value for newest_values in newest for value in newest_values), "or")
    return f"No {COMPONENTS[key].words} is {listed(texts)} at once. Nearest known: {nearest}"


# --- clashes inside one part ---------------------------------------------------------------------------------------------


def by_part(problem: ConstraintProblem, clash: Items) -> list[Finding]:
    """A part whose own items leave no choice for any of the builds that the other items leave."""
    mask = problem.tables.all_builds
    for number in clash:
        mask &= problem.build_masks[number]
    if not mask:
        return []
    for place, part in enumerate(problem.tables.parts):
        own = clash & problem.own[place]
        if not own or problem.part_mask(place, own, mask):
            continue
        build = representative(problem, place, own, mask & requested_builds(problem) or mask)
        findings = list(part.facts(build, [problem.items[number] for number in sorted(own)]))
        text = " ".join(finding.text for finding in findings)
        for number in sorted(clash - own):
            findings += tie(problem, number, build, text)
        if findings:
            return findings
    return []


def requested_builds(problem: ConstraintProblem) -> int:
    """The builds of the TensorFlow that the request names; no reason speaks of another one."""
    return problem.mask(frozenset(number for number in problem.all if problem.items[number].key == "tensorflow"))


def representative(problem: ConstraintProblem, place: int, own: Items, mask: int) -> TensorflowBuild:
    """The build to speak about: one that agrees with as many of the part's items as any.

    Of a driver that is too old for all, the one that needs the oldest.
    """
    level = problem.tables.parts[place].level
    if level == "driver" and not any(item.key == "tensorflow" for item in problem.items):
        with_cuda = [build for build in problem.builds(mask) if build.cuda and build.tested]
        modest = min(with_cuda, key=lambda build: version(build.cuda or "0"), default=None)
        if modest:
            return modest
    best, agreed = next(problem.builds(mask)), (-1, False)
    built = level == "build_tools"
    for _, members in problem.tables.classes[place].values():
        if members & mask:
            build = next(problem.builds(members & mask))
            met = sum(problem.choice(place, build, frozenset({number})) is not None for number in own)
            if (met, built and build.from_source) > agreed:
                best, agreed = build, (met, built and build.from_source)
    return best


def tie(problem: ConstraintProblem, number: int, build: TensorflowBuild, text: str) -> list[Finding]:
    """Why an item outside a part is in its clash, unless a fact already names it."""
    item = problem.items[number]
    own = {"tensorflow": f"TensorFlow {build.name}", "python": f"Python {build.python}", "cuda": f"CUDA {build.cuda}"}
    if item.label in text or own.get(item.key, "\0") in text:
        return []
    if item.key in own or not problem.items[number].specs and item.key not in ("os", "gpu", "host"):
        return [Finding(f"{item.label} was requested", item_sources(problem, item))]
    return [
        item_leaves(problem, number, "tensorflow", project(problem, problem.mask(frozenset({number})), "tensorflow"))
    ]


# --- clashes between TensorFlow and its environment ----------------------------------------------------------------------


def by_environment(problem: ConstraintProblem, clash: Items) -> list[Finding]:
    """An OS, GPU or host fact that refuses every build which the other items leave: the reasons that it gives."""
    environment = [number for number in sorted(clash) if problem.items[number].key in ("os", "gpu", "host")]
    best: list[Finding] = []
    for number in environment:
        short = too_old_for_gpu(problem, clash, number)
        if short:
            return [short]
    for number in environment:
        mask = problem.mask(clash - {number})
        if not mask or mask & problem.build_masks[number]:
            continue
        findings = cover(problem, number, list(problem.builds(mask)))
        if not best or len(findings) < len(best):
            best = findings
    text = " ".join(finding.text for finding in best)
    for number in sorted(clash) if best else ():
        item = problem.items[number]
        if item.label not in text and item.key not in (
            "host",
            "tensorflow",
            *(("python",) if "Python" in text else ()),
        ):
            left_alone = project(problem, problem.mask(frozenset({number})), "tensorflow")
            all_lines = len(left_alone) == len(problem.catalog.line_names)
            request_finding = Finding(f"{item.label} was requested", item_sources(problem, item))
            best = [request_finding if all_lines else item_leaves(problem, number, "tensorflow", left_alone), *best]
    return best


def too_old_for_gpu(problem: ConstraintProblem, clash: Items, number: int) -> Finding | None:
    """One message about the newest TensorFlow, if the rest of a clash admits only old ones or only CPU builds."""
    gpu, items = problem.items[number].subject, [problem.items[member] for member in sorted(clash - {number})]
    mask = problem.mask(clash - {number})
    if not isinstance(gpu, Gpu) or not mask or any(item.key in ("tensorflow", "gpu") for item in items):
        return None
    builds = [build for build in problem.builds(mask) if not problem.refusal(problem.items[number], build)]
    labels = listed([item.label for item in items])
    absent = [item for item in items if item.absent and item.key == "cuda"]
    if absent and not builds:
        return Finding(
            f"cuda=none leaves only CPU builds, and those do not use {gpu.name}", item_sources(problem, absent[0])
        )
    arch, cudas = (
        architecture(problem.catalog.compat, gpu.cc),
        [build for build in problem.builds(mask) if build.gpu and not build.from_source],
    )
    if builds or not cudas or any(item.key == "cuda" for item in items):
        return None
    last = cudas[0]
    if version(last.cuda or "0").major >= version(arch["first_cuda"]).major:
        return None  # pip may bring a newer one of the same major number
    text = f"The last TensorFlow for {labels} is {last.name} (CUDA {last.cuda}), but {gpu.name} needs CUDA {arch['first_cuda']} or newer"
    return Finding(text, sources(last.line, arch))


def cover(problem: ConstraintProblem, number: int, builds: list[TensorflowBuild]) -> list[Finding]:
    """The reason against the newest wheel first, then reasons of another kind against other builds."""
    item = problem.items[number]
    findings_by_kind: dict[str, Finding] = {}
    for build in sorted(builds, key=lambda build: (build.from_source, not build.tested)):
        finding = problem.refusal(item, build)
        if finding:
            kind = "glibc" if "glibc" in finding.text else re.sub(r"[\d.]+", "", finding.text)[:24]
            findings_by_kind.setdefault(f"{build.cuda}" if isinstance(item.subject, Gpu) else kind, finding)
    findings = list(findings_by_kind.values())
    against_gpu = [finding for kind, finding in findings_by_kind.items() if kind != "None"]
    return (against_gpu or findings)[:MOST_REASONS]


# --- clashes that only show in what each item leaves ---------------------------------------------------------------------


def by_projection(problem: ConstraintProblem, clash: Items) -> list[Finding]:
    """What each item leaves of a component that all of them decide about."""
    numbers = sorted(clash)
    masks = {number: problem.mask(frozenset({number})) for number in numbers}
    for key in SHARED:
        left_values = {number: project(problem, masks[number], key) for number in numbers}
        if not set.intersection(*left_values.values()):
            return [item_leaves(problem, number, key, left_values[number]) for number in numbers]
    first, *other_numbers = numbers
    rest_mask = problem.mask(frozenset(other_numbers))
    findings = [item_leaves(problem, first, "tensorflow", project(problem, masks[first], "tensorflow"))]
    labels = listed([problem.items[number].label for number in other_numbers])
    parts = [
        f"{COMPONENTS[key].words} {shown(problem, key, project(problem, rest_mask, key))}"
        for key in ("tensorflow", "python", "cuda")
    ]
    findings.append(
        Finding(
            f"{labels} leave{'s' if len(other_numbers) == 1 else ''} {', '.join(parts)}",
            merged(item_sources(problem, problem.items[number]) for number in other_numbers),
        )
    )
    findings.append(Finding("no release meets all of it", ()))
    return findings


def project(problem: ConstraintProblem, mask: int, key: str) -> set[str]:
    """The values of a component over a set of builds; TensorFlow by its lines."""
    if key == "tensorflow":
        return {build.name for build in problem.builds(mask)}
    return {build_value(build, key, problem.catalog) or "none" for build in problem.builds(mask)}


def shown(problem: ConstraintProblem, key: str, left_values: set[str]) -> str:
    catalog = problem.catalog
    order = {"tensorflow": catalog.line_names, "python": catalog.pythons, "cuda": ["none", *catalog.cudas]}.get(
        key, sorted(left_values)
    )
    if key == "cuda":
        left_values = left_values - {"none"} or left_values
    return spans(left_values, order) or "nothing"


def item_leaves(problem: ConstraintProblem, number: int, key: str, left_values: set[str]) -> Finding:
    item = problem.items[number]
    urls = item_sources(problem, item)
    if item.key == key:
        return Finding(f"{item.label} was requested", urls)
    return Finding(f"{item.label} goes with {COMPONENTS[key].words} {shown(problem, key, left_values)}", urls)
