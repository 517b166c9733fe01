"""TensorFlowOnSpark, Spark and Java: which releases run on which."""

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache

from hadoop_dl.data.compat import Row
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.findings import Finding, against, sources, warning
from hadoop_dl.resolver.hosts import Hadoop
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.rules.keras_and_io import python_fits
from hadoop_dl.resolver.versions import listed, version


@lru_cache(maxsize=512)
def python_listed(text: str, python: str) -> bool:
    """Whether a list such as `2.7, 3.4 - 3.9` has this Python."""
    for part in text.split(","):
        first, _, last = (piece.strip() for piece in part.partition("-"))
        if version(first) <= version(python) <= version(last or first):
            return True
    return False


def line_of(release: str) -> str:
    return ".".join(release.split(".")[:2])


def untried(hadoop: Hadoop, row: Row) -> Finding:
    note = (
        f"Spark {row['line']} was not run on {hadoop.label} (Hadoop {hadoop.release}): only Spark 2 was run on Hadoop 2"
    )
    return warning(
        f"{note} (docs/reference/hadoop.md). Request pyspark=2.4, or name the site's own Spark: spark_home",
        sources(row),
    )


class Spark(Part):
    """The newest TensorFlowOnSpark that fits, on a Spark with which it was seen to run if there is one."""

    level = "spark"

    def __init__(self, catalog: BuildCatalog) -> None:
        compat = catalog.compat
        self.compat = compat
        self.releases = sorted(
            compat.rows("tensorflowonspark", "releases"), key=lambda row: version(row["version"]), reverse=True
        )
        self.lines = sorted(compat.rows("spark", "lines"), key=lambda row: version(row["line"]), reverse=True)
        self.found: dict[Hashable, list[tuple[Row, str]]] = {}
        self.observed = [row for row in compat.rows("observed_stacks", "stacks") if row["tensorflowonspark"]]
        self.results: dict[tuple[str, str, str], Row] = {}
        for row in self.observed:
            self.results.setdefault((row["tensorflowonspark"], line_of(row["pyspark"]), row["result"]), row)

    def classify(self, build: TensorflowBuild) -> Hashable:
        return build.name, build.package, build.python

    def tfos_refusal(self, build: TensorflowBuild, row: Row) -> Finding | None:
        """Why a TensorFlowOnSpark does not support a TensorFlow, or may not."""
        return self.line_refusal(build.name, row) or self.form_refusal(build, row)

    def line_refusal(self, line: str, row: Row) -> Finding | None:
        least, below = row["tensorflow"]["min"], row["tensorflow"]["below"]
        if (least and version(line) < version(least)) or (below and version(line) >= version(below)):
            span = f"{least} or newer" if least else f"older than {below}"
            text = f"TensorFlowOnSpark {row['version']} is for TensorFlow {span}"
            return against(text, sources(row), row["verified"])
        return None

    def form_refusal(self, build: TensorflowBuild, row: Row) -> Finding | None:
        label = f"TensorFlowOnSpark {row['version']}"
        if not python_fits(row["requires_python"], build.python):
            return Finding(f"{label} needs Python {row['requires_python']}", sources(row))
        names = [name.strip() for name in row["tensorflow_distribution"].split(",")]
        if "any" not in names and build.package not in names:
            return Finding(
                f"{label} takes TensorFlow under the package name {listed(names, 'or')} only, but this is {build.package}",
                sources(row),
            )
        return None

    def seen(self, tfos: str, spark: str, result: str) -> Row | None:
        """A run of this TensorFlowOnSpark on this Spark line that ended like this."""
        return self.results.get((tfos, spark, result))

    def fitting(self, build: TensorflowBuild) -> list[Row]:
        """The releases of TensorFlowOnSpark for a TensorFlow, the newest first, those with a doubt last."""
        pairs = [(row, self.line_refusal(build.name, row)) for row in self.releases]
        sure = [row for row, doubt in pairs if not doubt and not self.form_refusal(build, row)]
        return sure + [row for row, doubt in pairs if doubt and doubt.doubt]

    def sparks(self, items: Sequence[Item]) -> list[Row]:
        """The Spark lines: verified ones first, and those that share a Java with Hadoop before them."""
        rows = sorted(self.lines, key=lambda row: not row["verified"])
        for item in items:
            if isinstance(item.subject, Hadoop):
                javas = set(item.subject.java)
                rows.sort(key=lambda row: not javas & set(row["java"] or []))
        return rows

    def release(self, row: Row, pins: Sequence[Item], python: str = "") -> str | None:
        """The newest release of a line that the constraint admits, and that runs on this Python."""
        of_release = row.get("python_of_release", {})
        return next(
            (
                text
                for text in reversed(row["releases"])
                if all(item.accepts(text) for item in pins)
                and (not python or python_listed(of_release.get(text, row["python"]), python))
            ),
            None,
        )

    def javas(self, row: Row, items: Sequence[Item]) -> list[str] | None:
        """The Java versions that remain; None if the items leave none."""
        pins = [item for item in items if item.key == "java"]
        hosts = [item.subject for item in items if isinstance(item.subject, HostProfile) and item.subject.javas]
        if row["java"] is None:
            return None if pins or hosts else []
        admitted_javas = [java for java in row["java"] if all(item.accepts(java) for item in pins)]
        common_javas = [java for java in admitted_javas if all(java in (host.javas or ()) for host in hosts)]
        return common_javas or None

    # --- the rules: what `best` decides by, and what `facts` prints ----------------------------------------------------

    def spark_refusals(self, python: str, row: Row, items: Sequence[Item]) -> Iterator[Finding]:
        """Why a Spark line does not run here."""
        if not python_listed(row["python"], python):
            yield Finding(f"Spark {row['line']} runs on Python {row['python']}", sources(row))
        if self.javas(row, items) is None:
            runs = f"Spark {row['line']} runs on Java {listed(row['java'] or (), 'or')}"
            yield Finding(runs if row["java"] else f"The data has no Java for Spark {row['line']}", sources(row))
        major = row["line"].partition(".")[0]
        for item in items:
            if isinstance(item.subject, HostProfile) and item.subject.spark:
                host_major = item.subject.spark.partition(".")[0]
                if host_major != major:  # other Javas, Pythons and names of settings
                    yield Finding(f"A stack for Spark {major} does not serve Spark {host_major}", ())
        if not row["gpu_scheduling"] and any(item.key == "yarn_gpu" and item.flag for item in items):
            yield Finding(f"Spark {row['line']} does not schedule GPUs", sources(row))

    def pair_refusal(self, tfos: Row, spark: Row) -> Finding | None:
        """Why a TensorFlowOnSpark does not run on a Spark line."""
        hung = self.seen(tfos["version"], spark["line"], "hangs")
        text = f"TensorFlowOnSpark {tfos['version']} hangs on Spark {spark['line']}"
        return Finding(text, sources(hung)) if hung else None

    # --- the choice ----------------------------------------------------------------------------------------------------

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        pair = self.find(build, items)
        if pair is None:
            return None
        tfos, run = pair
        if run is None:
            return Choice()
        hadoops = [item.subject for item in items if isinstance(item.subject, Hadoop)]
        choice = self.choice(build, tfos, *run, self.javas(run[0], items) or [], hadoops)
        if not any(isinstance(item.subject, HostProfile) and item.subject.spark for item in items):
            choice.warnings += [untried(hadoop, run[0]) for hadoop in hadoops if hadoop.is_untried(run[1])]
        return choice

    def find(self, build: TensorflowBuild, items: Sequence[Item]) -> tuple[Row | None, tuple[Row, str] | None] | None:
        """The TensorFlowOnSpark and the Spark with its release, or none of the two; None if the items leave nothing."""
        pins = [item for item in items if item.key == "tensorflowonspark"]
        spark_pins = [item for item in items if item.key in ("pyspark", "java")]
        candidates: list[Row | None] = [
            row for row in self.fitting(build) if all(item.accepts(row["version"]) for item in pins)
        ]
        if all(item.absent for item in pins):
            candidates.append(None)
        for tfos in candidates:
            if tfos is None and all(item.absent for item in spark_pins):
                return None, None
            for run in self.ordered(tfos, self.runs(build.python, items))[:1]:
                return tfos, run
        return None

    def runs(self, python: str, items: Sequence[Item]) -> list[tuple[Row, str]]:
        """The Spark lines that run here, each with its release; the same for every TensorFlow on this Python."""
        key = (python, tuple((item.key, item.text, item.host_fact, item.subject) for item in items))
        if key not in self.found:
            pins = [item for item in items if item.key == "pyspark"]
            pairs = [(row, self.release(row, pins, python)) for row in self.sparks(items)]
            self.found[key] = [
                (row, release) for row, release in pairs if release and not any(self.spark_refusals(python, row, items))
            ]
        return self.found[key]

    def ordered(self, tfos: Row | None, runs: list[tuple[Row, str]]) -> list[tuple[Row, str]]:
        """Only the Sparks on which this TensorFlowOnSpark runs; those on which it was seen to run come first."""
        if tfos is None:
            return runs
        usable_runs = [run for run in runs if not self.pair_refusal(tfos, run[0])]
        return sorted(usable_runs, key=lambda run: not self.seen(tfos["version"], run[0]["line"], "ok"))

    def choice(
        self, build: TensorflowBuild, tfos: Row | None, row: Row, release: str, javas: list[str], hadoops: list[Hadoop]
    ) -> Choice:
        choice = Choice()
        if tfos:
            label = f"TensorFlowOnSpark {tfos['version']}"
            choice.values["tensorflowonspark"] = tfos["version"]
            choice.reasons.append(
                Finding(
                    f"tensorflowonspark {tfos['version']}: the newest for TensorFlow {build.name} on Python {build.python}",
                    sources(tfos),
                )
            )
            ran = any(
                entry["result"] == "ok"
                and entry["tensorflowonspark"] == tfos["version"]
                and entry["python"] == build.python
                for entry in self.observed
            )
            if not ran and not python_listed(tfos["python_classifiers"], build.python):
                choice.warnings.append(
                    warning(
                        f"{label} does not name Python {build.python} among its own, and was not seen on it",
                        sources(tfos),
                    )
                )
            if not tfos["verified"]:
                choice.warnings.append(warning(f"The data on {label} is not verified", sources(tfos)))
            if (
                not self.seen(tfos["version"], row["line"], "ok")
                and tfos["ci_spark"]
                and line_of(tfos["ci_spark"]) != row["line"]
            ):
                choice.warnings.append(
                    warning(
                        f"{label} was not seen to run on Spark {row['line']} (its own tests use {tfos['ci_spark']})",
                        sources(tfos),
                    )
                )
            if tfos["needs_pkg_resources"]:
                choice.reasons.append(
                    Finding(f"{label} imports pkg_resources: setuptools below 81 goes with it", sources(tfos))
                )
            refusal = self.tfos_refusal(build, tfos)
            if refusal:
                choice.warnings.append(refusal)
        choice.values["pyspark"] = release
        choice.reasons.append(Finding(f"pyspark {release}: runs on Python {build.python}", sources(row)))
        if build.python in row.get("python_notes", {}):
            note = f"Spark {row['line']} on Python {build.python}: {row['python_notes'][build.python]}"
            choice.warnings.append(warning(note, sources(row)))
        if not row["verified"]:
            choice.warnings.append(warning(f"The data on Spark {row['line']} is not verified", sources(row)))
        if javas:
            choice.values["java"] = javas
            choice.reasons.append(
                Finding(f"java {listed(javas, 'or')}: what Spark {row['line']} runs on", sources(row))
            )
        for hadoop in hadoops:
            if javas and hadoop.java and not set(javas) & set(hadoop.java):
                needs = "requires" if list(javas) == list(row["java"]) else "is to run on"
                note = f"{hadoop.label} runs on Java {listed(hadoop.java, 'or')}, but Spark {row['line']} {needs} Java {listed(javas, 'or')} beside it"
                choice.warnings.append(warning(note, hadoop.sources))
        return choice

    # --- why there is none ---------------------------------------------------------------------------------------------

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        java_pins = [item for item in items if item.key == "java"]
        of_hosts = [
            java for item in items if isinstance(item.subject, HostProfile) for java in item.subject.javas or ()
        ]
        if java_pins and of_hosts and not any(all(item.accepts(java) for item in java_pins) for java in of_hosts):
            yield Finding(f"{listed([item.label for item in java_pins])} was requested", ())
            yield Finding(f"the host has Java {listed(of_hosts)}", ())
            return
        all_pins = [item for item in items if item.key == "tensorflowonspark" and not item.absent]
        pins = [item for item in items if item.key == "pyspark"]
        versions = [row for row in self.releases if all_pins and all(item.accepts(row["version"]) for item in all_pins)]
        refusals = [finding for row in versions if (finding := self.tfos_refusal(build, row))]
        yield from refusals[:1]
        lines = [row for row in self.lines if self.release(row, pins)]
        lines.sort(key=lambda row: not row["java"])  # what the data does not know is no reason while it knows another
        if pins:
            for row in lines[:1]:
                yield from self.spark_refusals(build.python, row, items)
                release = self.release(row, pins)
                if (
                    release
                    and release in row.get("python_of_release", {})
                    and not self.release(row, pins, build.python)
                ):
                    yield Finding(f"Spark {release} runs on Python {row['python_of_release'][release]}", sources(row))
        else:
            yield from self.every_spark(build, lines, items)
        if versions and not refusals:
            hangs = (self.pair_refusal(versions[0], row) for row in lines)
            yield from [finding for finding in hangs if finding][:1]
            if not lines:
                yield Finding(f"TensorFlowOnSpark {versions[0]['version']} runs on Spark", sources(versions[0]))
        for item in items:
            if item.key != "hadoop":
                note = "is installed" if item.key == "host" else "was requested"
                yield Finding(f"{item.label} {note}", ())

    def every_spark(self, build: TensorflowBuild, lines: Sequence[Row], items: Sequence[Item]) -> Iterator[Finding]:
        """Reasons against the Spark lines that run on a Python, if the request names none of them."""
        rows = [row for row in lines if python_listed(row["python"], build.python)]
        findings = [next(self.spark_refusals(build.python, row, items), None) for row in rows]
        against_it = [finding for finding in findings if finding]
        if against_it and all(findings):
            javas = {java for row in rows for java in row["java"] or ()}
            if javas and all(self.javas(row, items) is None for row in rows):  # one reason, not one for each line
                note = f"Spark for Python {build.python} runs on Java {listed(sorted(javas, key=int), 'or')}"
            else:
                reasons = list(dict.fromkeys(finding.text for finding in against_it))
                note = f"For Python {build.python}: {'; '.join(reasons[:4])}"
            yield Finding(note, against_it[0].sources)
