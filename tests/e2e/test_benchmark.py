"""deeplearning benchmark with the TensorFlow of the cluster's stack. There is no GPU, and it must say so."""

import json

ALL = """
import sys
sys.path.insert(0, "/opt/deeplearning/bin/deeplearning")
from deeplearning_command import networks
# Two cores are slow: a sample in a batch, and in each stack of a ResNet the first two of 18 blocks, between which are all kinds of layers.
networks.NETWORKS = [one[:5] + (1,) for one in networks.NETWORKS]
networks.resnet.__defaults__ = (2,)
trained = [name for name in networks.NAMES if networks.measure(name, 0)["samples_per_second"] > 0]
print("TRAINED %d of %d" % (len(trained), len(networks.NAMES)))
"""


def test_a_network_trains_on_the_cpu_and_nothing_is_compared(shell):
    command = "deeplearning benchmark --seconds 0.1 --networks lstm --output /tmp/benchmark.json"
    code, said = shell("edge1", f"su - analyst -c '{command}'")
    assert code == 0, said
    assert "nothing was compared" in said
    (one,) = json.loads(shell("edge1", "cat /tmp/benchmark.json")[1])["networks"]
    assert one["cpu"] > 0
    assert (one["network"], one["gpu"], one["factor"], one["problem"]) == ("lstm", None, None, None)


def test_every_network_trains_with_this_tensorflow(shell):
    code, said = shell("edge1", f"cat > /tmp/all.py <<'END'\n{ALL}\nEND\ndeeplearning run --gpus none /tmp/all.py")
    assert code == 0, said
    assert "TRAINED 7 of 7" in said.splitlines()
