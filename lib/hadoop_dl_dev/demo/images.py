"""Node images: Debian packages, this repository's files, Hadoop and Kafka; tagged by a digest of everything that goes in.

mmdebstrap makes the root file system, `docker build` without a network puts the rest on it, so that an image never
depends on another registry. NODE_IMAGE_EL7=… (EL9, DEBIAN12) puts an image of the operator's in its place.
"""

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.stacks import Stack
from hadoop_dl_dev.demo import artifacts, prerequisites
from hadoop_dl_dev.demo.shell import DemoError, only_one, pipe, run, say

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = REPOSITORY / "demo"
CACHE = REPOSITORY / ".cache" / "demo"
NAME = "hadoop-deeplearning"
OF_CLUSTERS = ("el7", "el8", "el9", "el10", "el7-hadoop2", "el7-hadoop31")
# A root file system of 1 GB with the packages it came from; the rest stays for whatever else runs here.
MEMORY_FOR_BASE_MB = 6 * 1024
DOCKERFILE = """\
FROM {base}
COPY rootfs /
RUN sh /build/build.sh && rm -r /build
CMD ["/usr/sbin/node-init"]
"""


def definitions() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DATA / "images.yml").read_text(encoding="utf-8"))
    return loaded


def image_names() -> list[str]:
    return list(definitions()["images"])


def hadoop(image: str) -> str:
    """The version of Hadoop in an image."""
    return str(definitions()["images"][image].get("hadoop", definitions()["hadoop"]))


def java(image: str) -> str:
    """The major version of Java in an image."""
    packages = " ".join(definitions()["images"][image]["packages"])
    return packages.partition("openjdk-")[2].partition("-")[0]


def for_stack(stack: Stack, version: str) -> str:
    """The image of a cluster's nodes: the first one of the stack's system, with that Hadoop and a Java for its Spark."""
    for name in OF_CLUSTERS:
        fits = java(name) in stack.data.get("java", [java(name)]) and version in ("", hadoop(name))
        if name.partition("-")[0] in stack.data["os"] and fits:
            return name
    have = "; ".join(f"{name} has Hadoop {hadoop(name)} and Java {java(name)}" for name in OF_CLUSTERS)
    subject = f"{stack.name} with Hadoop {version}" if version else stack.name
    raise DemoError(f"The demo has no node image for {subject}: {have}. Choose another stack, or leave out HADOOP.")


def locks(image: str) -> dict[str, Path]:
    """The locks of the jars in an image."""
    return {"hadoop": DATA / "hadoop" / f"jars-{hadoop(image)}.sha256", "kafka": DATA / "kafka" / "jars.sha256"}


def override(image: str) -> str | None:
    """The operator's own image for this one, from NODE_IMAGE_EL7 and the like."""
    return os.environ.get(f"NODE_IMAGE_{image.upper()}")


def base_tag(image: str) -> str:
    """Tag of the root file system, which may be another image's: changes with the packages only."""
    defined = definitions()
    own = defined["images"][image]
    content = [defined["common"], own["suite"], own["packages"], *([own["also"]] if "also" in own else [])]
    return f"{NAME}/{own.get('base', image)}-base:{digest(json.dumps(content, sort_keys=True).encode())}"


def tag(image: str) -> str:
    """Tag of the image: changes with every file that goes into it."""
    if image not in definitions()["images"]:
        raise DemoError(f"there is no image {image!r}. Images: {', '.join(image_names())}.")
    own = override(image)
    if own:
        return own
    parts = [
        base_tag(image).encode(),
        json.dumps(definitions()["images"][image], sort_keys=True).encode(),
        DOCKERFILE.encode(),
    ]
    files = {path for name in ("rootfs", "hadoop", "kafka", "build") for path in (DATA / name).rglob("*")}
    foreign_locks = {locks(image_name)["hadoop"] for image_name in image_names()} - {locks(image)["hadoop"]}
    for path in sorted(path for path in files - foreign_locks if path.is_file()):
        parts.append(f"{path.relative_to(DATA)} {path.stat().st_mode & 0o111}".encode() + path.read_bytes())
    return f"{NAME}/{image}:{digest(*parts)}"


