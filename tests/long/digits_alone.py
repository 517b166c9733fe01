"""For the Python of an environment: examples/digits (argument 1) trains in this process alone and writes its events to argument 2."""

import argparse
import importlib
import sys

examples, output = sys.argv[1:]
sys.path.insert(0, examples)
digits = importlib.import_module("digits")
storage = importlib.import_module("storage")


class Context:
    """TensorFlowOnSpark's, in a cluster of one."""

    job_name, task_index, num_workers = "chief", 0, 1
    cluster_spec = {"chief": ["127.0.0.1:0"]}

    def __init__(self, rows):
        self.blocks = digits.blocks([digits.parse(row) for row in rows], 64, 5)

    def get_data_feed(self):
        return self

    def next_batch(self, size):
        return [next(self.blocks)]

    def should_stop(self):
        return False

    def terminate(self):
        pass


rows = digits.split(digits.lines())[0]
arguments = argparse.Namespace(output=output, rows=len(rows), epochs=5, batch_size=64, input_mode="spark", num_gpus=0)
major = storage.version(storage.tensorflow())[0]
importlib.import_module(f"train_tf{major}").train(arguments, Context(rows))
