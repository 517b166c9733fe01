"""The product's purpose: a model trains on YARN next to its data, in every way that the documentation offers."""

import pytest

from hadoop_dl.demo import tour

# spark: the RDD feed; tensorflow: TensorFlow reads hdfs:// itself; kafka: TensorFlow reads the topic.
MODES = ["spark", "tensorflow", "kafka"]


@pytest.mark.parametrize("mode", MODES)
def test_the_digits_are_learned(cluster, mode):
    result = tour.train(cluster, mode)
    print(f"{cluster.stack} {mode}: {result}")
    assert result["accuracy"] >= 0.95
