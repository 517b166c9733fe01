"""Inputs of which each is right, and which cannot be right together. Pure functions: converted values in, sentences out."""

import re
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.cuda_packages import archive_of

Json = dict[str, Any]


def conflicts(values: Mapping[str, Any], repository: Path, unknown: Set[str] = frozenset()) -> list[str]:
    """Every sentence against a host's inputs together; the roles refuse with the same functions.

    unknown: inputs whose values are not known yet.
    """
    sentences = [
        *of_mirror(values),
        *of_login(values),
        *of_driver(values),
        *of_toolkits(values, repository),
        *of_checks(values, repository),
        *of_yarn(values),
    ]
    return [sentence for sentence in sentences if not unknown & set(re.findall(r"\w+", sentence))]


def of_yarn(values: Mapping[str, Any]) -> Iterator[str]:
    for name, part in (("yarn_gpu_node_label", "label"), ("yarn_gpu_health", "health script")):
        if values.get(name) and not values.get("yarn_gpu", False):
            yield f"{name} requires yarn_gpu, but yarn_gpu is not true: YARN would get no {part}. Set yarn_gpu: true, or remove {name}."


def of_mirror(values: Mapping[str, Any]) -> Iterator[str]:
    url, login = values.get("mirror_index_url", ""), values.get("mirror_login", {})
    if bool(login.get("user")) != bool(login.get("password")):
        yield "mirror_login must have user and password and nothing else. Set both, or neither."
    elif login.get("user") and not url:
        yield "mirror_login is for mirror_index_url, but that is not set. Set mirror_index_url: the mirror's own server asks for no login."
    elif login.get("user") and not url.startswith("https://"):
        yield "mirror_index_url must begin with https://, because a password is sent there. Let the index serve https, or use one without a login."
    if values.get("mirror_bundle") and not (
        values.get("mirror_bundle_key") and values.get("mirror_mode", "fetch") == "fetch"
    ):
        yield "mirror_bundle requires mirror_mode: fetch and mirror_bundle_key, the file with the public key that signs the bundle. Set both."
    pair = ("mirror_tls_certificate", "mirror_tls_key")
    if bool(values.get(pair[0])) != bool(values.get(pair[1])):
        yield f"{' and '.join(pair)} must both be set, or none of them, but one is. Set the other."


def of_login(values: Mapping[str, Any]) -> Iterator[str]:
    pair = ("hadoop_principal", "hadoop_keytab")
    names = [name for name in pair if values.get(name)]
    if len(names) == 1:
        yield f"{' and '.join(pair)} must both be set, or none of them, but one is. Set the other."
    if names and values.get("hadoop_login") == "none":
        yield f"hadoop_login: none leaves the login to the site, but {' and '.join(names)} is set. Remove one of them."


def of_driver(values: Mapping[str, Any]) -> Iterator[str]:
    if values.get("nvidia_driver_source") == "runfile" and values.get("nvidia_driver_version", "none") != "none":
        unset = [name for name in ("nvidia_driver_runfile", "nvidia_driver_runfile_sha256") if not values.get(name)]
        if unset:
            yield f"nvidia_driver_source: runfile requires {' and '.join(unset)}, but none is set."
    if values.get("nvidia_driver_signing_key") and not values.get("nvidia_driver_signing_certificate"):
        yield "nvidia_driver_signing_key requires nvidia_driver_signing_certificate, but none is set."
    for role in ("nvidia_driver", "cuda", "cudnn", "nccl", "bazel", "container_runtime"):
        if values.get(f"{role}_repository_url") and not values.get(f"{role}_repository_key"):
            yield (
                f"{role}_repository_url requires {role}_repository_key, the file on the controller with the key that signs its packages, but none is "
                "set. Unsigned packages are not installed."
            )


def of_toolkits(values: Mapping[str, Any], repository: Path) -> Iterator[str]:
    toolkits, default = values.get("cuda_versions"), values.get("cuda_default")
    if default and isinstance(toolkits, list) and default not in toolkits:
        yield f"cuda_default must be one of cuda_versions ({', '.join(toolkits) or 'none'}), but is {default}."
    for role, source, archives in (
        ("cuda", "runfile", "cuda_runfiles"),
        ("cudnn", "tarball", "cudnn_tarballs"),
        ("nccl", "tarball", "nccl_tarballs"),
    ):
        versions = values.get(f"{role}_versions")
        if values.get(f"{role}_source") != source or not isinstance(versions, list):
            continue
        role_archives = open_archives(repository) if role == "cudnn" else {}
        without_archive = [item for item in versions if lacks_archive(item, values.get(archives, {}), role_archives)]
        missing = [item if isinstance(item, str) else item["version"] for item in without_archive]
        if missing:
            yield f"{role}_source: {source} requires an entry of {archives} for {', '.join(missing)}."


def of_checks(values: Mapping[str, Any], repository: Path) -> Iterator[str]:
    for name, read_names in (("nvidia_driver_upgrade_checks", gpu_checks), ("verify_expected_failures", suite_tests)):
        unknown = [entry for entry in values.get(name, ()) if entry not in read_names(repository)]
        if unknown:
            yield f"{name} must have names that are known, but has {', '.join(unknown)}. Known: {', '.join(sorted(read_names(repository)))}."


@cache
def gpu_checks(repository: Path) -> frozenset[str]:
    """The questions of gpu-check."""
    files = (repository / "roles/gpu_check/files/gpu-check/gpu_check").glob("*.py")
    return frozenset(
        re.findall(r"^@(?:host_)?check\ndef (\w+)", "".join(path.read_text(encoding="utf-8") for path in files), re.M)
    )


@cache
def suite_tests(repository: Path) -> frozenset[str]:
    """The tests of tests/infra; those of gpu-check's questions are made from their names."""
    text = "".join(path.read_text(encoding="utf-8") for path in (repository / "tests/infra").glob("test_*.py"))
    return frozenset(re.findall(r"\b(test_\w+)[(\"]", text)) | {f"test_gpu_{name}" for name in gpu_checks(repository)}


@cache
def open_archives(repository: Path) -> Mapping[str, Json]:
    """The archives of cuDNN that the role knows, by VERSION/CUDA; CUDA may be a major number."""
    file = repository / "roles" / "cudnn" / "vars" / "archives.yml"
    archives: Mapping[str, Json] = yaml.safe_load(file.read_text(encoding="utf-8"))["__cudnn_open_archives"]
    return archives


def lacks_archive(item: Any, archives: Mapping[str, Json], role_archives: Mapping[str, Json]) -> bool:
    """Whether neither the site nor, for cuDNN, the role names the file and its sha256."""
    if isinstance(item, str):
        return item not in archives
    return not {"file", "sha256"} <= archive_of(item["version"], item["cuda"], archives, role_archives).keys()
