"""The product's purpose: a model trains on YARN next to its data, in every way that the documentation offers."""

import pytest

from hadoop_dl_dev.demo import tour

# tensorflow: TensorFlow reads hdfs:// itself; kafka: TensorFlow reads the topic; dataframe: Spark writes TFRecords that
# TensorFlow reads, and reads those of TensorFlow, without an option for their jar. Spark's feed is what make demo trains with.
MODES = ["tensorflow", "dataframe", "kafka"]


@pytest.mark.parametrize("mode", MODES)
def test_the_digits_are_learned(cluster, mode):
    if mode == "tensorflow" and cluster.kerberos:
        pytest.skip("dataframe trains in the same way and logs in more often")
    result = tour.train(cluster, mode)
    print(f"{cluster.stack} {mode}: {result}")
    assert result["accuracy"] >= 0.95
