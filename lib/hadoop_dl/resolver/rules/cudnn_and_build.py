"""cuDNN beside CUDA, and what a source build needs: bazel and gcc."""

from collections.abc import Hashable, Iterator, Sequence

from hadoop_dl.data.compat import Row
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.findings import Finding, sources, warning
from hadoop_dl.resolver.gpus import Gpu
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.versions import cc, known, newest, version


class Cudnn(Part):
    """The tested cuDNN first; newer ones of the same soname that exist for this CUDA are as good."""

    level = "cudnn"

    def __init__(self, catalog: BuildCatalog) -> None:
        self.catalog = catalog
        self.rows = {row["version"]: row for row in catalog.compat.rows("cuda", "cudnn")}

    def classify(self, build: TensorflowBuild) -> Hashable:
        return build.name, build.source, build.cuda

    def versions(self, build: TensorflowBuild) -> list[str]:
        if build.cuda is None:
            return []
        cuda_row = self.catalog.other_cuda(build)
        first = str(cuda_row["cudnn"] if cuda_row else build.line["cudnn"])
        soname, major = (
            int(first.partition(".")[0]) if cuda_row else build.line["cudnn_soname"],
            build.cuda.partition(".")[0],
        )
        other_versions = [
            text
            for text, row in self.rows.items()
            if row["soname"] == soname and set(row["cuda"]) & {build.cuda, major} and version(text) >= version(first)
        ]
        return list(dict.fromkeys([first, *newest(other_versions)]))

    def newer(self, build: TensorflowBuild, items: Sequence[Item]) -> list[str]:
        """Releases that were asked for exactly and are newer than the data, of the same soname."""
        latest = max((text for text in self.rows), key=version)
        exact = (spec.text for item in items for spec in item.specs if spec.kind == "prefix" and known(spec.text))
        soname = self.rows[latest]["soname"]
        return [
            text
            for text in exact
            if version(text) > version(latest)
            and version(text).major == soname
            and build.line["cudnn_soname"] == soname
        ]

    def refused(self, text: str, items: Sequence[Item]) -> bool:
        return any(
            bool(self.too_old(text, item.subject)) if isinstance(item.subject, Gpu) else not item.accepts(text)
            for item in items
            if item.specs or isinstance(item.subject, Gpu)
        )

    def too_old(self, text: str, gpu: Gpu) -> Row | None:
        """The row that ends the support for this GPU in this release or an earlier one."""
        rows = [row for row in self.rows.values() if "min_cc" in row and cc(row["min_cc"]) > gpu.capability]
        return next((row for row in rows if version(row["version"]) <= version(text)), None)

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        if build.cuda is None:
            return Choice() if all(item.absent for item in items if item.specs) else None
        for text in self.versions(build):
            if not self.refused(text, items):
                row = self.rows.get(text)
                note = "was tested with this line" if build.tested else f"goes with CUDA {build.cuda}"
                if build.tested and text != build.line["cudnn"]:
                    note = f"has the soname of {build.line['cudnn']}, the tested one, and exists for CUDA {build.cuda}"
                return Choice(
                    {"cudnn": text},
                    [Finding(f"cudnn {text}: it {note}", sources(row, build.line) or sources(build.line))],
                )
        for text in self.newer(build, items):
            if not self.refused(text, items):
                note = (
                    f"cuDNN {text} is newer than this data; it has the soname of {build.line['cudnn']}, the tested one"
                )
                return Choice(
                    {"cudnn": text},
                    [Finding(f"cudnn {text}: requested", sources(build.line))],
                    [warning(note, sources(build.line))],
                )
        return None

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        if build.cuda is None:
            yield Finding(f"{build.package} {build.version} is a CPU build and needs no cuDNN", sources(build.release))
            return
        texts = self.versions(build)
        row = self.rows.get(texts[-1]) if texts else None
        goes = f"cuDNN {texts[0]}" + (f" or a newer one of its soname, up to {texts[1]}" if len(texts) > 1 else "")
        yield Finding(f"TensorFlow {build.name} with CUDA {build.cuda} runs with {goes}", sources(build.line, row))
        for item in items:
            row = self.too_old(newest(self.rows)[0], item.subject) if isinstance(item.subject, Gpu) else None
            if row:
                yield Finding(f"{item.label} runs with cuDNN older than {row['version']} only", sources(row))
            elif item.specs:
                yield Finding(f"{item.label} was requested", ())


# These lines configure CUDA in tools/bazel.rc, which bazel 0.19 does not read: github.com/tensorflow/tensorflow/issues/23398
LAST_WITH_BAZEL_RC = "0.18.99"
AHEAD = 4  # lines whose tested bazel may also build an old line that checks no maximum


