"""Refusals of roles, found by the plan: files, paths and accounts that inputs name, and inputs that do not fit the host."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hadoop_dl.data import engine_image
from hadoop_dl.data.locks import StackError
from hadoop_dl.data.stacks import UnknownStack
from hadoop_dl.plan import gpu_layer, workbench, yarn
from hadoop_dl.plan.builds import GROUP
from hadoop_dl.plan.components import concerns
from hadoop_dl.plan.forms import Input, shown
from hadoop_dl.plan.inputs import all_inputs, is_template
from hadoop_dl.plan.model import Host

FIRST_USER = 1000  # accounts below are of the system
BUILD_ROOT = "/var/lib/deeplearning-build"  # the roles' defaults
MIRROR_PORT = 8900


def problems(host: Host, repository: Path, uses_hadoop: bool) -> Iterator[str]:
    """Every reason against one host's inputs that takes a look at the controller, at the host, or at its groups."""
    inputs = {name: option for name, option in naming(repository).items() if host.variables.get(name)}
    inputs = {name: option for name, option in inputs.items() if not is_template(host.variables[name])}
    yield from missing_files(inputs, host.variables, repository)
    yield from missing_paths(inputs, host, uses_hadoop)
    yield from wrong_accounts(host)
    if concerns("mirror", host):
        yield from served_elsewhere(host.variables)
    yield from engine_problems(host)


@cache
def naming(repository: Path) -> dict[str, Input]:
    """The inputs that name files, paths or accounts."""
    inputs = {name: option for name, option in all_inputs(repository).items() if {"exists"} & option.limits.keys()}
    archives = {"form": ("archive", "source"), "values": ("archive",)}
    for name, option in all_inputs(repository).items():
        if any(option.limits.get(key) in kinds for key, kinds in archives.items()):
            inputs[name] = option
    return inputs


def missing_files(inputs: Mapping[str, Input], variables: Mapping[str, Any], repository: Path) -> Iterator[str]:
    for name, option in inputs.items():
        for file in controller_files(option, variables[name]):
            if not any(path.is_file() for path in places(file, repository)):
                yield f"{name} must name a file on the controller, but there is no {shown(file)}. Put it there, or correct the path."


def controller_files(option: Input, value: Any) -> list[str]:
    """The files on the controller that an input names; other addresses are not read here."""
    if option.limits.get("exists") == "controller":
        return [value]
    archives = [value] if option.limits.get("form") == "archive" else []
    archives += value.values() if option.limits.get("values") == "archive" else []
    files = [archive["file"] for archive in archives if "file" in archive] + (
        [value] if option.limits.get("form") == "source" else []
    )
    return [file for file in files if "://" not in file]


def places(file: str, repository: Path) -> list[Path]:
    """The paths at which Ansible looks for a file that is copied by a role."""
    path = Path(file).expanduser()
    if path.is_absolute():
        return [path]
    bases = [repository / "playbooks" / "layers", repository / "playbooks", *repository.glob("roles/*")]
    return [Path.cwd() / path, *(base / below / path for base in bases for below in ("files", "."))]


def missing_paths(inputs: Mapping[str, Input], host: Host, uses_hadoop: bool) -> Iterator[str]:
    paths = host.known.named.paths if host.known.named else {}
    concerned = {
        "hadoop_client": uses_hadoop and concerns("hadoop_client", host),
        "nvidia_driver": bool(host.known.nvidia.count) and bool(set(host.groups) & set(gpu_layer.GROUPS)),
        "yarn_gpu": yarn.configures(host),
        "": concerns("tensorflowonspark", host),  # spark_home
        "hadoop_keytab": uses_hadoop and concerns("hadoop_client", host),
    }
    for name, option in inputs.items():
        path = host.variables[name]
        if (
            option.limits.get("exists") == "host"
            and paths.get(str(path)) is False
            and concerned.get(name, concerned.get(option.role))
        ):
            yield f"{name} must name what the host has, but there is no {shown(path)}. Correct it, or remove it from the inventory."


def wrong_accounts(host: Host) -> Iterator[str]:
    """An account of the system belongs to something else; the role's own one has its home in the directory of the build."""
    accounts = host.known.named.accounts if host.known.named else {}
    root = str(host.variables.get("tensorflow_build_root") or BUILD_ROOT)
    for name, group in (("tensorflow_build_user", GROUP), ("upgrade_canary_user", "edge_nodes")):
        account = accounts.get(str(host.variables.get(name)))
        if account is None or group not in host.groups or account.uid >= FIRST_USER:
            continue
        if name == "upgrade_canary_user" or not account.home.startswith(f"{root}/"):
            yield (
                f"{name} must be an account whose number is {FIRST_USER} or higher, but {host.variables[name]} has {account.uid}: it is one of the "
                "system. Name another one."
            )


def served_elsewhere(variables: Mapping[str, Any]) -> Iterator[str]:
    """Hosts reach the builtin server at mirror_url, so both must have one port and one scheme."""
    external = variables.get("mirror_mode") == "external" or variables.get("mirror_server") == "none"
    url, port = variables.get("mirror_url"), variables.get("mirror_port", MIRROR_PORT)
    if external or not url or "{{" in url:  # a template that needs the plan
        return
    parts = urlsplit(url)
    url_port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    if url_port != port:
        yield (
            f"mirror_url must have the port of the mirror's server, mirror_port {port}, but has {url_port}. Correct one of them, or set "
            "mirror_server: none if another server serves the directory."
        )
    if (parts.scheme == "https") != bool(variables.get("mirror_tls_certificate")):
        yield (
            "mirror_url begins with https:// if mirror_tls_certificate and mirror_tls_key are set, and else with http://, but it begins with "
            f"{parts.scheme}://. Correct one of them, or set mirror_server: none if another server serves the directory."
        )


def engine_problems(host: Host) -> Iterator[str]:
    """Inputs that the role cdsw_engine would refuse; the plan's list of environments refuses an unknown stack."""
    variables = host.variables
    if not variables.get("cdsw_engine_base"):
        return  # only playbooks/cdsw_engine.yml needs it: the mirror may be filled before
    pair = None
    try:
        pair = workbench.engine_environment(host, variables)
        if pair:
            names = ("base", "version", "cuda_packages", "cuda_repository", "cuda_key")
            inputs = {name: variables.get(f"cdsw_engine_{name}") or "" for name in names}
            own = variables.get("cdsw_engine_mirror_url")
            inputs["mirror_url"] = variables.get("mirror_url") or "" if not own or is_template(own) else own
            engine_image.check(inputs, *pair, pair[0].lock(pair[1]))
    except UnknownStack:
        return  # the plan's list of environments names it
    except engine_image.EngineError as error:
        yield str(error)
    except StackError as error:
        yield f"cdsw_engine_python must be one of the Pythons of {pair[0].name if pair else 'the stack'}: {error}"
