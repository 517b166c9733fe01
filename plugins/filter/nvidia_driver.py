"""What the role nvidia_driver does and concludes, as filters. The work is in lib/hadoop_dl/data/driver_work.py and driver_state.py."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hadoop_dl.data import driver_state, driver_work, gpu_host, typed
from hadoop_dl.data.driver_packages import Request

Json = Mapping[str, Any]


def work(request: Json, host: Json) -> Any:
    return typed.as_json(driver_work.driver_work(Request(**request), gpu_host.read(host)))


def state(request: Json, host: Json, signers: Sequence[str]) -> Any:
    return typed.as_json(driver_state.driver_state(Request(**request), gpu_host.read(host), signers))


def module_problems(request: Json, now: Json, before: Json, built: Json) -> list[str]:
    """now, before: what gpu_host_info returned. built: the results of the builds."""
    host, earlier = gpu_host.read(now["gpu_host"]), gpu_host.read(before["gpu_host"])
    return driver_state.module_problems(Request(**request), host, earlier, built["results"])


def locks(host: Json) -> Any:
    return driver_state.locks(gpu_host.read(host))


def installer_problem(request: Json, task_result: Json, free: str, kernels: Sequence[str]) -> str:
    return driver_state.installer_problem(Request(**request), task_result, free, kernels)


def runs_ansible(host: Json, connection: str) -> bool:
    paths = [Path(name) for name in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id")]
    machine, boot = (path.read_text(encoding="ascii").strip() if path.is_file() else "" for path in paths)
    return driver_state.runs_ansible(gpu_host.read(host), connection, machine, boot)


def working_versions(host: Json) -> Any:
    return typed.as_json(driver_work.working_versions(gpu_host.read(host)))


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "driver_installer_problem": installer_problem,
            "driver_locks": locks,
            "driver_module_problems": module_problems,
            "driver_runs_ansible": runs_ansible,
            "driver_state": state,
            "driver_work": work,
            "driver_working_versions": working_versions,
        }
