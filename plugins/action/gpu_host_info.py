"""Read a GPU host with the module gpu_host_info, and check the form of what it answers: roles decide by it."""

from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.data import gpu_host, typed
from hadoop_dl.hosts.actions import HostAction


class ActionModule(HostAction):
    """gpu_host_info: the module's options; returns `gpu_host` (lib/hadoop_dl/data/gpu_host.py), of the answer what has a field."""

    OPTIONAL = ("initramfs", "certificate")

    def act(self) -> dict[str, Any]:
        answer = self.ask_module("gpu_host_info", **self.args)
        if answer.get("failed"):
            raise AnsibleActionFail(str(answer.get("msg")))
        try:
            return {"gpu_host": typed.as_json(gpu_host.read(answer.get("gpu_host")))}
        except typed.TypedError as error:
            raise AnsibleActionFail(f"{self.host} answered {error}.") from error
