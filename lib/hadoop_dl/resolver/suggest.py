"""The nearest requests that can be met: as few parts as possible are changed, and each as little as possible."""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import combinations, zip_longest
from typing import Any

from hadoop_dl.data.compat import Compat
from hadoop_dl.resolver.choose_stack import choose_stack
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, Items
from hadoop_dl.resolver.gpus import Gpu, UnknownGpu, find_gpu, words
from hadoop_dl.resolver.hosts import OTHER_HADOOP, OTHER_SYSTEM, Unknown, find_hadoop, find_system
from hadoop_dl.resolver.known_values import values
from hadoop_dl.resolver.request import CHOICES, OPTIONS, Item, read_request, texts
from hadoop_dl.resolver.versions import known, listed, version

Request = dict[str, Any]
MOST = 3
MOST_CARDS = 3  # named for one name of the request
# What it costs to drop a part: a version is changed before a feature, and the host last.
COST = {"tensorflow": 5, "python": 4, "hdfs": 6, "kafka": 6, "yarn_gpu": 6, "host": 1000}
CHEAP = 3
HARDWARE = ("os", "gpu", "hadoop", "host")  # never changed; only a misspelt name is replaced by the known one
TYPO = 0.6  # how similar a name must be to count as a misspelling


def cost(item: Item) -> int:
    """Dropping what nothing meets costs nothing: it must be dropped in any case."""
    return 0 if not known_subject(item) else COST.get(item.key, CHEAP)


def give_ups(problem: ConstraintProblem, fixed: frozenset[str]) -> Iterator[Items]:
    """Minimal sets of items to drop so that the rest can be met, the cheapest first; never fixed ones."""
    hopeless = frozenset(number for number in problem.all if not problem.mask(frozenset({number})))
    free = [number for number in sorted(problem.all - hopeless) if problem.items[number].key not in fixed]
    stays = problem.all - hopeless - frozenset(free)
    if not problem.mask(stays):
        return
    groups = [frozenset(group) for size in range(min(4, len(free)) + 1) for group in combinations(free, size)]
    groups.sort(key=lambda group: (sum(cost(problem.items[number]) for number in group), len(group), sorted(group)))
    minimal_groups: list[Items] = []
    for group in groups:
        if any(subset <= group for subset in minimal_groups):
            continue
        if problem.mask(problem.all - hopeless - group):
            minimal_groups.append(group)
            yield group | hopeless
    if not minimal_groups:
        yield problem.all - keepers(problem, stays, free)


def keepers(problem: ConstraintProblem, stays: Items, free: list[int]) -> Items:
    """The largest part of a request that can be kept beside the fixed items: the most expensive ones first."""
    kept_items = stays
    for number in sorted(free, key=lambda number: (-cost(problem.items[number]), number)):
        if problem.mask(kept_items | {number}):
            kept_items = kept_items | {number}
    return kept_items


def nearest_requests(
    problem: ConstraintProblem, request: Mapping[str, Any], fits: Callable[[Request], bool]
) -> list[Request]:
    """Up to three requests that resolve, as an operator would write them; each was tried. Hardware and hosts are not changed."""
    requests: list[Request] = []
    of_host = frozenset(name for name in ("os", "gpu", "hadoop") if name not in request)
    for removed_items in give_ups(problem, of_host | frozenset(HARDWARE)):
        for offered in replaced(problem, removed_items):
            changed = {name: value for name, value in offered.items() if name not in of_host}
            if changed not in requests and fits(changed):
                requests.append(changed)
                break
        if len(requests) == MOST:
            break
    return requests


def replaced(problem: ConstraintProblem, removed_items: Items) -> Iterator[Request]:
    """The request with other values for what is given up, the nearest first; finally without it."""
    items = [problem.items[number] for number in sorted(removed_items)]
    request = base(problem, removed_items)
    misspelt = [item for item in items if item.key in OPTIONS and not known_subject(item)]
    if any(item.key in HARDWARE and not meant(item) for item in misspelt):
        return  # unknown hardware or an unknown system: nothing can be suggested
    other_items = [item for item in items if item not in misspelt]
    for item in misspelt:
        parts = [part for part in str(request.get(item.key, "")).split(",") if part]
        request = {**request, item.key: ",".join([*parts, *meant(item)[:1]])} if meant(item) else request
    yield from completed(problem, request, other_items)
    yield request


def meant(item: Item) -> list[str]:
    """The known names that one with a typo may have meant: the same numbers behind nearly the same word. Another GPU is other hardware."""
    if not isinstance(item.subject, Unknown):
        return []
    word, numbers = spelling(item.text)
    near = [(name, *spelling(name)) for name in item.subject.near]
    return [
        name for name, stem, digits in near if digits == numbers and SequenceMatcher(None, word, stem).ratio() >= TYPO
    ]


def spelling(name: str) -> tuple[str, list[str]]:
    return re.sub(r"[^a-z]", "", name.lower()), re.findall(r"[0-9.]+", name)


