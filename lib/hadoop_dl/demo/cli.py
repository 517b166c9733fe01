"""scripts/demo: images, single nodes, and the whole cluster."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hadoop_dl.demo import images, nodes
from hadoop_dl.demo.shell import DemoError, say


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="scripts/demo", description="A Hadoop cluster of containers, and the platform on it."
    )
    commands = made.add_subparsers(dest="command", required=True)
    image = commands.add_parser("image", help="build a node image if needed and print its tag")
    image.add_argument("image", choices=images.image_names())
    node = commands.add_parser("node", help="start or remove one node, as molecule's scenarios do")
    actions = node.add_subparsers(dest="action", required=True)
    start = actions.add_parser("start")
    start.add_argument("name")
    start.add_argument("--image", required=True, choices=images.image_names())
    start.add_argument("--network")
    start.add_argument("--mount", action="append", default=[], metavar="SOURCE:TARGET[:ro]")
    stop = actions.add_parser("stop")
    stop.add_argument("name", nargs="+")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0: done; 1: something the message explains; 2: misuse."""
    arguments = parser().parse_args(argv)
    try:
        return dispatch(arguments)
    except DemoError as error:
        print(f"scripts/demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nscripts/demo: interrupted; the same command continues from here.", file=sys.stderr)
        return 130


def dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command == "image":
        say(images.ensure(arguments.image))
    elif arguments.command == "node" and arguments.action == "start":
        nodes.start(arguments.name, arguments.image, network=arguments.network, mounts=arguments.mount)
    elif arguments.command == "node":
        nodes.remove(*arguments.name)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