def digest(*parts: bytes) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(hashlib.sha256(part).digest())
    return hasher.hexdigest()[:12]


def exists(reference: str) -> bool:
    return run("docker", "image", "inspect", reference, check=False).returncode == 0


def ensure(image: str) -> str:
    """Return the image's tag; build the image first if it does not exist."""
    reference = tag(image)
    if not exists(reference):
        if override(image):
            raise DemoError(
                f"NODE_IMAGE_{image.upper()} names {reference}, and the engine has no such image. docker load or pull it first."
            )
        with only_one(CACHE / "images.lock"):
            for directory in CACHE.glob("making-*"):  # by a run that was killed
                shutil.rmtree(directory)
            with ThreadPoolExecutor(1) as pool:
                downloads = pool.submit(fetch_parts, image)
                if not exists(base_tag(image)):
                    make_base(image)
                downloads.result()
            build(image, reference)
    return reference


def fetch_parts(image: str) -> None:
    """Hadoop's and Kafka's jars and the sources of libhdfs, while the root file system is made."""
    for lock in locks(image).values():
        artifacts.fetch_all(artifacts.read_lock(lock), CACHE / "jars")
    artifacts.fetch_all([artifacts.libhdfs()], CACHE / "sources")
    artifacts.fetch_all(artifacts.read_lock(DATA / "hadoop" / "native.sha256"), CACHE / "sources")


def ours() -> list[str]:
    """Every image that this project made here, of earlier versions too."""
    listed = run("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter", f"reference={NAME}/*")
    return listed.stdout.split()


def make_base(image: str) -> None:
    """Root file system from Debian's packages."""
    defined = definitions()
    packages = defined["common"]["packages"] + defined["images"][image]["packages"]
    say(f"    {image}: {len(packages)} packages and what they need …")
    make_root(base_tag(image), defined["images"][image]["suite"], packages, defined["images"][image].get("also", ()))


def make_root(reference: str, suite: str, packages: Sequence[str], also: Sequence[str] = ()) -> None:
    """An image of Debian's packages and nothing else; a suite that has moved to the archive is taken from there.

    also: suites for the packages that the suite lacks.
    """
    mirrors = {name: find_mirror(name, definitions()["mirrors"]) for name in (suite, *also)}
    say(f"    suite {suite} from {mirrors[suite][0]} …")
    options = ["--variant=minbase", "--components=main", f"--include={','.join(packages)}"]
    options += [f'--aptopt=APT::Default-Release "{suite}"'] if also else []
    if (
        also or mirrors[suite][1]
    ):  # a mirror's copy of sid may be old, and the archive's Release files are old by design; their signatures are checked all the same
        options.append("--aptopt=Acquire::Check-Valid-Until false")
    options += [
        "--customize-hook=rm -rf $1/etc/apt/apt.conf.d/99mmdebstrap $1/var/lib/apt/lists/* $1/var/cache/apt/* $1/usr/share/doc/* $1/usr/share/locale/*"
    ]
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    sources = [f"deb [signed-by={keyring}] {mirror} {name} main" for name, (mirror, _) in mirrors.items()]
    make = ["nice", "mmdebstrap", *options, f"--keyring={keyring}", suite, "-", *sources]
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as directory:
        if os.geteuid() == 0 and prerequisites.available_memory_mb() >= MEMORY_FOR_BASE_MB:
            make = ["unshare", "--mount", "sh", str(DATA / "in_memory.sh"), directory, *make]
        imported = pipe(make, ["docker", "import", "-"], env={**os.environ, "TMPDIR": directory})
    run("docker", "tag", imported.strip(), reference)  # only now: the engine imports what came of a broken archive too


def find_mirror(suite: str, mirrors: list[str]) -> tuple[str, bool]:
    """The first mirror that has the suite, and whether it is an archive. DEBIAN_MIRROR comes before all of them."""
    own = os.environ.get("DEBIAN_MIRROR")
    candidates = ([own] if own else []) + mirrors
    answers = []
    for mirror in candidates:
        try:
            with urllib.request.urlopen(f"{mirror}/dists/{suite}/Release", timeout=30):  # noqa: S310 (from demo/images.yml)
                return mirror, "archive" in mirror
        except (urllib.error.URLError, OSError) as error:
            answers.append(f"{mirror}: {error}")
    raise DemoError(
        f"Debian's suite {suite} is required, but no mirror has it ({'; '.join(answers)}). Set DEBIAN_MIRROR to one that does."
    )


