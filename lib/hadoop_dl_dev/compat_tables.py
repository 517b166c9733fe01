"""The tables of docs/reference/compatibility.md."""

from collections.abc import Sequence
from functools import partial

from hadoop_dl.data import engine_image
from hadoop_dl.data.cdsw import engines
from hadoop_dl.data.compat import Compat, Row
from hadoop_dl.resolver.gpus import Gpu, common_names, find_gpu
from hadoop_dl.resolver.rules.driver_branches import least_driver
from hadoop_dl.resolver.versions import version
from hadoop_dl_dev.compat_cells import Table, cell, links, of_rows, span, sure


def tensorflow(compat: Compat) -> Table:
    def cells(row: Row) -> list[str]:
        return [
            row["line"],
            row["tested_version"],
            cell(row["python_wheels"]),
            row["cuda"],
            row["cudnn"],
            f"{row['bazel']['tested']} ({bazel(row)})",
            f"{row['compiler']['name']} {row['compiler']['version']}",
            row["wheel_min_glibc"],
        ]

    text = (
        "The tested build configurations, and the requirements of the wheels on PyPI. `bazel`: the tested one, and in brackets "
        "those that the release accepts. `glibc`: the newest symbol version in TensorFlow's own wheels; other packages of a "
        f"stack may require a newer one. {cpus(compat)}"
    )
    columns = ("TensorFlow", "tested", "Python wheels", "CUDA", "cuDNN", "bazel", "compiler", "glibc")
    return of_rows("TensorFlow", text, columns, reversed(compat.rows("tensorflow", "lines")), cells)


def cpus(compat: Compat) -> str:
    """The CPU features that wheels require, as a sentence for each span of releases that requires any."""
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
    packaged = {row["os"]: row for row in compat.rows("cuda", "os_support")}

    def cells(row: Row) -> list[str]:
        systems = [
            sure(packaged[name], name.replace("rhel", "RHEL "))
            for name in ("rhel7", "rhel8", "rhel9")
            if version(packaged[name]["first"]) <= version(row["version"]) <= version(packaged[name]["last"])
        ]
        return [
            row["version"],
            least_driver(row),
            row["min_driver"],
            row["bundled_driver"],
            span(row["nvcc_min_cc"], row["nvcc_max_cc"]),
            span(row["gcc_min"], row["gcc_max"]),
            cell(systems),
        ]

    text = (
        "`driver at least`: from CUDA 11 on any driver of the same major release works (minor version compatibility). "
        "`for everything`: the requirement of the release notes. `its own`: the driver inside the runfile; code that exists only "
        "as PTX requires one as new."
    )
    columns = ("CUDA", "driver at least", "for everything", "its own", "GPUs", "gcc", "packages for")
    return of_rows("CUDA and the driver", text, columns, reversed(compat.rows("cuda", "toolkits")), cells)


def model(compat: Compat, name: str) -> str:
    """A model, with the first driver that knows all its devices where that is younger than its generation."""
    gpu = find_gpu(compat, name)
    return f"{name} ({gpu.least_driver})" if isinstance(gpu, Gpu) and gpu.least_driver else name


