#!/usr/bin/python
"""Read what a host has of Docker and of NVIDIA's container runtimes. Changes nothing."""

DOCUMENTATION = r"""
module: container_runtime_info
short_description: Read Docker's runtimes and volume drivers, NVIDIA's packages, and the driver of a host
description:
  - Answers with one mapping, C(container_runtime_info). Reads only, and therefore runs in check mode.
"""

RETURN = r"""
container_runtime_info: {description: What was read, type: dict, returned: always}
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import host_cdsw, host_system, processes

SECONDS = 30  # a daemon that does not answer must not hold the run
FORMAT = '{"runtimes": {{json .Runtimes}}, "volume_drivers": {{json .Plugins.Volume}}}'


def docker():
    """What the daemon answers, or the `problem`."""
    answer = processes.run(["docker", "info", "--format", FORMAT], SECONDS, dict(os.environ, LC_ALL="C"))
    try:
        info = json.loads(answer.output.splitlines()[-1]) if answer.status == 0 and answer.output else {}
    except ValueError:
        info = {}
    problem = "" if info else answer.problem or "docker info printed no answer"
    return {
        "runtimes": sorted(info.get("runtimes") or []),
        "volume_drivers": sorted(info.get("volume_drivers") or []),
        "problem": problem,
    }


def device(path):
    """The file system of a path or of its nearest directory that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return os.stat(path).st_dev


def main():
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    system = host_system.System()
    library = system.driver_library_path()
    manager = [name for name in ("dnf", "yum") if os.path.exists("/usr/bin/" + name)]
    info = {
        "docker": docker(),
        "manager": (manager or [""])[0],
        "packages": host_cdsw.packages(system, host_cdsw.RUNTIMES),
        "driver": system.driver_library() or "",
        "running": system.loaded_driver()[1] or "",
        "drivers": [os.path.basename(path) for path in system.glob(host_cdsw.DRIVERS + "/[0-9]*")],
        "same_file_system": library is None or device(library) == device(host_cdsw.DRIVERS),
    }
    module.exit_json(changed=False, container_runtime_info=info)


if __name__ == "__main__":
    main()
