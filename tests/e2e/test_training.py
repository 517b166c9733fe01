"""The product's purpose: a model trains on YARN next to its data, in every way that the documentation offers."""

import pytest

from hadoop_dl_dev.demo import tour

# tensorflow: TensorFlow reads hdfs:// itself; kafka: TensorFlow reads the topic. The third way, Spark's feed, is what
# make demo, a step of `make e2e`, trains with.
MODES = ["tensorflow", "kafka"]


@pytest.mark.parametrize("mode", MODES)
def test_the_digits_are_learned(cluster, mode):
    result = tour.train(cluster, mode)
    print(f"{cluster.stack} {mode}: {result}")
    assert result["accuracy"] >= 0.95
