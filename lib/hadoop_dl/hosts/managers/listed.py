"""One host as a management server lists it. Its name and address are what an agent on that host reports, so they are data of that host."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from hadoop_dl.data.host_facts import Line, Path, Word
from hadoop_dl.data.typed import Text, refusal

THIS_MACHINE = re.compile(r"(.+\.)?localhost[46]?(\..*)?|ip6-(localhost|loopback)", re.IGNORECASE)


@dataclass(frozen=True)
class HostName(Text):
    """A host name that is not this machine's."""

    def convert(self, value: Any, place: str) -> str:
        name: str = super().convert(value, place)
        if THIS_MACHINE.fullmatch(name) or (is_address(name) and not is_remote(name)):
            raise refusal(value, place, "another machine's name")
        return name


@dataclass(frozen=True)
class Address:
    """An IP address of another machine, or nothing."""

    example: str = ""

    def convert(self, value: Any, place: str) -> str:
        if value == "":
            return ""
        if not isinstance(value, str) or not is_remote(value):
            raise refusal(value, place, "an IP address of another machine")
        return str(ipaddress.ip_address(value))


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # what follows it may be any text


def is_remote(text: str) -> bool:
    if not is_address(text):
        return False
    ip = ipaddress.ip_address(text)
    address = getattr(ip, "ipv4_mapped", None) or ip
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


Name = Annotated[
    str, HostName(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", "a host name", "data01.example.com", 253)
]


@dataclass(frozen=True)
class Listed:
    """A host in the words of managers.facts, of both servers."""

    name: Name
    ip: Annotated[str, Address()]
    rack: Line
    cluster: Line
    version: Word
    distribution: Word
    roles: tuple[Word, ...]
    maintenance: bool
    health: Line
    id: Line = ""
    commission_state: Word = ""
    parcels: Mapping[Line, Line] | None = None
    parcels_directory: Path = "/opt/cloudera/parcels"
