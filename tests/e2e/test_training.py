"""The product's purpose: a model trains on YARN next to its data, in every way that the documentation offers."""

import pytest

from hadoop_dl_dev.demo import tour

# dataframe: Spark writes TFRecords that TensorFlow reads, and reads those of TensorFlow, without an option for their jar; kafka: TensorFlow
# reads the topic. Spark's feed is what make demo trains with; test_notebook.py trains on the TFRecords that prepare.py wrote.
MODES = ["dataframe", "kafka"]


@pytest.mark.parametrize("mode", MODES)
def test_the_digits_are_learned(cluster, mode):
    result = tour.train(cluster, mode)
    print(f"{cluster.stack} {mode}: {result}")
    assert result["accuracy"] >= 0.95
