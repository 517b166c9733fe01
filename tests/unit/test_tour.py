"""What the demo prints at its end: commands for the cluster that was made, and not for another one."""

import subprocess

import pytest

from hadoop_dl_dev.demo import images, tour
from hadoop_dl_dev.demo.cluster import Cluster


def commands(cluster: Cluster) -> list[str]:
    return [suggestion.command for suggestion in tour.suggestions(cluster)]


def test_the_same_command_again_names_the_same_stack_and_nodes():
    """make demo alone would switch the cluster to the default stack."""
    assert commands(Cluster("tf1.4-cpu-py27-el7"))[0] == "make demo STACK=tf1.4-cpu-py27-el7"
    assert commands(Cluster(data_nodes=3))[0] == "make demo DATA_NODES=3"
    assert commands(Cluster(hadoop="2.10.2"))[0] == "make demo HADOOP=2.10.2"
    assert commands(Cluster(name="other", hadoop="2.10.2"))[0].endswith(" --hadoop 2.10.2")


@pytest.mark.parametrize(("given", "option"), [("", []), ("1", ["--cdsw"]), ("1.10.5", ["--cdsw", "1.10.5"])])
def test_make_hands_the_release_of_cdsw_on(given, option):
    command = ["make", "--no-print-directory", "--dry-run", "demo", f"CDSW={given}"]
    completed = subprocess.run(command, cwd=images.REPOSITORY, capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines()[-1].split()[6:] == option
