"""A site that builds TensorFlow, as docs/operate/build.md prepares one, with the stand-in of TensorFlow's sources (demo/tensorflow) and bazel's real executables.

What a site downloads is served by one of its hosts on a port of its own: the mirror fetches it from there (mirror_files), and every host takes it from
the mirror. `scripts/demo build-host` makes the demo such a site.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.stacks import load_stack
from hadoop_dl_dev.demo import bazel_files, nodes, tensorflow_source
from hadoop_dl_dev.demo.cluster import Cluster
from hadoop_dl_dev.demo.shell import DemoError, run, say

Json = dict[str, Any]
PORT = 8001
DOWNLOADS = f"http://127.0.0.1:{PORT}"
BASE = "tf1.15-cpu-py27-el7"  # whose locked packages a stack of the stand-in has
PACKAGES = ("numpy", "six", "kafka-python")
BUILD_HOST = "edge1"
CONVOLVES = "test_tensorflow_computes_on_the_cpu_where_gpus_are_hidden"  # the stand-in has a product of matrices alone


@dataclass(frozen=True)
class Release:
    """A release of the stand-in, and the bazel that builds it: its sha256 as npm has it."""

    version: str
    bazel: str
    sha256: str
    stack: str

    @property
    def program(self) -> str:
        return f"bazel-{self.bazel}-linux-x86_64"

    @property
    def bundle(self) -> str:
        return f"tensorflow-v{self.version}.bundle"


BAZEL_0_26 = ("0.26.1", "6c50e142a0a405d3d8598050d6c1b3920c8cdb82a7ffca6fc067cb474275148f")
BAZEL_0_28 = ("0.28.1", "daa27fbf9213b3dbc8509a8481f7d99cce6815cf54c50d5d3af5ec2b4c41d31f")
ONE = Release("1.15.0", *BAZEL_0_26, "tf1.15-fixture-py27-el7")
TWO = Release("2.1.0", *BAZEL_0_28, "tf2.1-fixture-py27-el7")
HELD = Release(tensorflow_source.HELD, *BAZEL_0_26, "tf2.0-held-py27-el7")


def digests() -> Json:
    """Commit and sha256 of each bundle, sha256 of each archive."""
    content: Json = json.loads((tensorflow_source.ensure() / "sources.json").read_text(encoding="utf-8"))
    return content


def write_stack(directory: Path, release: Release, *, spark: bool = False) -> None:
    """A stack that is built, with nothing but what the stand-in imports, and Spark where jobs run with it."""
    base = load_stack(BASE)
    left_out = ("keras", "sources") if spark else ("keras", "sources", "tensorflowonspark", "pyspark", "files", "java")
    spec = {key: value for key, value in base.data.items() if key not in left_out}
    spec |= {"name": release.stack, "description": f"A stand-in of TensorFlow {release.version}, built by this site"}
    spec |= {"tensorflow": release.version, "tensorflow_source": "built", "tensorflow_package": "tensorflow"}
    spec |= {"hdfs": spark, "kafka": release.version.startswith("1."), "sources": []}
    spec |= {"bazel": release.bazel, "tensorflow_commit": digests()[release.version]["commit"]}
    spec.pop("requirements")  # its lock is written here
    (directory / "locks").mkdir(parents=True, exist_ok=True)
    (directory / f"{release.stack}.yml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    lock = base.lock("2.7")
    section = [entry.line() for entry in lock.entries if entry.project in PACKAGES]
    text = f"{lock.component('pip')}\n# component: tensorflow\n" + "\n".join(section) + "\n"
    if spark:
        entries = [entry.line() for entry in lock.entries if entry.project == "tensorflowonspark"]
        text += "\n# component: tensorflowonspark\n" + "\n".join(entries) + "\n"
    (directory / "locks" / f"{release.stack}.txt").write_text(text, encoding="utf-8")


def variables(release: Release, server: str = "{{ mirror_url }}/files") -> Json:
    """The variables of the inventory in docs/operate/build.md."""
    sources = digests()
    sums = {release.program: release.sha256, release.bundle: sources[release.version]["sha256"]}
    archives = {name: sources[name]["sha256"] for name in sources if name.endswith(".tar.gz")}
    files = {name: {"file": f"{server}/{name}", "sha256": sha256} for name, sha256 in {**sums, **archives}.items()}
    return {
        "deeplearning_request": release.stack,
        "bazel_files": {release.bazel: files[release.program]},
        "tensorflow_build_source": files[release.bundle],
        "tensorflow_build_archives": {name: files[name] for name in archives},
        "tensorflow_build_disk_min_mb": 1000,
        "tensorflow_build_memory_min_mb": 1000,
    }


def mirror_files(release: Release) -> Json:
    """The same files for the mirror, from where a site downloads them."""
    settings = variables(release, DOWNLOADS)
    files: list[Json] = [*settings["bazel_files"].values(), *settings["tensorflow_build_archives"].values()]
    files.append(settings["tensorflow_build_source"])
    return {str(file["file"]).rpartition("/")[2]: file for file in files}


def serve(node: str) -> None:
    """Serve on a port of the mirror host what a site's mirror fetches from the internet."""
    directory = "/srv/downloads"
    if nodes.succeeds(node, "systemctl", "is-active", "downloads"):
        return
    bazel = bazel_files.ensure()
    run("docker", "cp", str(tensorflow_source.ensure()), f"{node}:{directory}")
    for release in (ONE, TWO):
        run("docker", "cp", str(bazel / release.program), f"{node}:{directory}/{release.program}")
    server = ["/usr/bin/python3", "-m", "http.server", str(PORT), "--bind", "127.0.0.1", "--directory", directory]
    nodes.execute(node, "systemd-run", "--quiet", "--unit", "downloads", *server)


