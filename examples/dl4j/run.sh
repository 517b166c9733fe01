#!/bin/sh
# The example on an edge node, as the user who runs it: sh run.sh
# Requires the digits in HDFS (../digits: tfos-submit --local prepare.py hdfs:///user/me/digits) and the jars (sh fetch.sh).
set -eu
cd "$(dirname "$0")"
client=/opt/deeplearning/current/.deeplearning/client
# Java, Hadoop's configuration, and where Spark is
. "$client/hadoop-env.sh"
unset CLASSPATH
spark=${SPARK_HOME:-$(sed -n 's/.*"spark_home": "\(.*\)".*/\1/p' "$client/tfos-submit.json")}
jars=$(find jars -name '*.jar' | sort | paste -sd, -)
[ -n "$jars" ] || {
    echo "run.sh: the jars of DL4J are required in $PWD/jars, but there are none. Run: sh fetch.sh" >&2
    exit 2
}
# Spark's jars have Scala's compiler, so no JDK is needed.
"$JAVA_HOME/bin/java" -cp "$spark/jars/*:jars/*" scala.tools.nsc.Main -usejavacp -d digits.jar Digits.scala
# ND4J has its arrays outside the heap: the limit of JavaCPP for them is a part of the memory beside the heap.
offheap="-Dorg.bytedeco.javacpp.maxbytes=1g -Dorg.bytedeco.javacpp.maxphysicalbytes=2560m"
exec "$spark/bin/spark-submit" --master yarn --class Digits --properties-file "$client/spark-defaults.conf" \
    --conf spark.authenticate=true --conf spark.network.crypto.enabled=true --conf spark.shuffle.service.enabled=false \
    --conf spark.dynamicAllocation.enabled=false --num-executors "${EXECUTORS:-2}" --executor-memory 1g \
    --conf spark.executor.memoryOverhead=2g --conf "spark.executor.extraJavaOptions=$offheap" --driver-memory 2g \
    --conf spark.serializer=org.apache.spark.serializer.JavaSerializer --jars "$jars" digits.jar "hdfs:///user/$(id -un)/digits" 0.9
