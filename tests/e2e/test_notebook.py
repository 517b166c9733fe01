"""examples/notebook on the demo cluster, as its user analyst: a kernel by `deeplearning kernel`, whose cells train here and on YARN.

The packages are those that pip chose from PyPI with the stack's constraints (notebook/*.sha256, as sha256sum prints them); nodes reach no index.
tests/long/test_notebook.py has Jupyter's server.
"""

import re
import shlex
from pathlib import Path

from hadoop_dl_dev.demo import artifacts, images, kerberos, nodes
from hadoop_dl_dev.demo.shell import output

FILES = Path(__file__).with_name("notebook")
PYTHON = "import sys; print('%d.%d' % sys.version_info[:2])"
COPIES = ("examples/digits", "examples/notebook", "tests/e2e/notebook/cells.py")


def test_the_example_trains_here_and_on_yarn_and_leaves_no_process(cluster, shell, analyst):
    edge, home = cluster.container("edge1"), "/home/analyst/with-notebook"

    if cluster.kerberos:
        kerberos.log_in(cluster)
    python = analyst(f"deeplearning python -c {shlex.quote(PYTHON)}").split()[-1]
    packages = artifacts.fetch_packages(FILES / f"py{python}.sha256", images.CACHE / f"notebook-py{python}")
    nodes.execute(edge, "rm", "-rf", home)
    nodes.execute(edge, "mkdir", "-p", f"{home}/packages")
    for path in [*packages, *(images.REPOSITORY / name for name in COPIES)]:
        output(
            "docker", "cp", str(path), f"{edge}:{home}{'/packages' if path.is_file() and path.suffix != '.py' else ''}"
        )
    nodes.execute(edge, "chown", "-R", "analyst:", home)
    analyst(
        f"deeplearning venv {home}/my && {home}/my/bin/pip install --no-index --find-links {home}/packages ipykernel"
    )
    analyst(f"deeplearning kernel --venv {home}/my --gpus none example")
    text = analyst(f"cd {home} && my/bin/python cells.py notebook/digits.ipynb example")
    for place, least in (("here", 0.9), ("on 2 executors", 0.95)):
        assert float(re.findall(rf"{place}: accuracy ([\d.]+)", text)[-1]) >= least, text[-6000:]
    code, processes = shell("edge1", "pgrep -u analyst -fa 'ipykernel|tfos-submit'")
    assert (code, processes) == (1, ""), "no process is left"
