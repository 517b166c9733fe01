"""The demo cluster's parts that need no engine: images' tags, locks, prerequisites, the inventory."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faulty_server import serving_files
from python_files import write_script

from hadoop_dl_dev.demo import artifacts, cluster, images, inventory, prerequisites, signed_packages
from hadoop_dl_dev.demo.shell import DemoError, pipe


@pytest.mark.parametrize(
    ("tag", "image", "file", "changes"),
    [
        (images.tag, "el7", "README.md", False),
        (images.tag, "el7", "rootfs/etc/systemd/system/kafka.service", True),
        (images.tag, "el7", "hadoop/jars-3.1.1.sha256", False),
        (images.tag, "el7-hadoop2", "hadoop/jars-3.1.1.sha256", False),
        (images.tag, "el7-hadoop31", "hadoop/jars-3.1.1.sha256", True),
        (images.base_tag, "el9", "rootfs/etc/new", False),
    ],
)
def test_an_image_keeps_its_tag_until_something_in_it_changes(tag, image, file, changes, tmp_path, monkeypatch):
    data = shutil.copytree(images.DATA, tmp_path / "demo")
    monkeypatch.setattr(images, "DATA", data)
    before = tag(image)
    with (data / file).open("a", encoding="utf-8") as handle:
        handle.write(f"{'0' * 64}  a/new.jar\n")
    assert (tag(image) != before) is changes


def test_an_operators_own_image_is_taken(monkeypatch):
    monkeypatch.setenv("NODE_IMAGE_EL7", "registry.example.com/rhel7-node:1")
    assert images.tag("el7") == "registry.example.com/rhel7-node:1"


def test_an_unknown_image_lists_the_known_ones():
    with pytest.raises(DemoError, match="el7, el8, el9, el10, debian12"):
        images.tag("el11")


def test_a_suite_that_moved_is_found_in_the_archive_and_one_that_nobody_has_names_every_mirror(monkeypatch):
    def answer(url: str, timeout: float) -> object:
        if "archive" not in url:
            raise OSError("404")
        return open(os.devnull, "rb")

    monkeypatch.setattr(images.urllib.request, "urlopen", answer)
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    archive = "http://archive.example.org"
    assert images.find_mirror("bullseye", ["http://deb.example.org", archive]) == (archive, True)
    with pytest.raises(DemoError, match=r"http://one\.example: 404.*DEBIAN_MIRROR"):
        images.find_mirror("bullseye", ["http://one.example"])


def test_the_failure_of_either_end_of_a_pipe_is_told():
    assert pipe(["echo", "one"], ["cat"]) == "one\n"
    with pytest.raises(DemoError, match="exit 3.*status 3:\n    why"):
        pipe(["sh", "-c", "echo part; echo why >&2; exit 3"], ["cat"])
    with pytest.raises(DemoError, match="status 4:\n    full"):  # the first one would write for ever
        pipe(["yes"], ["sh", "-c", "echo full >&2; exit 4"])
    with pytest.raises(DemoError, match="no-such-command is required"):
        pipe(["no-such-command"], ["cat"])


def test_a_torn_lock_names_its_line(tmp_path):
    (tmp_path / "lock").write_text("a" * 64 + "  a.jar\nnonsense\n", encoding="utf-8")
    with pytest.raises(DemoError, match="lock:2"):
        artifacts.read_lock(tmp_path / "lock")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory with a.jar, and the address that serves it."""
    root = tmp_path / "served"
    root.mkdir()
    (root / "a.jar").write_bytes(b"jar")
    with serving_files(root) as url:
        yield root, url


JAR = hashlib.sha256(b"jar").hexdigest()