def base(problem: ConstraintProblem, removed_items: Items) -> Request:
    """The items that are kept, as a request."""
    texts_by_name: dict[str, list[str]] = {}
    for number in sorted(problem.all - removed_items):
        item = problem.items[number]
        if item.key != "host":
            texts_by_name.setdefault(item.key, []).append(item.text)
    return {name: ",".join(texts) for name, texts in texts_by_name.items()}


def completed(problem: ConstraintProblem, request: Request, items: list[Item]) -> Iterator[Request]:
    """A value for each changed component: the nearest to what was asked for that the rest admits."""
    changed = dict(request)
    for item in items:
        if item.key in OPTIONS:
            continue
        for value in near_values(problem, item):
            tried = {**changed, item.key: value}
            trial = on_same_host(problem, tried)
            if trial.solutions and (wants_built(problem) or not choose_stack(trial).built):
                changed = tried
                break
    yield spelled(problem, changed, [item.key for item in items])


def on_same_host(problem: ConstraintProblem, request: Request) -> ConstraintProblem:
    """Another request, with the facts of the same host."""
    facts = [item for item in problem.items if item.key == "host"]
    return ConstraintProblem(problem.tables, read_request(problem.catalog.compat, request) + facts)


def near_values(problem: ConstraintProblem, item: Item) -> list[str]:
    """Other values of a component, the nearest first; a TensorFlow or Python by its line, and newer before older."""
    if not item.specs or item.key in CHOICES:
        return [choice for choice in CHOICES.get(item.key, ()) if not item.accepts(choice)]
    all_values = values(problem.catalog, item.key)
    if item.key == "tensorflow":
        all_values = problem.catalog.line_names
    text = item.specs[0].text.lstrip("<>=!~").partition(",")[0].removesuffix(".*")
    if not known(text):
        return all_values[::-1]
    all_values, asked_version = [value for value in all_values if known(value)], version(text)
    newer = [value for value in all_values if version(value) >= asked_version]
    older = [value for value in reversed(all_values) if version(value) < asked_version]
    own = [value for value in older if item.key == "tensorflow" and text.startswith(f"{value}.")]
    if own:  # a release that does not exist, or does not fit: another one of its line
        return own + [value for value in newer + older if value not in own]
    if item.key == "tensorflow" and ".".join(text.split(".")[:2]) not in all_values:
        # A release that does not exist: its neighbours, the nearest first.
        return [value for pair in zip_longest(older, newer, fillvalue="") for value in pair if value]
    return newer + older


def known_subject(item: Item) -> bool:
    return not isinstance(item.subject, (Unknown, UnknownGpu))


def wants_built(problem: ConstraintProblem) -> bool:
    """Whether the request is about a source build: otherwise none is suggested."""
    return any(item.key in ("tensorflow_source", "bazel", "gcc", "kafka") for item in problem.items)


def spelled(problem: ConstraintProblem, changed: Request, keys: list[str]) -> Request:
    """The request with the CUDA of the suggested TensorFlow, if that was changed for a GPU."""
    if "tensorflow" not in keys or "cuda" in changed:
        return changed
    trial = on_same_host(problem, changed)
    if not trial.solutions:
        return changed
    stack = choose_stack(trial).stack
    return {**changed, "cuda": stack["cuda"]} if "gpu" in changed and "cuda" in stack else changed


def cards(compat: Compat, request: Mapping[str, Any]) -> Iterator[str]:
    """The cards that each name of the request was taken for, unless it is the model's usual name, a product's or a PCI id."""
    for text in texts("gpu", request["gpu"]) if "gpu" in request else []:
        gpu = find_gpu(compat, text)
        if not isinstance(gpu, Gpu) or not gpu.devices or gpu.virtual or gpu.mig:
            continue
        names = [gpu.name, *(name for card in gpu.devices for name in (card.pci_id, card.name))]
        if words(text) in [words(name) for name in names]:
            continue
        listed_cards = [f"{card.name} ({card.pci_id})" for card in gpu.devices[:MOST_CARDS]]
        more = len(gpu.devices) - len(listed_cards)
        yield f"{text} was taken for {listed([*listed_cards, *([f'{more} more'] if more > 0 else [])])}"


def meanings(compat: Compat, request: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The request with each GPU that an ambiguous name may mean, and with a description in place of an unknown name; and what that is."""
    gpus = texts("gpu", request["gpu"]) if "gpu" in request else []
    request = {**request, "gpu": ",".join(gpus)} if gpus else request
    for place, name in enumerate(gpus):
        gpu = find_gpu(compat, name)
        alternatives = gpu.meant if isinstance(gpu, UnknownGpu) else ()
        if isinstance(gpu, UnknownGpu) and gpu.by_capability and name.lower() != "none":
            alternatives = (("cc=X.Y", "with what nvidia-smi --query-gpu=compute_cap --format=csv prints there"),)
        for alternative, means in alternatives:
            yield {**request, "gpu": ",".join([*gpus[:place], alternative, *gpus[place + 1 :]])}, means
    for name, find, hint in (("os", find_system, OTHER_SYSTEM), ("hadoop", find_hadoop, OTHER_HADOOP)):
        unknown = find(compat, str(request[name])) if name in request else None
        if isinstance(unknown, Unknown) and hint[0] in unknown.why:
            yield {**request, name: hint[0]}, f"with what {hint[1]} there"
