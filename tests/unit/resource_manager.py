"""A ResourceManager for tests: its answers about applications and nodes, its web address, and what `yarn logs` prints.

yarn_answers/waiting.json and scheduler.json are recorded from Hadoop 3.3.6 without a NodeManager, with yarn.acl.enable: YARN then hides times.
They and labels.json have only the keys that are read; nodes.json, apps.json and the others have all.
Applications that have ended have the elements of Hadoop's ResourceManagerRest.md ("Cluster Applications API").
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback import Quiet, served

ADDRESS = "yarn.resourcemanager.webapp.address"
ANSWERS = Path(__file__).parent / "yarn_answers"
RECORDED, WAITING = (
    json.loads((ANSWERS / name).read_text(encoding="utf-8"))["apps"]["app"][0] for name in ("apps.json", "waiting.json")
)
# Said by YARN in microsoft/azure-tools-for-java#2552.
NOT_ACTIVATED = (
    "[Wed Dec 26 09:16:18 +0000 2018] Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded.  "
    "Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request = <memory:2560, vCores:1>; Queue Resource Limit for AM = "
    "<memory:11264, vCores:1>; User AM Resource Limit of the queue = <memory:11264, vCores:1>; Queue AM Resource Usage = "
    "<memory:10240, vCores:4>; "
)


def write_settings(path: Path, settings: Mapping[str, str]) -> None:
    """A file of Hadoop's settings, such as yarn-site.xml."""
    lines = [f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in settings.items()]
    path.write_text(f"<configuration>\n{''.join(lines)}</configuration>\n", encoding="utf-8")


@contextmanager
def serving(answer: Callable[[str], Any], conf: Path) -> Iterator[None]:
    """A ResourceManager that gives these answers to paths; the directory conf gets a yarn-site.xml with its address."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            self.answer(200, json.dumps(answer(self.path)).encode())

    with served(Handler) as address:
        write_settings(conf / "yarn-site.xml", {ADDRESS: address.removeprefix("http://")})
        yield


def gpu_node(name: str, total: int, free: int | None = None, state: str = "RUNNING") -> dict[str, Any]:
    """A node of the ResourceManager's answer (3.3.6, /ws/v1/cluster/nodes)."""

    def part(value: int) -> dict[str, Any]:
        resources = [{"name": "memory-mb", "value": 6144}, {"name": "yarn.io/gpu", "value": value}]
        return {"resourceInformations": {"resourceInformation": resources}}

    free = total if free is None else free
    return {
        "nodeHostName": name,
        "state": state,
        "availMemoryMB": 6144,
        "usedMemoryMB": 0,
        "availableVirtualCores": 4,
        "usedVirtualCores": 0,
        "availableResource": part(free),
        "usedResource": part(total - free),
    }


def collected(*files: tuple[str, str, str, str]) -> str:
    """What `yarn logs` of Hadoop 3.3.6 prints for these (container, host, file, content)."""
    text = ""
    for container, place, name, content in files:
        header = f"Container: {container} on {place}_45454\nLogAggregationType: AGGREGATED\n{'=' * 60}\n"
        length = f"LogType:{name}\nLogLastModifiedTime:Tue Nov 24\nLogLength:{len(content.encode())}\nLogContents:\n"
        text += f"{header}{length}{content}\nEnd of LogType:{name}\n{'*' * 70}\n\n"
    return text


def application(number: int, state: str, user: str = "anna", **more: Any) -> dict[str, Any]:
    """An application of the ResourceManager's answer."""
    changes: dict[str, Any] = {"id": f"application_1795503116011_{number:04d}", "user": user, "state": state, **more}
    if state not in ("ACCEPTED", "RUNNING"):
        changes = {"runningContainers": -1, "resourceInfo": None, **changes}
    record = WAITING if state == "ACCEPTED" else RECORDED
    return {name: value for name, value in {**record, **changes}.items() if value is not None}


def gpus(value: int) -> dict[str, Any]:
    """resourceInfo of an application whose containers have so many GPUs."""
    resource = {"name": "yarn.io/gpu", "resourceType": "COUNTABLE", "units": "", "value": value}
    parts = {"partitionName": "", "used": {"resourceInformations": {"resourceInformation": [resource]}}}
    return {"resourceUsagesByPartition": [parts]}


class Cluster:
    """A ResourceManager that selects as Hadoop's does: by user, state and tag."""

    def __init__(self, *known: dict[str, Any], scheduler: Any = None) -> None:
        """scheduler: its schedulerInfo."""
        self.known, self.scheduler, self.asked = list(known), scheduler, []

    def answer(self, path: str) -> Any:
        self.asked.append(path)
        address = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path.endswith("/scheduler"):
            return {"scheduler": {"schedulerInfo": self.scheduler}}
        if "/apps/" in address.path:
            matches = [job for job in self.known if job["id"] == address.path.rsplit("/", 1)[-1]]
            return {"app": matches[0]} if matches else {"RemoteException": {"exception": "NotFoundException"}}
        applications = [
            job
            for job in self.known
            if job["user"] == query.get("user", job["user"])
            and job["state"] in query.get("states", job["state"]).split(",")
            and query.get("applicationTags", "") in job["applicationTags"]
        ]
        return {"apps": {"app": applications}} if applications else {"apps": None}
