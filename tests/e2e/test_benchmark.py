"""examples/benchmark with the TensorFlow of the cluster's stack. There is no GPU, and it must report that."""

import pytest

from hadoop_dl_dev.demo import images
from hadoop_dl_dev.demo.shell import output

ALL = """
import sys
sys.path.insert(0, "/tmp/benchmark")
import networks
# Two cores are slow: a sample in a batch, and in each stack of a ResNet the first two of 18 blocks, between which are all kinds of layers.
networks.LARGEST = 2
networks.NETWORKS = [one[:5] + (1,) for one in networks.NETWORKS]
networks.resnet.__defaults__ = (2,)
trained = [name for name in networks.NAMES if networks.measure(name, 0)["samples_per_second"] > 0]
print("TRAINED %d of %d" % (len(trained), len(networks.NAMES)))
"""


@pytest.fixture(scope="module", autouse=True)
def _copied(cluster) -> None:
    output("docker", "cp", str(images.REPOSITORY / "examples/benchmark"), f"{cluster.container('edge1')}:/tmp/")


def test_a_network_trains_on_the_cpu_and_nothing_is_compared(shell):
    code, text = shell("edge1", "deeplearning run /tmp/benchmark/benchmark.py --seconds 1 lstm")
    assert (code, "so nothing is compared" in text) == (0, True), text
    (row,) = [line.split() for line in text.splitlines() if line.startswith("lstm ")]
    assert (float(row[3]) > 0, row[6:]) == (True, ["-", "-"])


def test_every_network_trains_with_this_tensorflow(shell):
    code, text = shell("edge1", f"cat > /tmp/all.py <<'END'\n{ALL}\nEND\ndeeplearning run --gpus none /tmp/all.py")
    assert code == 0, text
    assert "TRAINED 7 of 7" in text.splitlines()