def install_compiler(node: str, image: str, packages: tuple[str, ...] = ()) -> None:
    """Debian's packages; by default compiler, git and Python's headers, as the site has them on its build host."""
    if nodes.succeeds(node, "test", "-x", "/usr/bin/g++"):
        return
    fetched = bazel_files.compiler(image, packages or bazel_files.BUILDING[image])
    run("docker", "cp", str(fetched), f"{node}:/srv/compiler")
    nodes.execute(node, "sh", "-c", "dpkg --install --force-unsafe-io /srv/compiler/*.deb > /dev/null")


def prepare(cluster: Cluster, release: Release = ONE) -> None:
    """Make the demo a site that builds the stand-in. scripts/demo up restores it."""
    if cluster.image != "el7":
        raise DemoError(
            f"The stand-in of TensorFlow 1.15 is built on el7 nodes, but this demo's are {cluster.image}. Start one for {BASE}: scripts/demo up --stack {BASE}"
        )
    settings = cluster.inventory / "group_vars" / "all.yml"
    if not settings.exists():
        raise DemoError("The demo's cluster is required, but there is none. Start it first: scripts/demo up")
    say(f"    {BUILD_HOST} gets a compiler, mirror1 the sources and bazel {release.bazel} …")
    serve(cluster.container("mirror1"))
    install_compiler(cluster.container(BUILD_HOST), cluster.image)
    write_stack(cluster.inventory / "stacks", release, spark=True)
    text = settings.read_text(encoding="utf-8")
    changed = {**yaml.safe_load(text), **variables(release), "mirror_files": mirror_files(release)}
    changed["verify_expected_failures"] = [*changed["verify_expected_failures"], CONVOLVES]
    head = "---\n# Written by scripts/demo build-host; scripts/demo up writes the one of before.\n"
    settings.write_text(head + yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")
    group: Json = {"build_hosts": {"hosts": {BUILD_HOST: {"tensorboard_services": []}}}}  # it has no TensorBoard
    (cluster.inventory / "build.yml").write_text(yaml.safe_dump(group), encoding="utf-8")
    inventory = (
        cluster.inventory.relative_to(Path.cwd()) if cluster.inventory.is_relative_to(Path.cwd()) else cluster.inventory
    )
    say(f"{release.stack} is requested. Next:")
    for playbook in ("playbooks/build_tensorflow.yml", "site.yml", "playbooks/verify.yml"):
        say(f"    .venv/bin/ansible-playbook -i {inventory} {playbook}")
