"""TensorBoard's page of a training of examples/digits, in a browser: the scalars with their curves, and the nodes of the graph."""

import urllib.parse
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import browser
import loopback

from hadoop_dl_dev.demo import services

HERE = Path(__file__).parent
FOREIGN = "--disable-web-security"  # the driver has another address than the page into which it looks
SCALARS = ("accuracy", "loss")
FEWEST = 5  # points of a curve: one every 20 steps
NETWORK = {"tf1": "conv2d", "tf2": "sequential"}  # a node of the graph of train_tf1.py and of train_tf2.py


class Driver(loopback.Quiet, SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=str(HERE))


def wait(page: str, tag: str = SCALARS[-1]) -> None:
    """Until TensorBoard has read the events: it listens before. A run's graph comes before its scalars."""

    def problem() -> str | None:
        with services.OPENER.open(f"{page}/data/plugin/scalars/tags", timeout=10) as answer:
            tags = answer.read().decode()
        return None if tag in tags else f"the tags are {tags}"

    services.until(page, problem, seconds=60)


def seen(page: str, profile: Path) -> dict[str, Any]:
    """scalars: the number of points of each tag's curve. graphs: the names of the nodes."""
    with loopback.served(Driver) as address:
        driver = f"{address}/tensorboard_driver.html?{urllib.parse.urlencode({'page': page})}"
        return browser.answers(driver, profile, FOREIGN)


def problems(found: dict[str, Any], stack: str) -> list[str]:
    """What the page of a training with that stack must show and does not."""
    curves = [f"{tag}: {found['scalars'].get(tag)} points" for tag in SCALARS if found["scalars"].get(tag, 0) < FEWEST]
    node = NETWORK[stack[:3]]
    return [*curves, *([] if node in found["graphs"] else [f"no node {node} in the graph: {found['graphs']}"])]
