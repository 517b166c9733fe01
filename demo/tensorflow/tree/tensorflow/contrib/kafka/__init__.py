"""A stand-in of tf.contrib.kafka."""

from tensorflow.python import FEATURES


class KafkaDataset(object):
    def __init__(self, topics):
        if "kafka" not in FEATURES:
            raise ImportError("_dataset_ops.so was built without Kafka")
        self.topics = topics
