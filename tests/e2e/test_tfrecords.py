"""TFRecords through Spark, with tfos-submit alone: no option names the jar that Hadoop needs for them."""

import json
import subprocess
import uuid

import pytest

JOB = """
import json
import sys

from pyspark.sql import SparkSession
from tensorflowonspark import dfutil

spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
rows = spark.createDataFrame([(number, number / 2.0, "row %d" % number) for number in range(100)], ["number", "half", "text"])
dfutil.saveAsTFRecords(rows, sys.argv[1])
back = dfutil.loadTFRecords(context, sys.argv[1])
same = sorted((row.number, row.half, row.text) for row in back.collect()) == sorted(map(tuple, rows.collect()))

read = context.newAPIHadoopFile(
    "hdfs:///user/analyst/digits/tfrecords/train",
    "org.tensorflow.hadoop.io.TFRecordFileInputFormat",
    keyClass="org.apache.hadoop.io.BytesWritable",
    valueClass="org.apache.hadoop.io.NullWritable",
)
print("RESULT " + json.dumps({"same": same, "digits": read.count()}))
"""


@pytest.fixture(scope="module")
def result(cluster):
    """What the job reports. The digits' TFRecords, written by TensorFlow itself, are in HDFS since prepare.py ran."""
    edge = cluster.container("edge1")
    script = "cat > /tmp/tfrecords.py && chmod 644 /tmp/tfrecords.py"
    subprocess.run(["docker", "exec", "-i", edge, "sh", "-c", script], input=JOB, text=True, check=True)
    prepare = "cd digits && tfos-submit --local prepare.py hdfs:///user/analyst/digits"
    target = f"hdfs:///user/analyst/tfrecords-{uuid.uuid4().hex}"
    submit = f"{prepare} && tfos-submit --memory 2g --timeout 300 /tmp/tfrecords.py {target}"
    done = subprocess.run(
        ["docker", "exec", edge, "su", "-", "analyst", "-c", submit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))[7:])


def test_a_data_frame_survives_the_way_through_tfrecords(result):
    assert result["same"]


def test_spark_reads_the_tfrecords_that_tensorflow_wrote(result):
    assert result["digits"] == 1437
