"""The product's purpose: a model trains on YARN next to its data, in every way that the documentation offers.

Spark's feed is what make demo, a step of `make e2e`, trains with; that TensorFlow reads hdfs:// itself, test_notebook.py asks.
"""

from hadoop_dl_dev.demo import tour


def test_the_digits_of_a_kafka_topic_are_learned(cluster):
    result = tour.train(cluster, "kafka")
    print(f"{cluster.stack}: {result}")
    assert result["accuracy"] >= 0.95
