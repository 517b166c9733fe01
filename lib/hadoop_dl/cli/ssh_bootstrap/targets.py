"""Which hosts: those of an inventory, and those named on the command line."""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hadoop_dl.cli.ssh_bootstrap.model import Host, Misuse


def inventory_hosts(sources: Sequence[str], limit: str | None, user: str | None) -> list[Host]:
    """The hosts of an Ansible inventory that SSH reaches."""
    beside = shutil.which(
        "ansible-inventory", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    )
    command = [beside or "ansible-inventory", "--list", *(f"--inventory={source}" for source in sources)]
    command += [f"--limit={limit}"] if limit else []
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise Misuse(f"ansible-inventory could not read {', '.join(sources)}: {answer.stderr.strip()}")
    listed: dict[str, Any] = json.loads(answer.stdout)
    variables = listed["_meta"]["hostvars"]
    names = sorted({name for group in listed.values() for name in group.get("hosts", [])} | set(variables))
    hosts = []
    for name in names:
        own = variables.get(name, {})
        if str(own.get("ansible_connection", "ssh")) not in ("ssh", "smart", "paramiko", "paramiko_ssh"):
            continue
        values = {
            "ansible_host": own.get("ansible_host", name),
            "ansible_port": own.get("ansible_port", 22),
            "ansible_user": user or own.get("ansible_user", getpass.getuser()),
        }
        for variable, value in values.items():
            if "{{" in str(value):
                raise Misuse(
                    f"{variable} of {name} is a template ({value}), but must be a plain value here. Write it out."
                )
        if not str(values["ansible_port"]).isdecimal() or not 0 < int(values["ansible_port"]) < 65536:
            raise Misuse(
                f"ansible_port of {name} must be a number from 1 to 65535, but it is {values['ansible_port']!r}. Correct the inventory."
            )
        address, port, login = str(values["ansible_host"]), int(values["ansible_port"]), str(values["ansible_user"])
        hosts.append(Host(name, address, port, login, bastion(own)))
    return hosts


def bastion(variables: Mapping[str, Any]) -> str:
    """The argument of ssh that sends a host's connections through another one."""
    for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args"):
        match = re.search(r"(ProxyJump|ProxyCommand)[ =]\S+|-J *\S+", str(variables.get(name, "")))
        if match:
            return f"{name}: {match[0]}"
    return ""


def named_host(text: str, port: int, user: str | None) -> Host:
    """[USER@]HOST[:PORT]; an IPv6 address is in brackets."""
    login, _, place = text.rpartition("@")
    if place.startswith("["):
        address, _, suffix = place[1:].partition("]")
        port_text = suffix.removeprefix(":")
    else:
        address, _, port_text = place.partition(":")
    if not address or (port_text and not port_text.isdigit()):
        raise Misuse(
            f"a host must be written as [USER@]HOST[:PORT], but {text!r} is not. Write an IPv6 address in brackets."
        )
    return Host(address, address, int(port_text or port), login or user or getpass.getuser())