def build(image: str, reference: str) -> None:
    """Put this repository's files, Hadoop and Kafka on the root file system."""
    say(f"    {image}: Hadoop, Kafka, libhdfs …")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as directory:
        root = Path(directory) / "rootfs"
        shutil.copytree(DATA / "rootfs", root)
        write_release(root, definitions()["images"][image])
        add_jars(root / "opt/hadoop/share/hadoop/common", locks(image)["hadoop"])
        add_jars(root / "opt/kafka/libs", locks(image)["kafka"])
        add_webapps(root / "opt/hadoop")
        add_libhdfs(root / "build/libhdfs")
        add_libhadoop(root / "opt/hadoop/lib/secure")
        for path in (DATA / "build").iterdir():
            shutil.copy(path, root / "build" / path.name)
        (root / "build" / "purge").write_text(" ".join(definitions()["common"]["build_only"]) + "\n", encoding="utf-8")
        (Path(directory) / "Dockerfile").write_text(DOCKERFILE.format(base=base_tag(image)), encoding="utf-8")
        docker_build(reference, directory)


def docker_build(reference: str, directory: str | Path) -> None:
    """Without BuildKit, a plugin that distributions package apart."""
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    run("docker", "build", "--network", "none", "--tag", reference, str(directory), env=environment)


def write_release(root: Path, defined: dict[str, Any]) -> None:
    if "os_release" in defined:
        lines = [f'{key}="{value}"' for key, value in defined["os_release"].items()]
        (root / "etc").mkdir(exist_ok=True)
        (root / "build").mkdir(exist_ok=True)
        (root / "build" / "os-release").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (root / "etc" / "redhat-release").write_text(defined["redhat_release"] + "\n", encoding="utf-8")


def add_jars(target: Path, lock: Path) -> None:
    target.mkdir(parents=True)
    for path in artifacts.fetch_all(artifacts.read_lock(lock), CACHE / "jars"):
        os.link(path, target / path.name)


def add_webapps(home: Path) -> None:
    """HDFS's web pages are in no jar, and its daemons stop without their directories; YARN's are in hadoop-yarn-common."""
    for name in ("hdfs", "datanode"):
        (home / "webapps" / name / "WEB-INF").mkdir(parents=True)
    shutil.copy(DATA / "hadoop" / "index.html", home / "webapps" / "hdfs" / "index.html")
    common = next((home / "share/hadoop/common").glob("hadoop-yarn-common-*.jar"))
    with zipfile.ZipFile(common) as jar:
        for name in jar.namelist():
            if name.startswith("webapps/"):
                jar.extract(name, home)


def add_libhadoop(target: Path) -> None:
    """libhadoop.so, without which a NodeManager with Kerberos collects no logs. No other cluster loads it: it has a directory of its own."""
    target.mkdir(parents=True)
    archive = artifacts.fetch_all(artifacts.read_lock(DATA / "hadoop" / "native.sha256"), CACHE / "sources")[0]
    with zipfile.ZipFile(archive) as jar:
        (target / "libhadoop.so").write_bytes(jar.read("nativelib/Linux-amd64/libhadoop.so"))


def add_libhdfs(target: Path) -> None:
    """The C sources of libhdfs, out of the archive that carries them; compiled in the image against its Java."""
    target.mkdir(parents=True)
    archive = artifacts.fetch_all([artifacts.libhdfs()], CACHE / "sources")[0]
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as sources:
        for member in sources.getmembers():
            _, separator, relative = member.name.partition("/src/libhdfs/")
            content = sources.extractfile(member) if member.isfile() and separator else None
            if content is not None and not relative.startswith("os/windows/"):
                (target / relative).parent.mkdir(parents=True, exist_ok=True)
                (target / relative).write_bytes(content.read())
