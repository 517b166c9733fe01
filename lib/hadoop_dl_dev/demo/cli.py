"""scripts/demo: images, single nodes, and the whole cluster."""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import (
    build_site,
    cluster,
    images,
    inventory,
    kerberos,
    nodes,
    prerequisites,
    services,
    tour,
    workbench,
)
from hadoop_dl_dev.demo.shell import DemoError, phase, say


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="A Hadoop cluster of containers, and the platform on it."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    name_option = argparse.ArgumentParser(add_help=False)
    name_option.add_argument("--name", default=cluster.DEFAULT_NAME, help="prefix of the containers")
    node = commands.add_parser("node", help="start or remove one node, as molecule's scenarios do")
    actions = node.add_subparsers(metavar="ACTION", required=True)
    start = actions.add_parser("start")
    start.add_argument("name")
    start.add_argument("--image", required=True, choices=images.image_names())
    start.add_argument("--mount", action="append", default=[], metavar="SOURCE:TARGET[:ro]")
    start.set_defaults(act=start_node)
    stop = actions.add_parser("stop")
    stop.add_argument("name", nargs="+")
    stop.set_defaults(act=lambda arguments: nodes.remove(*arguments.name))
    for name, text, act in (
        (
            "run",
            "everything: the cluster, site.yml, a training job, a summary",
            lambda arguments: tour.run_all(asked(arguments), up),
        ),
        ("up", "the cluster alone", lambda arguments: up(asked(arguments))),
    ):
        command = commands.add_parser(name, help=text, parents=[name_option])
        command.set_defaults(act=act)
        names = ", ".join(stacks.stack_names())
        command.add_argument("--stack", default=cluster.Cluster.stack, help=f"one of: {names}")
        command.add_argument("--data-nodes", type=int, default=2)
        command.add_argument(
            "--cdsw",
            nargs="?",
            default="",
            const=workbench.KINDS[0],
            choices=workbench.KINDS,
            help=f"also a host of CDSW, {workbench.NAME}, with a GPU and Docker (default: {workbench.KINDS[0]})",
        )
        security = "HDFS and YARN with Kerberos; its KDC is on master1"
        command.add_argument("--kerberos", action="store_true", help=security)
        versions = sorted({images.hadoop(name) for name in images.image_names()})
        command.add_argument("--hadoop", default="", choices=versions, help="its version")
        text = "so many data nodes have GPUs, a stand-in of nvidia-smi; without it all"
        command.add_argument("--gpu-nodes", type=int, help=text)
    text = "make edge1 a build host, and request a stack whose TensorFlow (a stand-in) is built there"
    build = commands.add_parser("build-host", help=text, parents=[name_option])
    build.set_defaults(act=lambda arguments: build_site.prepare(cluster.recorded(arguments.name)))
    remove = commands.add_parser("down", help="remove the cluster", parents=[name_option])
    remove.add_argument("--everything", action="store_true", help="images and downloads, too")
    remove.set_defaults(act=lambda arguments: down(arguments.name, arguments.everything))
    show = commands.add_parser("status", help="what runs on which node", parents=[name_option])
    show.set_defaults(act=lambda arguments: status(arguments.name))
    enter = commands.add_parser("shell", help="open a shell on a node", parents=[name_option])
    enter.add_argument("host")
    enter.set_defaults(act=lambda arguments: shell(arguments.name, arguments.host))
    return parser


def asked(arguments: argparse.Namespace) -> cluster.Cluster:
    names = ("stack", "data_nodes", "name", "cdsw", "kerberos", "hadoop", "gpu_nodes")
    return cluster.Cluster(**{name: getattr(arguments, name) for name in names})


def start_node(arguments: argparse.Namespace) -> None:
    nodes.start(arguments.name, arguments.image, nodes.options_of(arguments.name, mounts=arguments.mount))


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0: done; 1: something the message explains; 2: misuse."""
    arguments = parser().parse_args(argv)
    try:
        status: int | None = arguments.act(arguments)
    except (DemoError, stacks.UnknownStack) as error:
        print(f"scripts/demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nscripts/demo: interrupted; the same command continues from here.", file=sys.stderr)
        return 130
    return status or 0


def up(
    demo: cluster.Cluster,
    times: list[tuple[str, float]] | None = None,
    meanwhile: Callable[[cluster.Cluster], object] = lambda _: None,
) -> None:
    """Everything below site.yml. `meanwhile` is called while the services start: hosts can be reached then."""
    with phase("What this machine needs", times):
        prerequisites.ensure(demo.name, workbench.NAME if demo.cdsw else "")
    with phase(f"Nodes for {demo.stack}", times):
        cluster.start(demo)
        if demo.kerberos:
            kerberos.prepare(demo)
        services.start(demo)
    if demo.cdsw:
        with phase(f"Docker, a GPU and CDSW {demo.cdsw} on {workbench.NAME}", times):
            workbench.Host(demo.container(workbench.NAME)).prepare(demo.cdsw)
    with phase("SSH", times):
        inventory.write(demo)
        cluster.make_reachable(demo)
    with phase("HDFS, YARN, Kafka, and the mirror", times), ThreadPoolExecutor(1) as pool:
        mirror = pool.submit(meanwhile, demo)
        services.wait(demo)
        mirror.result()


def down(name: str, everything: bool) -> int:
    removed = cluster.down(name)
    say(f"Removed {len(removed)} nodes, their network, keys and inventory." if removed else "There is no demo cluster.")
    if not everything:
        say("Images and downloads (.cache/) stay for the next time: scripts/demo down --everything removes them, too.")
        return 0
    stay = cluster.remove_downloads()
    say("Removed images and downloads." + (f" In use by other containers, and kept: {', '.join(stay)}" if stay else ""))
    return 0


def status(name: str) -> int:
    if not cluster.existing(name):
        say("There is no demo cluster: make demo")
        return 1
    problems = services.status(cluster.recorded(name))
    if problems:
        say(f"Problems: {'; '.join(problems)}. make demo starts what does not run.")
    return 1 if problems else 0


def shell(name: str, host: str) -> int:
    container = f"{name}-{host}"
    if container not in cluster.existing(name):
        names = ", ".join(sorted(node.removeprefix(f"{name}-") for node in cluster.existing(name)))
        raise DemoError(
            f"there is no node {host}. " + (f"Nodes: {names}." if names else "The demo is not up: make demo")
        )
    command = ["docker", "exec", "--interactive", "--tty", container, "bash", "--login"]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
