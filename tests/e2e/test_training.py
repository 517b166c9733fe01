"""The product's purpose: a model trains on YARN next to its data, in every way that the documentation offers."""

import re

import pytest

from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import images, kerberos, tour
from hadoop_dl_dev.demo.shell import output

# dataframe: Spark writes TFRecords that TensorFlow reads, and reads those of TensorFlow, without an option for their jar; kafka: TensorFlow
# reads the topic. Spark's feed is what make demo trains with; test_notebook.py trains on the TFRecords that prepare.py wrote.
MODES = ["dataframe", "kafka"]


@pytest.mark.parametrize("mode", MODES)
def test_the_digits_are_learned(cluster, mode):
    result = tour.train(cluster, mode)
    print(f"{cluster.stack} {mode}: {result}")
    assert result["accuracy"] >= 0.95


def test_keras_trains_one_model_on_all_executors_and_another_process_reads_it(cluster, analyst):
    """examples/images/tfos.py: MultiWorkerMirroredStrategy, for which each worker must have the same accuracy in the end."""
    tensorflow = stacks.load_stack(cluster.stack).data["tensorflow"]
    if not (2, 4) <= tuple(int(part) for part in tensorflow.split(".")[:2]) <= (2, 15):
        pytest.skip(f"Keras of TensorFlow {tensorflow} does not know this strategy (examples/images/README.md)")

    def results(said: str) -> list[float]:
        return [float(accuracy) for accuracy in re.findall(r"^RESULT accuracy ([\d.]+)", said, re.MULTILINE)]

    model = "hdfs://master1:8020/user/analyst/images"
    output("docker", "cp", str(images.REPOSITORY / "examples/images"), f"{cluster.container('edge1')}:/home/analyst/")
    if cluster.kerberos:
        kerberos.log_in(cluster)
    text = analyst(
        f"cd images && tfos-submit --executors 2 --gpus 0 --timeout 300 --py-files images.py tfos.py --epochs 2 --output {model}"
    )
    application = re.findall(r"Submitted application (application_\w+)", text)[-1]
    first, second = results(analyst(f"tfos-submit logs {application}"))
    (served_accuracy,) = results(analyst(f"cd images && deeplearning run predict.py {model}/model"))
    assert first == second == pytest.approx(served_accuracy, abs=0.003)
    assert served_accuracy >= 0.2, "chance is 0.1"
