"""Debian's packages for a node's image, as files: a node installs them without a network."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hadoop_dl_dev.demo import images
from hadoop_dl_dev.demo.images import CACHE, digest
from hadoop_dl_dev.demo.shell import only_one, run


def fetch(name: str, image: str, packages: Sequence[str]) -> Path:
    """The directory with the packages and what they need on this image, fetched once."""
    reference = images.ensure(image)
    target = CACHE / f"{name}-{image}-{digest(images.base_tag(image).encode(), ' '.join(packages).encode())}"
    with only_one(CACHE / f"{name}.lock"):
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(dir=CACHE) as directory:
            staging = Path(directory) / "made"
            (staging / "partial").mkdir(parents=True)
            options = "-qq -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -o APT::Keep-Downloaded-Packages=true"
            install = f"apt-get {options} --download-only --no-install-recommends --yes install {' '.join(packages)}"
            run(
                *("docker", "run", "--rm", "--env", "http_proxy", "--volume", f"{staging}:/var/cache/apt/archives"),
                *(reference, "sh", "-c", f"apt-get {options} update && {install}"),
            )
            (staging / "lock").unlink(missing_ok=True)
            (staging / "partial").rmdir()
            staging.rename(target)
    return target
