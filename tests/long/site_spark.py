"""A site's own Spark on a demo cluster: Apache's pyspark in a parcel on every host; edge1 has the settings that Cloudera Manager writes."""

import re
import subprocess

from hadoop_dl_dev.demo import artifacts, cluster, images, nodes

VERSIONS = {
    "2.4.8": "3a19b71b8dc8dd91ebc943604a05e1ab01bce052456d42937035632d852d78dc",
    "2.3.4": "414aa225e11d5c54339ae7dbbd63326d6e8b2f2b7c58466942c027cd86b69198",
}
PARCELS = "/opt/cloudera/parcels"
HOME = f"{PARCELS}/SPARK2/lib/spark2"
EVENTS = "/user/spark/spark2ApplicationHistory"
# The names and forms of a CDH 5 gateway; the Python that it names is not the one of jobs by tfos-submit.
SPARK_ENV = f"""\
export SPARK_CONF_DIR=${{SPARK_CONF_DIR:-/etc/spark2/conf}}
export SPARK_HOME={HOME}
export HADOOP_HOME=/opt/hadoop
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$HADOOP_HOME/lib/native
export HADOOP_CONF_DIR=${{HADOOP_CONF_DIR:-$SPARK_CONF_DIR/yarn-conf}}
for lib in "$SPARK_HOME"/python/lib/*.zip; do
    PYSPARK_ARCHIVES_PATH=${{PYSPARK_ARCHIVES_PATH:+$PYSPARK_ARCHIVES_PATH,}}local:$lib
done
export PYSPARK_PYTHON=${{PYSPARK_PYTHON:-/usr/bin/python3}}
export OF_THE_SITE=spark-env.sh
"""
SPARK_DEFAULTS = f"""\
spark.master=yarn
spark.submit.deployMode=client
spark.dynamicAllocation.enabled=true
spark.dynamicAllocation.minExecutors=0
spark.eventLog.enabled=true
spark.eventLog.dir=hdfs://{EVENTS}
spark.serializer=org.apache.spark.serializer.KryoSerializer
spark.yarn.jars=local:{HOME}/jars/*
spark.driver.extraLibraryPath=/opt/hadoop/lib/native
spark.executor.extraLibraryPath=/opt/hadoop/lib/native
spark.hadoop.yarn.application.classpath=
spark.yarn.config.gatewayPath={PARCELS}
spark.yarn.config.replacementPath={PARCELS}
spark.executorEnv.OF_THE_SITE=spark-defaults.conf
spark.yarn.appMasterEnv.OF_THE_SITE=spark-defaults.conf
spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON=/usr/bin/python3
"""
# Without one, Spark 2.3.4 of PyPI logs to the standard output.
LOG4J = """\
log4j.rootCategory=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n
"""
SETTINGS = {"spark-env.sh": SPARK_ENV, "spark-defaults.conf": SPARK_DEFAULTS, "log4j.properties": LOG4J}
# Which pyspark, Python and setting of the site a process has; the Python of another environment has no TensorFlow 1.15. The last action fails.
ASK = """\
import os
from pyspark import SparkContext

def answer(_):
    import of_the_user, pyspark, tensorflow
    return [" ".join([pyspark.__file__, pyspark.__version__, tensorflow.__version__, os.environ.get("OF_THE_SITE", "-")])]

context = SparkContext()
java = context._jvm.System.getProperty("java.specification.version")
names = ("spark.serializer", "spark.executor.memoryOverhead", "spark.yarn.executor.memoryOverhead")
print(" ".join(["JVM", java] + [str(context.getConf().get(name)) for name in names]))
print("DRIVER " + answer(None)[0])
print("EXECUTOR " + " ".join(set(context.parallelize(range(2), 2).flatMap(answer).collect())))
context.parallelize(range(2), 2).map(lambda number: number // 0).count()
"""


def install(found: cluster.Cluster) -> None:
    index = f"{artifacts.index_url() or 'https://pypi.org/simple'}/pyspark/"
    archives = [artifacts.Artifact(f"pyspark-{version}.tar.gz", sha256, index) for version, sha256 in VERSIONS.items()]
    paths = dict(zip(VERSIONS, artifacts.fetch_all(archives, images.CACHE / "sources"), strict=True))
    for host in ("edge1", *found.data_hosts):
        for version, path in paths.items():
            name, home = f"pyspark-{version}", f"{PARCELS}/SPARK2-{version}/lib/spark2"
            moves = f"mkdir -p {home} && cd {home} && mv /tmp/{name}/deps/* . && mkdir python && mv /tmp/{name}/pyspark /tmp/{name}/lib python"
            command = f"tar -xz --no-same-owner -C /tmp && {moves} && ln -s /etc/spark2/conf conf"
            with path.open("rb") as archive:
                subprocess.run(
                    ["docker", "exec", "-i", found.container(host), "sh", "-ec", command], stdin=archive, check=True
                )
    for name, text in SETTINGS.items():
        write = f'mkdir -p /etc/spark2/conf; printf %s "$1" > /etc/spark2/conf/{name}'
        nodes.execute(found.container("edge1"), "sh", "-ec", write, "sh", text)
    events = f"hdfs dfs -mkdir -p {EVENTS} && hdfs dfs -chmod 1777 {EVENTS}"
    nodes.execute(found.container("edge1"), "su", "hdfs", "-s", "/bin/sh", "-c", events)


def activate(found: cluster.Cluster, version: str) -> None:
    """As a parcel of another version is activated: spark_home stays the same path."""
    for host in ("edge1", *found.data_hosts):
        nodes.execute(found.container(host), "ln", "-sfn", f"SPARK2-{version}", f"{PARCELS}/SPARK2")


def ask(found: cluster.Cluster, submit: str) -> tuple[int, str]:
    """The exit status of a job of ASK with a package of the user's own, and what was said."""
    venv = "exec 2>&1; rm -rf own && deeplearning venv own && touch own/lib/python2.7/site-packages/of_the_user.py"
    command = f"{venv}; cat > ask.py; {submit} --venv own --memory 1g --timeout 300 ask.py"
    argv = ["docker", "exec", "-i", found.container("edge1"), "su", "-", "analyst", "-c", command]
    completed = subprocess.run(argv, input=ASK, stdout=subprocess.PIPE, text=True, check=False)
    return completed.returncode, completed.stdout


def uploaded(said: str) -> list[str]:
    """The files that the job brought, sorted, without its settings."""
    names = re.findall(r"Uploading resource file:\S+/([^/#\s]+)\S* -> ", said)
    return sorted(re.sub(r"\d{9,}", "", name) for name in names if not name.startswith("__spark_conf__"))