@pytest.mark.parametrize("before", [None, b"ja"], ids=["missing", "incomplete"])
def test_what_is_fetched_is_what_the_lock_says(served, tmp_path, before):
    if before:
        (tmp_path / "a.jar").write_bytes(before)
    artifact = artifacts.Artifact("a.jar", JAR, f"{served[1]}/a.jar")
    assert artifacts.fetch_all([artifact], tmp_path)[0].read_bytes() == b"jar"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("other.jar", "a.jar with sha256 .* is required, but .*/other.jar delivered 5 bytes with sha256"),
        ("login.html", "answers with a web page instead .a login page"),
        ("project/", "a.jar is required, but .* lists 1 files of project without it"),
        ("login/", "login is required, but .* answers something that lists no files"),
    ],
)
def test_what_is_not_the_artifact_is_refused_and_leaves_nothing(served, tmp_path, place, words):
    root, url = served
    page = "<html>please log in</html>"
    for name, text in (
        ("other.jar", "other"),
        ("login.html", page),
        ("login/index.html", page),
        ("project/index.html", '<a href="../b-1.tar.gz">b</a>'),
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    with pytest.raises(DemoError, match=f"{words}.*variables of the environment: https_proxy"):
        artifacts.fetch_all([artifacts.Artifact("a.jar", JAR, f"{url}/{place}")], tmp_path / "out")
    assert not (tmp_path / "out/a.jar").exists()


def test_a_file_of_a_project_is_found_by_its_digest(served, tmp_path):
    root, url = served
    (root / "x-1.tar.gz").write_bytes(b"jar")
    (root / "simple").mkdir()
    (root / "simple/index.html").write_text(f'<a href="../x-1.tar.gz#sha256={JAR}">x</a>', encoding="utf-8")
    artifact = artifacts.Artifact("x-1.tar.gz", JAR, f"{url}/simple/")
    assert artifacts.fetch_all([artifact], tmp_path / "out")[0].read_bytes() == b"jar"


def test_all_that_a_machine_lacks_is_said_at_once():
    poor = prerequisites.Machine(
        root=False,
        user="ann",
        engine=False,
        packages=["rpm"],
        apt=False,
        machine="aarch64",
        python=(3, 9),
        memory_mb=900,
    )
    poor.disks_mb = {"/var/lib/docker": (12_000, 20)}
    problems = prerequisites.problems(poor)
    assert len(problems) == 6
    assert "there are 900" in " ".join(problems)


def test_root_is_needed_only_for_what_root_has_to_do():
    machine = prerequisites.Machine(root=False, user="ann")
    assert prerequisites.problems(machine) == []
    machine.packages = ["rpm", "uidmap"]
    assert "sudo apt-get install rpm uidmap" in prerequisites.problems(machine)[0]
    machine.packages, machine.engine = [], False
    assert "usermod -aG docker ann" in prerequisites.problems(machine)[0]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a docker client whose engine does not answer, as Docker's client reports it, and nothing else."""
    script = """case "$1 $2" in
    "context inspect") echo "${DOCKER_HOST:-unix:///var/run/docker.sock}" ;;
    *) echo "Cannot connect to the Docker daemon at ${DOCKER_HOST:-unix:///var/run/docker.sock}." >&2; exit 1 ;;
esac
"""
    write_script(tmp_path / "docker", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.setattr(prerequisites, "SYSTEM_COMMANDS", tmp_path / "sbin")
    monkeypatch.setattr(prerequisites, "DPKG_LISTS", tmp_path / "dpkg")
    return tmp_path


@pytest.mark.parametrize(
    ("files", "engine"),
    [
        ([], ["docker.io"]),
        (["dpkg/docker-ce-cli.list"], ["docker-ce"]),
        (["dockerd"], []),  # it is only stopped
    ],
)
def test_a_client_gets_the_engine_that_it_lacks(client, files, engine):
    for name in files:
        write_script(client / name, "")
    machine = prerequisites.look("demo")
    assert (machine.engine, machine.remote_engine) == (False, None)
    assert [name for name in machine.packages if name.startswith("docker")] == engine


def test_a_machine_without_a_client_gets_the_engine_once(client):
    (client / "docker").unlink()
    assert prerequisites.look("demo").packages.count("docker.io") == 1


def test_an_engine_elsewhere_that_does_not_answer_is_named(client, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://build.example.com:2376")
    machine = prerequisites.look("demo")
    assert "docker.io" not in machine.packages
    problems = " ".join(prerequisites.problems(machine))
    assert "tcp://build.example.com:2376 must answer" in problems
    assert "unset DOCKER_HOST" in problems


def test_a_context_that_does_not_answer_is_named(client):
    script = (client / "docker").read_text(encoding="utf-8").replace("unix:///var/run/docker.sock", "ssh://ci@far")
    (client / "docker").write_text(script, encoding="utf-8")
    problems = " ".join(prerequisites.problems(prerequisites.look("demo")))
    assert "ssh://ci@far must answer" in problems
    assert "docker context use default" in problems


@pytest.mark.parametrize(
    ("dockerd", "words"),
    [
        ("", "dockerd must be installed"),
        ("echo 'failed to start daemon: no iptables'; exit 1", "failed to start daemon: no iptables"),
    ],
)
def test_an_engine_that_does_not_start_is_reported_with_its_last_words(client, monkeypatch, dockerd, words):
    if dockerd:
        write_script(client / "dockerd", dockerd)
    monkeypatch.setattr(prerequisites, "SYSTEMD", client / "no-systemd")
    monkeypatch.setattr(prerequisites, "REPOSITORY", client)
    monkeypatch.setattr(prerequisites, "ENGINE_PID", client / "docker.pid")
    with pytest.raises(DemoError, match=words):
        prerequisites.start_engine()


def test_a_cluster_that_is_up_has_its_memory_already():
    machine = prerequisites.Machine(memory_mb=5_000)
    assert prerequisites.problems(machine) != []
    machine.up = True
    assert prerequisites.problems(machine) == []


def test_one_file_system_has_to_hold_downloads_and_images(tmp_path):
    disks = prerequisites.disks(False, engine=tmp_path / "not/there/yet", downloads=tmp_path)
    assert [megabytes for megabytes, _ in disks.values()] == [15_000]


def test_a_host_of_cdsw_needs_more_disk_until_it_is_there(client, monkeypatch):
    def needed(*given: str) -> int:
        return sum(megabytes for megabytes, _ in prerequisites.look("demo", *given).disks_mb.values())

    assert needed("cdsw1") == needed() + prerequisites.CDSW_DISK_MB
    monkeypatch.setattr(prerequisites, "engine_answers", lambda: True)
    monkeypatch.setattr(prerequisites, "engine_root", lambda: client)
    monkeypatch.setattr(prerequisites, "running", lambda cluster, host="": ["0123456789ab"])
    assert needed("cdsw1") == needed()


def test_nodes_can_boot_where_the_kernel_allows_few_inotify_instances(tmp_path, monkeypatch):
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    monkeypatch.setattr(prerequisites, "INOTIFY", limit)
    monkeypatch.setattr(prerequisites, "start_engine", lambda: None)
    machine = prerequisites.Machine(inotify_instances=128)
    monkeypatch.setattr(prerequisites, "look", lambda *_: machine)
    prerequisites.ensure()
    assert limit.read_text() == "1024\n"
    limit.unlink()
    limit.mkdir()
    with pytest.raises(DemoError, match="max_user_instances must be 1024 or more"):
        prerequisites.ensure()
    machine.root = False
    with pytest.raises(DemoError, match="Run: sudo sysctl -w fs.inotify.max_user_instances=1024"):
        prerequisites.ensure()


def test_the_prerequisites_need_nothing_but_python():
    code = "import hadoop_dl_dev.demo.prerequisites, sys; print('yaml' in sys.modules)"
    completed = subprocess.run(
        ["python3", "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": "lib"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout == "False\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stack": "tf2.15-py3-el9", "cdsw": "1.4.0"}, r"the stack tf1\.15-py27-el7, but tf2\.15-py3-el9 is requested"),
        ({"hadoop": "2.10.2", "kerberos": True}, r"Kerberos requires Hadoop 3\.3\.6"),
        ({"hadoop": "2.10.2", "cdsw": "1.4.0"}, r"CDSW requires Hadoop 3\.3\.6"),
        ({"hadoop": "3.1.1", "cdsw": "1.4.0"}, r"CDSW requires Hadoop 3\.3\.6"),
        ({"stack": "tf2.15-py3-el9", "hadoop": "2.10.2"}, "no node image for tf2.15-py3-el9 with Hadoop 2.10.2"),
        ({"data_nodes": 0}, "1 to 8 but is 0"),
        ({"data_nodes": 9}, "1 to 8 but is 9"),
    ],
)
def test_a_cluster_that_was_never_tried_is_refused(given, words):
    with pytest.raises(DemoError, match=words):
        _ = cluster.Cluster(**given).image


def test_a_node_that_is_added_changes_no_address(monkeypatch):
    two, three = cluster.Cluster(data_nodes=2), cluster.Cluster(data_nodes=3)
    assert {**three.addresses, **two.addresses} == three.addresses
    assert two.etc_hosts == three.etc_hosts
    assert len(set(three.etc_hosts.values())) == len(three.etc_hosts) == 12
    assert cluster.node_options(two, "data1") == cluster.node_options(three, "data1")
    with_cdsw = cluster.Cluster(cdsw="1.4.0")
    assert {**with_cdsw.addresses, **two.addresses} == with_cdsw.addresses
    assert cluster.node_options(with_cdsw, "data1") == cluster.node_options(two, "data1")
    monkeypatch.setenv("DEMO_SUBNET", "10.9.8.0/24")
    assert two.addresses["master1"] == "10.9.8.201"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker that knows two containers of the demo, data1 and data3, made from something else."""
    script = """case "$1" in
    ps) echo "demo-data1 demo-data3" ;;
    container) echo 000000000000 ;;
    network) echo "Pool overlaps with other one on this address space" >&2; exit 1 ;;
    *) exit 64 ;;