def gpus(compat: Compat) -> Table:
    only_open = {row["architecture"]: row for row in compat.rows("drivers", "architectures_without_proprietary_module")}
    rows = []
    for row in reversed(compat.rows("gpus", "architectures")):
        models = dict.fromkeys(
            model(compat, name)
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
    text = (
        "The requirements of each generation. `models`: those of data centers, with their first driver; all others are in "
        "[compat/gpu_devices.yml](../../compat/gpu_devices.yml). `module`: the kind of NVIDIA's kernel module."
    )
    columns = ("generation", "capability", "models", "CUDA", "driver branch", "module", "sources")
    return Table("GPUs", text, columns, rows)


def packaged(system: str, releases: Sequence[str], newest: str) -> str:
    """A system, and the newest release of a branch there if it is not the newest of all."""
    differs = "" if releases[:1] == [newest] else f" ({releases[0] if releases else 'without dkms'})"
    return system.replace("rhel", "RHEL ") + differs


def drivers(compat: Compat) -> Table:
    modules = {row["module"]: row for row in compat.rows("drivers", "modules")}

    def cells(row: Row) -> list[str]:
        number = int(row["branch"])
        kinds = [
            name
            for name, span_ in modules.items()
            if int(span_["first_branch"] or 0) <= number <= int(span_["last_branch"] or number)
        ]
        mark = {True: "ended", False: "", None: "**?**"}[row["is_eol"]]
        return [
            row["branch"],
            cell(row["kind"]),
            f"{row['eol'] or ''} {mark}".strip() or "–",
            row["latest_known"],
            cell(row["max_cuda"]),
            f"{row['min_cc']} and newer",
            cell(sorted(kinds, reverse=True)),
            cell([packaged(system, releases, row["latest_known"]) for system, releases in row["releases"].items()]),
        ]

    text = (
        "LTSB: long-term support. PB: production. NFB: new feature. EDB: for developers. `newest CUDA`: the newest toolkit whose own driver is "
        "of this branch. A GPU also needs a branch from its own span in the table above."
    )
    columns = ("branch", "kind", "support until", "newest known", "newest CUDA", "GPUs from", "modules", "packages for")
    return of_rows("Driver branches", text, columns, reversed(compat.rows("drivers", "branches")), cells)


def plain(compat: Compat) -> list[Table]:
    """Rows whose own names are the columns."""
    fitting = {engine.engine: engine_image.fits(engine) for engine in engines()}

    def cells(names: Sequence[str], row: Row) -> list[str]:
        values = {**row, "stacks": fitting.get(row.get("engine", ""))}
        return [cell(values.get(name)) for name in names]

    return [
        of_rows(title, text, tuple(names.split()), rows, partial(cells, names.split()))
        for title, text, names, rows in (
            ("cuDNN", SAME_SONAME, "version soname cuda", reversed(compat.rows("cuda", "cudnn"))),
            ("TensorFlowOnSpark", OF_TFOS, A_TFOS, reversed(compat.rows("tensorflowonspark", "releases"))),
            ("Spark and Java", OF_SPARK, A_SPARK, reversed(compat.rows("spark", "lines"))),
            ("Hadoop", OF_HADOOP, "distribution first last hadoop java", compat.rows("hadoop", "distributions")),
            ("CDSW", "", "first before runtime driver_path library mig", compat.rows("cdsw", "gpu_support")),
            ("CDSW: settings", "", "name where value first before", compat.rows("cdsw", "settings")),
            ("CDSW: engines", "", "engine cdsw ubuntu pythons stacks", compat.rows("cdsw", "engines")),
            ("CDSW: facts", "", "fact value applies", compat.rows("cdsw", "facts")),
            ("Operating systems", "", "os glibc older gcc", compat.rows("platforms", "systems")),
            ("Their Pythons", OF_PYTHONS, "os ids pythons", compat.rows("platforms", "releases")),
        )
    ]


SAME_SONAME = "TensorFlow accepts a newer cuDNN than the tested one as long as the soname is the same."
A_TFOS = "version tensorflow tensorflow_distribution requires_python python_classifiers ci_spark"
OF_TFOS = (
    "`tensorflow_distribution`: under which names it finds TensorFlow. `ci_spark`: the Spark in its own tests; what was really run is in "
    "[compat/observed_stacks.yml](../../compat/observed_stacks.yml)."
)
OF_SPARK = "`pypi_hadoop`: the client in PyPI's pyspark. `gpu_scheduling`: with YARN 3.1 or newer."
A_SPARK = "line latest python java pypi_hadoop gpu_scheduling"
OF_HADOOP = (
    "YARN schedules GPUs in Hadoop 2.10 and from 3.1.0 on. In other releases every job on a host sees all of its GPUs."
)
OF_PYTHONS = "Those in the vendor's own repositories. `ids`: in /etc/os-release, treated alike."
FACTS = (
    ("tensorflow_io", "facts", "fact"),
    ("tensorflowonspark", "behaviour", "fact"),
    ("spark", "facts", "fact"),
    ("hadoop", "facts", "fact"),
    ("drivers", "rules", "rule"),
    ("python", "facts", "fact"),
    ("bazel", "facts", "fact"),
    ("bazel", "bootstrap", "fact"),
)


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
