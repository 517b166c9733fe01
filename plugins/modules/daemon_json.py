#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Add a runtime to Docker's daemon.json key by key, and remove only that."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: daemon_json
short_description: Add a runtime to Docker's daemon.json
description:
  - Every other key stays. The file as it was before the first change is kept beside the record, and comes back with C(state=absent).
  - A diff shows the runtime alone; the file may hold secrets.
  - A file that is not JSON is refused and left alone. A runtime of the same name that starts the same program is accepted as it is.
options:
  name: {description: Name of the runtime, type: str, default: nvidia}
  program: {description: Its program, type: str, default: nvidia-container-runtime}
  state: {description: Whether the runtime must be there, type: str, choices: [present, absent], default: present}
  path: {description: The file, type: path, default: /etc/docker/daemon.json}
  record: {description: What was there before, type: path, default: /opt/deeplearning/etc/daemon.json}
  wait: {description: Seconds for another run to end, type: int, default: 600}
"""

RETURN = r"""
before: {description: Whether the file existed, type: bool, returned: always}
"""

import collections
import hashlib
import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import whole_files
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking

REFUSED = "%s must be JSON, a mapping, but %s. It was left as it is. Correct it (python3 -m json.tool shows the place), and run this again."


class Refused(Exception):
    """The file cannot be changed; the text says why."""


def read(path):
    """The file's bytes; None if it does not exist."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as handle:
        return handle.read()


def parsed(path, data):
    if data is None or not data.strip():
        return collections.OrderedDict()
    try:
        settings = json.loads(data.decode("utf-8"), object_pairs_hook=collections.OrderedDict)
    except ValueError as error:
        raise Refused(REFUSED % (path, "is not: %s" % error))
    if not isinstance(settings, dict) or not isinstance(settings.get("runtimes", {}), dict):
        raise Refused(REFUSED % (path, "it or its runtimes is none"))
    return settings


def starts(runtime, program):
    """Whether a runtime is this program without arguments: with or without its directory, args or runtimeArgs."""
    if not isinstance(runtime, dict):
        return False
    arguments = runtime.get("args") or runtime.get("runtimeArgs")
    return not arguments and os.path.basename(str(runtime.get("path", ""))) == program


def text_of(settings):
    return (json.dumps(settings, indent=4, separators=(",", ": ")) + "\n").encode("utf-8")


def with_runtime(path, data, params):
    """The file with the runtime; the same bytes if it already has it."""
    settings = parsed(path, data)
    runtimes = settings.get("runtimes", collections.OrderedDict())
    runtime = runtimes.get(params["name"])
    if starts(runtime, params["program"]):
        return data
    if runtime is not None:
        raise Refused(
            "%s has a runtime %s that this project did not add: %s. It was left as it is. Remove it, or set container_runtime: none."
            % (path, params["name"], json.dumps(runtime))
        )
    runtimes[params["name"]] = collections.OrderedDict([("args", []), ("path", params["program"])])
    settings["runtimes"] = runtimes
    return text_of(settings)


def without_runtime(path, data, params, record):
    """The bytes from before if nobody changed the file since, else the file without our key; None if the file goes."""
    if data is None or record is None:
        return data
    if hashlib.sha256(data).hexdigest() == record["sha256"]:
        return read(params["record"] + ".before")
    settings = parsed(path, data)
    runtimes = settings.get("runtimes", {})
    if starts(runtimes.get(params["name"]), params["program"]):
        del runtimes[params["name"]]
        if not runtimes:
            settings.pop("runtimes", None)
        return text_of(settings)
    return data


def write(path, data, **access):
    whole_files.make_directory(os.path.dirname(path))
    whole_files.write_whole(path, data, **access)


def recorded(path):
    try:
        record = json.loads((read(path) or b"").decode("utf-8"))
        return record if isinstance(record, dict) and "sha256" in record else None
    except ValueError:
        return None


def shown(path, data, name):
    """What a diff may show: the runtime alone, because the file may hold proxies with passwords."""
    runtimes = parsed(path, data).get("runtimes", {})
    return text_of({"runtimes": {name: runtimes[name]}}).decode("utf-8") if name in runtimes else ""


def change(module, params):
    path, record = params["path"], recorded(params["record"])
    data, backup, present = read(path), params["record"] + ".before", params["state"] == "present"
    new_data = with_runtime(path, data, params) if present else without_runtime(path, data, params, record)
    leaves = not present and record is not None
    if not module.check_mode:
        access = whole_files.access_of(path) if data is not None else {}
        if present and new_data != data:
            if record is None and data is not None:
                write(backup, data, mode=0o600)
            write(params["record"], text_of({"sha256": hashlib.sha256(new_data).hexdigest()}), mode=0o600)
        if new_data is None and data is not None:
            os.unlink(path)
        elif new_data != data:
            write(path, new_data, **access)
        for name in (params["record"], backup) if leaves else ():
            if os.path.exists(name):
                os.unlink(name)
    texts = [shown(path, content, params["name"]) for content in (data, new_data)]
    module.exit_json(
        changed=new_data != data or leaves,
        before=data is not None,
        diff={"before": texts[0], "after": texts[1], "before_header": path, "after_header": path},
    )


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "nvidia"},
            "program": {"type": "str", "default": "nvidia-container-runtime"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path", "default": "/etc/docker/daemon.json"},
            "record": {"type": "path", "default": "/opt/deeplearning/etc/daemon.json"},
            "wait": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    try:
        params = module.params
        lock = HostLock("daemon.json", params["wait"], os.path.dirname(os.path.dirname(params["record"])))
        with unless_checking(module, lock):
            change(module, params)
    except (Refused, HostLocked) as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="%s must be a file that root may write, but: %s. Solve that, and run this again."
            % (module.params["path"], error)
        )


if __name__ == "__main__":
    main()
