"""The tables of docs/reference/compatibility.md, one function for each."""

from collections.abc import Sequence

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


def cudnn(compat: Compat) -> Table:
    def cells(row: Row) -> list[str]:
        return [row["version"], cell(row["soname"]), cell(row["cuda"])]

    text = "TensorFlow accepts a newer cuDNN than the tested one as long as the soname is the same."
    return of_rows("cuDNN", text, ("cuDNN", "soname", "CUDA"), reversed(compat.rows("cuda", "cudnn")), cells)


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


def tfos(compat: Compat) -> Table:
    def cells(row: Row) -> list[str]:
        least, below = row["tensorflow"]["min"], row["tensorflow"]["below"]
        range_text = " ".join([*([f"{least} or newer"] if least else []), *([f"older than {below}"] if below else [])])
        names = ("tensorflow_distribution", "requires_python", "python_classifiers", "ci_spark")
        return [row["version"], range_text or "any", *(cell(row[name]) for name in names)]

    text = (
        "`as package`: under which names it finds TensorFlow. `its tests' Spark`: the Spark in its own tests; what was really run is in "
        "[compat/observed_stacks.yml](../../compat/observed_stacks.yml)."
    )
    columns = ("TensorFlowOnSpark", "TensorFlow", "as package", "needs Python", "names Python", "its tests' Spark")
    return of_rows("TensorFlowOnSpark", text, columns, reversed(compat.rows("tensorflowonspark", "releases")), cells)


def spark(compat: Compat) -> Table:
    def cells(row: Row) -> list[str]:
        names = ("java", "pypi_hadoop", "gpu_scheduling")
        return [row["line"], row["latest"], row["python"], *(cell(row[name]) for name in names)]

    text = "`Hadoop inside`: the client in PyPI's pyspark. `schedules GPUs`: with YARN 3.1 or newer."
    columns = ("Spark", "newest", "Python", "Java", "Hadoop inside", "schedules GPUs")
    return of_rows("Spark and Java", text, columns, reversed(compat.rows("spark", "lines")), cells)


def hadoop(compat: Compat) -> Table:
    names = {"apache": "Apache", "mapr": "MapR"}

    def cells(row: Row) -> list[str]:
        name = names.get(row["distribution"], row["distribution"].upper())
        gpu = None if row["hadoop"] is None else version(row["hadoop"]) >= version("3.1.0")
        return [name, span(row["first"], row["last"]), cell(row["hadoop"]), cell(row["java"]), cell(gpu)]

    text = "YARN schedules GPUs in Hadoop 2.10 and from 3.1.0 on. In other releases every job on a host sees all of its GPUs."
    columns = ("distribution", "releases", "Hadoop", "Java", "schedules GPUs")
    return of_rows("Hadoop", text, columns, compat.rows("hadoop", "distributions"), cells)


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


def cdsw(compat: Compat) -> Table:
    fitting = {engine.engine: engine_image.fits(engine) for engine in engines()}
    rows = [
        [
            sure(row, "GPUs in sessions"),
            f"on the host {cell(row['runtime'] or 'the driver only')}; driver path {cell(row['driver_path'])}; "
            f"library in {cell(row['library'] or 'no source')}; MIG {cell({None: 'not named', False: 'refused'}[row['mig']])}",
            until(row),
            links(row["source"]),
        ]
        for row in compat.rows("cdsw", "gpu_support")
    ]
    rows += [
        [sure(row, row["name"]), f"{cell(row['value'])}, in {row['where']}", until(row), links(row["source"])]
        for row in compat.rows("cdsw", "settings")
    ]
    rows += [
        [
            sure(row, f"engine {row['engine']}"),
            f"Ubuntu {cell(row['ubuntu'] or 'in no source')}, Python {cell(row['pythons'] or 'in no source')}; "
            f"stacks: {', '.join(fitting.get(row['engine'], [])) or 'not known'}",
            row["cdsw"] or "in no source",
            links(row["source"]),
        ]
        for row in compat.rows("cdsw", "engines")
    ]
    rows += [
        [sure(row, row["fact"]), cell(row.get("value")), cell(row.get("applies")), links(row["source"])]
        for row in compat.rows("cdsw", "facts")
    ]
    return Table("CDSW", "", ("what", "value", "releases", "sources"), rows)


def until(row: Row) -> str:
    return f"{row['first']} to below {row['before']}" if row["before"] else f"{row['first']} and later"


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
                row["glibc"]
                + (f" (before {row['older']['before']}: {row['older']['glibc']})" if "older" in row else ""),
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
