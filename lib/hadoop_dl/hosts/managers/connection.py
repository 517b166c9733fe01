"""The cluster manager of a site, from its variables cluster_manager and cluster_manager_*; and what changes there need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from hadoop_dl.hosts.managers.ambari import HEADERS, Ambari
from hadoop_dl.hosts.managers.cloudera_manager import ClouderaManager
from hadoop_dl.hosts.managers.server import Limits, Login, ManagerError, Server, Unavailable

Json = dict[str, Any]
PRODUCTS = {"cloudera_manager": "Cloudera Manager", "ambari": "Ambari"}
NAMES = ("url", "user", "password", "token", "ca", "cluster")
VARIABLES = ("cluster_manager", "cluster_manager_plain_http", *(f"cluster_manager_{name}" for name in NAMES))
ASKING = 300.0  # seconds for all requests, without a wait that has its own limit


def connect(values: Mapping[str, Any], seconds: float = 0.0) -> ClouderaManager | Ambari:
    """The client. `values` are those of VARIABLES; `seconds` is what the caller waits for a command."""
    kind = str(values.get("cluster_manager") or "none")
    options = {name: str(values.get(f"cluster_manager_{name}") or "") for name in NAMES}
    if kind not in PRODUCTS:
        raise ManagerError(
            f"cluster_manager must be {' or '.join(PRODUCTS)} for this, but is {kind}. Set it, with cluster_manager_url, in group_vars/all."
        )
    missing = [f"cluster_manager_{name}" for name in ("url", "user", "password") if not options[name]]
    if missing and not (options["url"] and options["token"]):
        raise ManagerError(
            f"{PRODUCTS[kind]} requires cluster_manager_url, cluster_manager_user and cluster_manager_password, but "
            f"{', '.join(missing)} is not set. Set it in group_vars/all, a password from a vault or the environment."
        )
    login = Login(options["user"], options["password"], options["token"])
    ambari = kind == "ambari"
    server = Server(
        PRODUCTS[kind],
        options["url"],
        login,
        ca=options["ca"],
        plain_http=boolean(values.get("cluster_manager_plain_http") or False, strict=False),
        limits=Limits(total=ASKING + seconds),
        settings="cluster_manager_*",
        headers=HEADERS if ambari else None,
    )
    return Ambari(server) if ambari else ClouderaManager(server)


def settle_maintenance(manager: Any, host: Json, cluster: str, on: bool) -> None:
    """Switch maintenance mode and read it back: the response to a change may be lost."""
    name = str(host.get("hostname") or host.get("host_name"))
    cause = ""
    try:
        manager.set_maintenance(host, on)
    except Unavailable as error:
        cause = f" {error}"
    if manager.maintenance(manager.host(cluster, {name})) is not on:
        raise ManagerError(
            f"{name} must be {'in' if on else 'out of'} maintenance mode in {manager.server.product} now, but is not.{cause}"
        )


def text_values(values: Any) -> dict[str, str | None]:
    """Values as Cloudera Manager stores them: text, also for true and numbers; null resets one to its default."""
    if not isinstance(values, Mapping) or not values:
        raise ManagerError("values must be a mapping of settings to text, but is not.")
    texts: dict[str, str | None] = {}
    for name, value in values.items():
        if value is not None and not isinstance(value, (str, bool, int, float)):
            raise ManagerError(f"values must be text, but that of {name} is a {type(value).__name__}.")
        texts[str(name)] = str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
    return texts


def change_config(
    manager: ClouderaManager, owner: tuple[str, ...], values: Mapping[str, str | None], message: str, result: Json
) -> None:
    """Set what differs. Fills `before`, `after` and `way_back` of the result, also if it fails; an empty message changes nothing."""
    details = manager.config_details(*owner)
    unknown = sorted(set(values) - set(details))
    if unknown:
        raise ManagerError(
            f"{manager.server} has no setting {', '.join(unknown)} for {owner[-1]}. Nothing was changed. "
            "Correct its name; some settings exist in some releases only."
        )
    before = {name: details[name].get("value") for name in values}
    different = {name: value for name, value in values.items() if before[name] != value}
    result.update(before=before, after={**before, **different}, way_back={})
    if not different or not message:
        return
    try:
        manager.set_config(owner, different, message)
    except Unavailable as error:
        result["way_back"] = {name: before[name] for name in different}
        result["after"] = found_after(manager, owner, values, error)
        if result["after"] == before:
            result["way_back"] = {}
            raise ManagerError(f"{error} {owner[-1]} has the values that it had before.") from None
    except ManagerError as error:
        raise ManagerError(f"{error} Nothing was changed.") from None
    result["way_back"] = {name: before[name] for name in different if result["after"][name] != before[name]}


def found_after(
    manager: ClouderaManager, owner: tuple[str, ...], values: Mapping[str, str | None], error: Unavailable
) -> dict[str, str | None]:
    try:
        config = manager.config(*owner)
    except ManagerError:
        names = ", ".join(sorted(values))
        raise ManagerError(
            f"{error} Whether {names} of {owner[-1]} changed is not known; run again, it compares first."
        ) from None
    return {name: config.get(name) for name in values}


def restart(manager: ClouderaManager, service: Json, seconds: float) -> None:
    """Restart a service, and check that its processes have its configuration then."""
    manager.run(("clusters", service["cluster"], "services", service["name"]), "restart", seconds)
    if stale(manager, service):
        raise ManagerError(
            f"{manager.server} restarted {service['name']}, but its configuration is still not the one of its "
            "processes. Look at its page."
        )


def stale(manager: ClouderaManager, service: Json) -> bool:
    """Whether processes of the service have an older configuration."""
    current_service = manager.service(service["cluster"], service["name"])
    return current_service.get("configStalenessStatus") not in (None, "FRESH")
