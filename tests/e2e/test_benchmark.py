"""deeplearning benchmark with the TensorFlow of the cluster's stack. There is no GPU, and it must report that."""

import json

ALL = """
import sys
sys.path.insert(0, "/opt/deeplearning/bin/deeplearning")
from deeplearning_command import networks
# Two cores are slow: a sample in a batch, and in each stack of a ResNet the first two of 18 blocks, between which are all kinds of layers.
networks.LARGEST = 2
networks.NETWORKS = [one[:5] + (1,) for one in networks.NETWORKS]
networks.resnet.__defaults__ = (2,)
trained = [name for name in networks.NAMES if networks.measure(name, 0)["samples_per_second"] > 0]
print("TRAINED %d of %d" % (len(trained), len(networks.NAMES)))
"""


def test_a_network_trains_on_the_cpu_and_nothing_is_compared(shell):
    code, output = shell("edge1", "deeplearning benchmark --networks lstm --seconds 1 --output -")
    assert code == 0, output
    assert "nothing was compared" in output
    (row,) = json.loads(next(line for line in output.splitlines() if line.startswith("{")))["networks"]
    assert row["cpu"] > 0
    assert (row["network"], row["gpu"], row["factor"], row["problem"]) == ("lstm", None, None, None)


def test_every_network_trains_with_this_tensorflow(shell):
    code, output = shell("edge1", f"cat > /tmp/all.py <<'END'\n{ALL}\nEND\ndeeplearning run --gpus none /tmp/all.py")
    assert code == 0, output
    assert "TRAINED 7 of 7" in output.splitlines()
