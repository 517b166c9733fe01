"""Base class of the inventory plugins cloudera_manager and ambari; each adds its name, options, facts and variables."""

from pathlib import Path
from typing import Any, ClassVar

from ansible.errors import AnsibleParserError
from ansible.parsing.yaml.objects import AnsibleVaultEncryptedUnicode
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from hadoop_dl.data import typed
from hadoop_dl.hosts.managers import groups
from hadoop_dl.hosts.managers.listed import Listed
from hadoop_dl.hosts.managers.server import AccessRefused, Limits, Login, ManagerError, Server

Json = dict[str, Any]
SECRETS = ("password", "token")
SCHEMA = 1  # of what the cache holds


class ManagerInventory(BaseInventoryPlugin, Constructable, Cacheable):  # type: ignore[misc] # ansible-core carries no types
    """An inventory of one management server."""

    PRODUCT: ClassVar[str]
    GROUPS: ClassVar[groups.Groups]

    def facts(self, server: Server) -> Json:
        raise NotImplementedError

    def variables(self, host: Json) -> Json:
        raise NotImplementedError

    def verify_file(self, path: str) -> bool:
        """Files of another name are not read, so that no other YAML of an inventory is taken for this plugin's."""
        return bool(super().verify_file(path)) and Path(path).name in (f"{self.NAME}.yml", f"{self.NAME}.yaml")

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path)
        config = self._read_config_data(path)
        self.load_cache_plugin()
        try:
            hosts = self.sensible(self.hosts(config, path, cache))
            problem = groups.names_problem(hosts)
            if problem:
                raise ManagerError(f"{self.PRODUCT} at {self.get_option('url')}: {problem}.")
        except ManagerError as error:
            raise AnsibleParserError(f"{path}: {error}") from None
        for host in hosts:
            self.add(host)

    def sensible(self, hosts: list[Json]) -> list[Json]:
        """Hosts of which every value has its form; each other one is named and left out: it is what that host reports about itself."""
        valid_hosts = []
        for host in hosts:
            try:
                valid_hosts.append(typed.as_json(typed.read(Listed, host)))
            except typed.TypedError as error:
                name = typed.shown(host.get("name"))
                self.display.warning(
                    f"{self.PRODUCT} lists a host {name} that is left out. It has {error}. Correct it there, or its agent's configuration."
                )
        return valid_hosts

    def hosts(self, config: Json, path: str, cache: bool) -> list[Json]:
        """All hosts, from the cache if it is on and fresh. An expired cache never replaces an answer."""
        key, source = self.get_cache_key(path), self.source()
        server = self.server(config, path)  # before the cache: a missing login is always reported
        if self.get_option("cache") and cache:
            cached = self.cache.get(key) or {}
            if cached.get("source") == source:
                self.display.vv(f"{path}: {len(cached['hosts'])} hosts from the cache")
                return list(cached["hosts"])
        try:
            facts = self.facts(server)
        except AccessRefused:
            if self.get_option("cache"):
                self.cache[key] = {}  # a user without access to the server must not get its hosts from the cache either
                self.update_cache_if_changed()
            raise
        except (KeyError, TypeError, AttributeError) as error:
            raise ManagerError(
                f"{server} must answer as its API is documented, but reading the answer failed: {type(error).__name__} {error}."
            ) from None
        if self.get_option("cache"):
            self.cache[key] = {"source": source, **facts}
        return list(facts["hosts"])

    def source(self) -> Json:
        """The cache's key, without secrets: after the file was edited, the earlier hosts must not be used."""
        names = ("url", "user", "cluster")
        return {"schema": SCHEMA, **{name: str(self.get_option(name) or "") for name in names}}

    def server(self, config: Json, path: str) -> Server:
        """The server, with a login that no file shows."""
        for name in SECRETS:
            plain = config.get(name) is not None and not isinstance(config[name], AnsibleVaultEncryptedUnicode)
            if plain and not Path(path).read_bytes().startswith(b"$ANSIBLE_VAULT"):
                raise ManagerError(
                    f"{name} must not be readable in this file, but is. Encrypt it (ansible-vault encrypt_string), or remove it and set "
                    f"{self.NAME.upper()}_{name.upper()} in the environment."
                )
        login = Login(*(str(self.get_option(name) or "") for name in ("user", *SECRETS)))
        if not login.token and not (login.user and login.password):
            raise ManagerError(
                f"{self.PRODUCT} requires user and password, or a token, but they are not set. Set "
                f"{self.NAME.upper()}_USER and {self.NAME.upper()}_PASSWORD in the environment, or encrypt them in this file."
            )
        limits = Limits(total=float(self.get_option("timeout")))
        ca = str(self.get_option("ca") or "")
        return Server(
            self.PRODUCT,
            str(self.get_option("url")),
            login,
            ca=ca,
            plain_http=bool(self.get_option("plain_http")),
            limits=limits,
            settings="this file",
        )

    def add(self, host: Json) -> None:
        """Add a host with its groups and variables. Values come from a server: none of them is a template."""
        away = groups.decommissioned(host)
        if away and self.get_option("decommissioned_hosts") == "leave_out":
            self.display.v(f"{host['name']} is left out: it is {host['commission_state']} in {self.PRODUCT}")
            return
        if host["maintenance"] and self.get_option("maintenance_hosts") == "leave_out":
            self.display.v(f"{host['name']} is left out: it is in maintenance mode in {self.PRODUCT}")
            return
        name = self.inventory.add_host(str(host["name"]))
        variables = guarded(self.variables(host))
        for key, value in variables.items():
            self.inventory.set_variable(name, key, value)
        names = groups.groups_of(host["roles"], {**self.GROUPS, **(self.get_option("role_groups") or {})})
        if away:
            names = ["decommissioned"]  # it runs no executors, so it is in none of the groups that get an environment
        elif host["maintenance"]:
            names = [*names, "maintenance"]
        for group in names:
            self.inventory.add_child(self.inventory.add_group(group), name)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)


def guarded(value: Any) -> Any:
    """The value with every text that could be a template marked as one that Ansible must not evaluate."""
    if isinstance(value, dict):
        return {key: guarded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [guarded(item) for item in value]
    return wrap_var(value) if isinstance(value, str) and "{" in value else value