esac
"""
    write_script(tmp_path / "docker", script)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def calls(engine: Path) -> Callable[[], list[str]]:
    """What docker was asked to do; every container has the label of the checkout in the file `checkout`."""
    record = engine / "calls"
    script = f"""echo "$*" >>{record}
case "$1" in
    ps) echo demo-data1 ;;
    container) if [ "$2" = inspect ]; then cat {engine}/checkout; fi ;;
esac
"""
    write_script(engine / "docker", script)
    return lambda: [line for line in record.read_text(encoding="utf-8").splitlines() if " inspect " not in line]


def test_the_demo_of_another_checkout_is_named_and_stays(calls, tmp_path, monkeypatch):
    monkeypatch.setattr(images, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(images, "REPOSITORY", tmp_path / "ours")
    write_script(tmp_path / "theirs/scripts/demo", "")
    (tmp_path / "checkout").write_text(f"{tmp_path}/theirs", encoding="utf-8")
    for act in (
        lambda: cluster.down("demo"),
        lambda: cluster.check_nodes(cluster.Cluster()),
        lambda: cluster.recorded("demo"),
    ):
        with pytest.raises(DemoError, match=f"demo-data1 .* another checkout, {tmp_path}/theirs"):
            act()
    assert all(call.startswith("ps ") for call in calls())


@pytest.mark.parametrize("checkout", ["ours", "gone"])
def test_nodes_of_this_checkout_and_of_one_that_is_gone_are_removed(calls, tmp_path, monkeypatch, checkout):
    monkeypatch.setattr(images, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(images, "REPOSITORY", tmp_path / "ours")
    (tmp_path / "checkout").write_text(f"{tmp_path}/{checkout}", encoding="utf-8")
    assert cluster.down("demo") == ["demo-data1"]
    assert any(call.startswith("rm ") and "demo-data1" in call for call in calls())


@pytest.mark.parametrize(
    ("data_nodes", "words"),
    [(2, r"demo-data3 .*make demo-down"), (3, r"were made from others: demo-data1, demo-data3")],
)
def test_nodes_of_another_kind_are_told_before_anything_is_built(engine, data_nodes, words):
    with pytest.raises(DemoError, match=words):
        cluster.check_nodes(cluster.Cluster(data_nodes=data_nodes))


def test_a_network_that_is_taken_is_told_with_the_way_out(engine):
    with pytest.raises(DemoError, match=r"172\.30\.77\.0/24.*overlaps.*DEMO_SUBNET"):
        cluster.make_network(cluster.Cluster())


def test_downloads_stay_while_another_cluster_uses_them(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "CACHE", tmp_path)
    (tmp_path / "clusters/other").mkdir(parents=True)
    with pytest.raises(DemoError, match="--name other"):
        cluster.remove_downloads()


def test_a_mounted_repository_stays_the_same_directory(tmp_path):
    target, source = tmp_path / "target", tmp_path / "made"
    for directory, name in ((target, "old.rpm"), (source, "new.rpm")):
        (directory / "repodata").mkdir(parents=True)
        (directory / name).touch()
    before = target.stat().st_ino
    signed_packages.replace_content(target, source)
    assert sorted(path.name for path in target.iterdir()) == ["new.rpm", "repodata"]
    assert target.stat().st_ino == before


def test_what_the_mirror_host_needs_to_fetch_is_handed_on(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://pypi.example/simple/")
    monkeypatch.setenv("MAVEN_CENTRAL_URL", "https://maven.example/central")
    settings = inventory.mirror_environment()
    assert (settings["https_proxy"], settings["PIP_INDEX_URL"]) == ("http://proxy:3128", "https://pypi.example/simple")
    assert settings["MAVEN_CENTRAL_URL"] == "https://maven.example/central"
