"""The tables of docs/reference/compatibility.md: the rows of compat/ and stacks/ that the resolver reads."""

from hadoop_dl.data.compat import Compat, load
from hadoop_dl.data.stacks import Stack, load_stacks
from hadoop_dl.resolver.versions import version
from hadoop_dl_dev import compat_tables as tables_of
from hadoop_dl_dev.compat_cells import Table, cell, span


def stack_row(stack: Stack) -> list[str]:
    data = stack.data
    driver = f"{data['driver_min']}, branch {data['driver_branch']}, {data['driver_module']}" if "cuda" in data else "–"
    return [
        f"[{stack.name}](../../stacks/{stack.name}.yml)",
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
    stack_list = sorted(load_stacks(), key=lambda stack: (version(stack.data["tensorflow"]), stack.name))
    text = (
        "Complete sets with a lock of every artifact by sha256. `built`: TensorFlow must be compiled; the others are wheels. "
        "`driver`: the oldest that its CUDA allows, and the chosen branch and kind of module."
    )
    columns = (
        "stack", "for", "Python", "TensorFlow", "CUDA / cuDNN", "driver", "Keras", "reads", "tensorflow-io", "TensorFlowOnSpark",
        "Spark / Java", "glibc",
    )  # fmt: skip
    return Table("The named stacks", text, columns, [stack_row(stack) for stack in stack_list])


def tables(compat: Compat | None = None) -> str:
    matrix = compat or load()
    checked = sorted({str(content["checked"]) for content in matrix.subjects.values()})
    content = [
        stacks(),
        tables_of.tensorflow(matrix),
        tables_of.beside(matrix),
        tables_of.cuda(matrix),
        tables_of.gpus(matrix),
        tables_of.drivers(matrix),
        *tables_of.plain(matrix),
        tables_of.facts(matrix),
    ]
    dates = f"The sources were last read on {span(checked[0], checked[-1])}. `read` in compat/*.yml has each date."
    return "\n\n".join([dates, *[table.render() for table in content]]) + "\n"
