"""docs/compatibility.md, written from compat/ and stacks/: the same rows that the resolver reads, as tables for people.

scripts/stack docs            write it
scripts/stack docs --check    say whether it is current
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hadoop_dl.compat import Compat, Row, load
from hadoop_dl.parser import Parser
from hadoop_dl.resolver.drivers import least_driver
from hadoop_dl.resolver.gpus import common_names
from hadoop_dl.resolver.versions import version
from hadoop_dl.stacks import Stack, load_stack, stack_names

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "compatibility.md"
HEAD = """\
<!-- Written by scripts/stack docs from compat/ and stacks/. Change those, and run it again. -->
# What goes with what

These are the facts that the resolver decides by (`scripts/stack resolve`), with the places where each is written. Linux on
x86_64 only. **?** marks a row whose values were not all seen in a source of their own: such a row warns, and never refuses or
agrees in silence. **–** means not known, or that there is none. How the rows are used: [compat/README.md](../compat/README.md).
"""
SHORT = {
    "docs.nvidia.com": "NVIDIA",
    "developer.nvidia.com": "NVIDIA",
    "developer.download.nvidia.com": "NVIDIA packages",
    "forums.developer.nvidia.com": "NVIDIA forum",
    "www.tensorflow.org": "TensorFlow",
    "pypi.org": "PyPI",
    "spark.apache.org": "Spark",
    "hadoop.apache.org": "Hadoop",
    "cwiki.apache.org": "Hadoop wiki",
    "docs.cloudera.com": "Cloudera",
    "docs.ezmeral.hpe.com": "HPE",
}


@dataclass(frozen=True)
class Table:
    """One table of the page. Cells are texts already; the last column of every table has the sources."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: list[list[str]]

    def render(self) -> str:
        lines = [f"## {self.title}", "", *([self.text, ""] if self.text else [])]
        lines += [line(self.columns), line(["---"] * len(self.columns)), *[line(row) for row in self.rows]]
        return "\n".join(lines)


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|").replace("<", "\\<") for text in cells) + " |"


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None or value == [] or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def span(first: str | None, last: str | None) -> str:
    if first == last:
        return cell(first)
    return f"{first} to {last}" if first and last else f"{first} and newer" if first else f"up to {last}"


def links(urls: Iterable[str]) -> str:
    """Short links; what was observed has no page to link."""
    return " ".join(f"[{site(url)}]({url})" if "://" in url else url for url in dict.fromkeys(urls))