class BuildTools(Part):
    """bazel and gcc, for a source build only."""

    level = "build_tools"

    def __init__(self, catalog: BuildCatalog) -> None:
        self.catalog = catalog
        lines = catalog.lines
        self.bazels = newest({row["bazel"][name] for row in lines for name in ("tested", "min")})
        self.top_gcc = max(int(row["gcc_max"]) for row in catalog.toolkits.values())
        self.gccs = newest({row["compiler"]["version"] for row in lines if row["compiler"]["name"] == "gcc"})

    def classify(self, build: TensorflowBuild) -> Hashable:
        return (build.name, build.source, build.cuda) if build.from_source else None

    def bazel_limits(self, line: Row) -> tuple[str, str]:
        """Old lines check no maximum and do not build with much newer ones: the one of a few lines later is the limit."""
        bazel = line["bazel"]
        if bazel["max"]:
            return bazel["min"], bazel["max"]
        place = self.catalog.line_names.index(line["line"])
        later = self.catalog.lines[place : place + AHEAD + 1]
        low = max(bazel["min"], bazel["tested"], key=version)
        high = max([low, *(row["bazel"]["tested"] for row in later)], key=version)
        return low, min(high, LAST_WITH_BAZEL_RC, key=version)

    def bazel(self, line: Row, items: Sequence[Item]) -> str | None:
        low, high = self.bazel_limits(line)
        tested = max(line["bazel"]["tested"], low, key=version)
        exact = [
            spec.text for item in items for spec in item.specs if spec.kind == "prefix" and spec.text.count(".") == 2
        ]
        for text in dict.fromkeys([tested, *newest({*self.bazels, *exact})]):
            if version(low) <= version(text) <= version(high) and all(item.accepts(text) for item in items):
                return str(text)
        return None

    def gcc_limits(self, build: TensorflowBuild) -> tuple[int, int]:
        toolkit = self.catalog.toolkits.get(build.cuda or "")
        return int(toolkit["gcc_min"] or 0) if toolkit else 0, int(toolkit["gcc_max"]) if toolkit else self.top_gcc

    def gcc(self, build: TensorflowBuild, items: Sequence[Item]) -> str | None:
        low, high = self.gcc_limits(build)
        exact = [spec.text for item in items for spec in item.specs if spec.kind == "prefix" and known(spec.text)]
        tested = [build.line["compiler"]["version"]] if build.line["compiler"]["name"] == "gcc" else []
        for text in dict.fromkeys([*tested, *self.gccs, *newest(exact)]):
            if (
                low <= version(text).major <= high
                and version(text).major >= 4
                and all(item.accepts(text) for item in items)
            ):
                return str(text)
        return None

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        if not build.from_source:
            return Choice() if all(item.absent for item in items) else None
        gcc_items = [item for item in items if item.key == "gcc"]
        bazel = self.bazel(build.line, [item for item in items if item.key == "bazel"])
        compiler = build.line["compiler"]
        by_gcc = compiler["name"] == "gcc" or bool(gcc_items)
        gcc = self.gcc(build, gcc_items) if by_gcc else None
        if bazel is None or (by_gcc and gcc is None):
            return None
        choice = Choice({"bazel": bazel})
        tested = build.line["bazel"]["tested"]
        note = "the tested one" if bazel == tested else f"within what configure admits (tested: {tested})"
        if not build.line["bazel"]["max"] and version(bazel) > version(tested):
            text = f"TensorFlow {build.name} was tested with bazel {tested}, and its configure checks no maximum: {bazel} is not verified"
            choice.warnings.append(warning(text, sources(build.line)))
        choice.reasons.append(Finding(f"bazel {bazel}: {note} for TensorFlow {build.name}", sources(build.line)))
        if gcc:
            choice.values["gcc"] = gcc
            choice.reasons.append(
                Finding(
                    f"gcc {gcc}: fits CUDA {build.cuda or '(none)'} and TensorFlow {build.name}", sources(build.line)
                )
            )
        if gcc != compiler["version"]:
            choice.warnings.append(
                warning(
                    f"TensorFlow {build.name} was tested with {compiler['name']} {compiler['version']}",
                    sources(build.line),
                )
            )
        return choice

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        if not build.from_source:
            yield Finding(f"{build.package} {build.version} from PyPI is not built here", sources(build.release))
        elif any(item.key == "bazel" for item in items):
            low, high = self.bazel_limits(build.line)
            yield Finding(
                f"TensorFlow {build.name} builds with bazel {low}" + (f" to {high}" if high != low else ""),
                sources(build.line),
            )
        if build.from_source and any(item.key == "gcc" for item in items):
            small, great = self.gcc_limits(build)
            subject = f"CUDA {build.cuda} accepts" if build.cuda else "a build accepts"
            yield Finding(
                f"{subject} gcc {f'{small} to ' if small else 'up to '}{great}",
                sources(self.catalog.toolkits.get(build.cuda or "")),
            )
        for item in items:
            yield Finding(f"{item.label} was requested", ())