def site(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc == "github.com":
        return "/".join(parts.path.strip("/").split("/")[:2])
    return SHORT.get(parts.netloc, parts.netloc.removeprefix("www."))


def sure(row: Row, text: str) -> str:
    return text if row["verified"] else f"{text} **?**"


def tensorflow(compat: Compat) -> Table:
    rows = [
        [
            sure(row, row["line"]),
            row["tested_version"],
            cell(row["python_wheels"]),
            row["cuda"],
            row["cudnn"],
            f"{row['bazel']['tested']} ({bazel(row)})",
            f"{row['compiler']['name']} {row['compiler']['version']}",
            row["wheel_min_glibc"],
            links(row["source"]),
        ]
        for row in reversed(compat.rows("tensorflow", "lines"))
    ]
    text = (
        "The tested build configurations, and what the wheels on PyPI ask for. `bazel`: the tested one, and in brackets those "
        "that the release accepts. `glibc`: the newest symbol version in TensorFlow's own wheels; a stack may need a newer one "
        f"for other packages. {cpus(compat)}"
    )
    columns = ("TensorFlow", "tested", "Python wheels", "CUDA", "cuDNN", "bazel", "compiler", "glibc", "sources")
    return Table("TensorFlow", text, columns, rows)


def cpus(compat: Compat) -> str:
    """What the wheels ask of a CPU, as a sentence for each span of releases that asks for something."""
    return " ".join(
        f"TensorFlow {span(row['first'], row['last'])}: the wheels need a CPU with {cell(row['features']).upper()}; a build does not."
        for row in compat.rows("tensorflow", "cpu_features")
        if row["features"]
    )


def bazel(row: Row) -> str:
    least, most = row["bazel"]["min"], row["bazel"]["max"]
    if most is None:
        return (
            f"{least} at least; no maximum is checked" if least != row["bazel"]["tested"] else "no maximum is checked"
        )
    return span(least, most.replace(".99.0", ".x"))


def beside(compat: Compat) -> Table:
    rows = []
    for row in reversed(compat.rows("tensorflow", "lines")):
        keras = row["keras"]
        standalone = keras.get("standalone")
        rows.append(
            [
                sure(row, row["line"]),
                row["gpu_package"],
                row["cpu_package"],
                cell(row["wheel_sm"]),
                cell(row["wheel_ptx"]),
                reads(row["hdfs"]),
                reads(row["kafka"]),
                keras["range"].replace("rc0", "")
                if keras.get("range")
                else f"{standalone}{'' if keras.get('standalone_verified') else ' **?**'}"
                if standalone
                else "–",
                cell(row["tensorflow_io"]),
            ]
        )
    text = (
        "`code for` lists the compute capabilities that the GPU wheel has machine code for, `PTX` those from which a driver can "
        "compile for a newer GPU. Keras: up to 2.5 the stand-alone package that matches, from 2.6 on the one that TensorFlow "
        "itself requires. The sources are those of the table above."
    )
    columns = ("TensorFlow", "GPU package", "CPU package", "code for", "PTX", "HDFS", "Kafka", "Keras", "tensorflow-io")
    return Table("GPU code, HDFS, Kafka, Keras", text, columns, rows)


def reads(row: Row) -> str:
    if row["prebuilt"]:
        return "tf.contrib" if row["via"] == "contrib" else "inside"
    return cell(row["via"])


def cuda(compat: Compat) -> Table:
    systems = ("rhel7", "rhel8", "rhel9")
    packaged = {row["os"]: row for row in compat.rows("cuda", "os_support")}
    rows = []
    for row in reversed(compat.rows("cuda", "toolkits")):
        there = [
            sure(packaged[name], name.replace("rhel", "RHEL "))
            for name in systems
            if version(packaged[name]["first"]) <= version(row["version"]) <= version(packaged[name]["last"])
        ]
        rows.append(
            [
                sure(row, row["version"]),
                least_driver(row),
                row["min_driver"],
                row["bundled_driver"],
                span(row["nvcc_min_cc"], row["nvcc_max_cc"]),
                span(row["gcc_min"], row["gcc_max"]),
                cell(there),
                links(row["source"]),
            ]
        )
    text = (
        "`driver at least`: from CUDA 11 on any driver of the same major will do (minor version compatibility). "
        "`for everything`: what the release notes ask for. `its own`: the driver inside the runfile; code that is there only as "
        "PTX needs one as new."
    )
    columns = ("CUDA", "driver at least", "for everything", "its own", "GPUs", "gcc", "packages for", "sources")
    return Table("CUDA and the driver", text, columns, rows)


def cudnn(compat: Compat) -> Table:
    rows = [
        [sure(row, row["version"]), cell(row["soname"]), cell(row["cuda"]), links(row["source"])]
        for row in reversed(compat.rows("cuda", "cudnn"))
    ]
    text = "TensorFlow accepts a newer cuDNN than the tested one as long as the soname is the same."
    return Table("cuDNN", text, ("cuDNN", "soname", "CUDA", "sources"), rows)


def gpus(compat: Compat) -> Table:
    only_open = {row["architecture"]: row for row in compat.rows("drivers", "architectures_without_proprietary_module")}
    rows = []
    for row in reversed(compat.rows("gpus", "architectures")):
        models = dict.fromkeys(
            name
            for device in compat.rows("gpus", "devices")
            if device["cc"] == row["cc"]
            for name in common_names(device)
        )
        kinds = (
            "open"
            if row["architecture"] in only_open
            else "proprietary or open"
            if row["open_kernel_module"]
            else "proprietary"
        )
        own = only_open.get(row["architecture"])
        rows.append(
            [
                sure(row, row["architecture"]),
                row["cc"],
                cell(list(models)),
                span(row["first_cuda"], row["last_cuda"]),
                span(row["first_driver_branch"], row["last_driver_branch"])
                if row["last_driver_branch"] or row["first_driver_branch"]
                else "–",
                kinds,
                links([*row["source"], *(own["source"] if own else [])]),
            ]
        )
    text = "What each generation needs. `module`: which of NVIDIA's two kinds of kernel module drives it."
    columns = ("generation", "capability", "models", "CUDA", "driver branch", "module", "sources")
    return Table("GPUs", text, columns, rows)


def drivers(compat: Compat) -> Table:
    modules = {row["module"]: row for row in compat.rows("drivers", "modules")}
    rows = []
    for row in reversed(compat.rows("drivers", "branches")):
        number = int(row["branch"])
        kinds = [
            name
            for name, span_ in modules.items()
            if int(span_["first_branch"] or 0) <= number <= int(span_["last_branch"] or number)
        ]
        ended = {True: "ended", False: "", None: "**?**"}[row["is_eol"]]
        rows.append(
            [
                sure(row, row["branch"]),
                cell(row["kind"]),
                f"{row['eol'] or ''} {ended}".strip() or "–",
                row["latest_known"],
                cell(row["max_cuda"]),
                f"{row['min_cc']} and newer",
                cell(sorted(kinds, reverse=True)),
                cell([name.replace("rhel", "RHEL ") for name in row["rpm_for"]]),
                links(row["source"]),
            ]
        )
    text = (
        "LTSB: long-term support. PB: production. NFB: new feature. EDB: for developers. `newest CUDA`: the newest toolkit whose own driver is "
        "of this branch. A GPU also needs a branch from its own span in the table above."
    )
    columns = ("branch", "kind", "support until", "newest known", "newest CUDA", "GPUs from", "modules", "packages for", "sources")  # fmt: skip
    return Table("Driver branches", text, columns, rows)


def tfos(compat: Compat) -> Table:
    rows = []
    for row in reversed(compat.rows("tensorflowonspark", "releases")):
        least, below = row["tensorflow"]["min"], row["tensorflow"]["below"]
        wanted = " ".join([*([f"{least} or newer"] if least else []), *([f"older than {below}"] if below else [])])
        rows.append(
            [
                sure(row, row["version"]),
                wanted or "any",
                cell(row["tensorflow_distribution"]),
                cell(row["requires_python"]),
                cell(row["python_classifiers"]),
                cell(row["ci_spark"]),
                links(row["source"]),
            ]
        )
    text = (
        "`as package`: under which names it finds TensorFlow. `its tests' Spark`: the Spark in its own tests; what was really run is in "
        "[compat/observed_stacks.yml](../compat/observed_stacks.yml)."
    )
    columns = (
        "TensorFlowOnSpark",
        "TensorFlow",
        "as package",
        "needs Python",
        "names Python",
        "its tests' Spark",
        "sources",
    )
    return Table("TensorFlowOnSpark", text, columns, rows)


def spark(compat: Compat) -> Table:
    rows = [
        [
            sure(row, row["line"]),
            row["latest"],
            row["python"],
            cell(row["java"]),
            cell(row["pypi_hadoop"]),
            cell(row["gpu_scheduling"]),
            links(row["source"]),
        ]
        for row in reversed(compat.rows("spark", "lines"))
    ]
    text = "`Hadoop inside`: the client in PyPI's pyspark. `schedules GPUs`: with YARN 3.1 or newer."
    columns = ("Spark", "newest", "Python", "Java", "Hadoop inside", "schedules GPUs", "sources")
    return Table("Spark and Java", text, columns, rows)


def hadoop(compat: Compat) -> Table:
    names = {"apache": "Apache", "mapr": "MapR"}
    rows = []
    for row in compat.rows("hadoop", "distributions"):
        gpu = None if row["hadoop"] is None else version(row["hadoop"]) >= version("3.1.0")
        rows.append(
            [
                sure(row, names.get(row["distribution"], row["distribution"].upper())),
                span(row["first"], row["last"]),
                cell(row["hadoop"]),
                cell(row["java"]),
                cell(gpu),
                links(row["source"]),
            ]
        )
    text = "YARN schedules GPUs from Hadoop 3.1.0 on. Below that, every job on a node sees all of its GPUs."
    return Table("Hadoop", text, ("distribution", "releases", "Hadoop", "Java", "schedules GPUs", "sources"), rows)


FACTS = (
    ("tensorflow_io", "facts", "fact"),
    ("tensorflowonspark", "behaviour", "fact"),
    ("spark", "facts", "fact"),
    ("hadoop", "facts", "fact"),
    ("drivers", "rules", "rule"),
    ("python", "facts", "fact"),
    ("bazel", "facts", "fact"),
)


def cdsw(compat: Compat) -> Table:
    rows = [
        [sure(row, row["fact"]), cell(row.get("value")), cell(row.get("applies")), links(row["source"])]
        for row in compat.rows("cdsw", "facts")
    ]
    return Table("CDSW", "", ("what", "value", "releases", "sources"), rows)


def facts(compat: Compat) -> Table:
    rows = [
        [
            cell(subject).replace("_", "-"),
            sure(row, ": ".join(filter(None, (row[name], row.get("value", row.get("text")))))),
            links(row["source"]),
        ]
        for subject, key, name in FACTS
        for row in compat.rows(subject, key)
    ]
    loading = [
        [
            f"TensorFlow {span(row['first'], row['last'])}",
            sure(row, f"{row['what']}. On glibc {row['glibc']} and newer: {row['do']}"),
            links(row["source"]),
        ]
        for row in compat.rows("tensorflow", "loading")
    ]
    return Table("Good to know", "", ("about", "what", "sources"), loading + rows)


def systems(compat: Compat) -> Table:
    releases = {row["os"]: row for row in compat.rows("platforms", "releases")}
    rows = []
    for row in compat.rows("platforms", "systems"):
        release = releases[row["os"]]
        pythons = [
            f"{entry['python']}{' (from ' + entry['since'] + ')' if entry['since'] else ''}"
            for entry in sorted(release["pythons"], key=lambda entry: version(entry["python"]))
        ]
        rows.append(
            [
                sure(row, row["os"]),
                row["glibc"],
                row["gcc"],
                cell(pythons),
                cell(release["ids"]),
                links([*row["source"], *release["source"]]),
            ]
        )
    text = (
        "`Python`: those in the vendor's own repositories. `also`: the ids in /etc/os-release that are treated alike."
    )
    return Table("Operating systems", text, ("system", "glibc", "gcc", "Python", "also", "sources"), rows)


def stack_row(stack: Stack) -> list[str]:
    data = stack.data
    driver = f"{data['driver_min']}, branch {data['driver_branch']}, {data['driver_module']}" if "cuda" in data else "–"
    return [
        f"[{stack.name}](../stacks/{stack.name}.yml)",
        cell(data["os"]),
        cell(stack.pythons),
        f"{data['tensorflow']} ({data['tensorflow_package']}{', built' if data['tensorflow_source'] == 'built' else ''})",
        f"{data['cuda']} / {data['cudnn']}" if "cuda" in data else "CPU",
        driver,
        cell(data.get("keras")),
        cell([name for name in ("hdfs", "kafka") if data.get(name)]),
        cell(data.get("tensorflow_io")),
        cell(data.get("tensorflowonspark")),
        f"{data['pyspark']} / {cell(data.get('java'))}" if "pyspark" in data else "–",
        data.get("glibc_min", "–"),
    ]


def stacks() -> Table:
    found = [load_stack(name) for name in stack_names()]
    found.sort(key=lambda stack: (version(stack.data["tensorflow"]), stack.name))
    text = (
        "Complete sets with a lock of every artifact by sha256. `built`: TensorFlow has to be compiled; the others are wheels. "
        "`driver`: the least that its CUDA needs, and the branch and kind of module that were chosen for it."
    )
    columns = (
        "stack", "for", "Python", "TensorFlow", "CUDA / cuDNN", "driver", "Keras", "reads", "tensorflow-io", "TensorFlowOnSpark",
        "Spark / Java", "glibc",
    )  # fmt: skip
    return Table("The named stacks", text, columns, [stack_row(stack) for stack in found])


def page(compat: Compat | None = None) -> str:
    """The whole page."""
    data = compat or load()
    checked = sorted({str(content["checked"]) for content in data.subjects.values()})
    tables = [
        stacks(),
        tensorflow(data),
        beside(data),
        cuda(data),
        gpus(data),
        drivers(data),
        cudnn(data),
        tfos(data),
        spark(data),
        hadoop(data),
        cdsw(data),
        systems(data),
        facts(data),
    ]
    contents = ", ".join(f"[{table.title}](#{anchor(table.title)})" for table in tables)
    dates = f"The sources were last read on {span(checked[0], checked[-1])}."
    return "\n\n".join([HEAD.rstrip(), f"{contents}. {dates}", *[table.render() for table in tables]]) + "\n"


def anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def main(arguments: Sequence[str]) -> int:
    """Exit status 0: written, or current; 1: not current."""
    parser = Parser(prog="stack docs", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing; say whether the page is current")
    options = parser.parse_args(list(arguments))
    text = page()
    there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    name = PAGE.relative_to(REPOSITORY)
    if there == text:
        print(f"{name} is current.")
        return 0
    if options.check:
        print(f"{name} is not what compat/ and stacks/ say now. Run scripts/stack docs, and commit it with them.")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"{name} was written.")
    return 0
