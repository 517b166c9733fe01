"""A ResourceManager's answers about applications, for tests of tfos-submit.

yarn_answers/waiting.json and scheduler.json are recorded from Hadoop 3.3.6 without a NodeManager, with yarn.acl.enable: YARN then hides times.
Applications that have ended have the elements of Hadoop's ResourceManagerRest.md ("Cluster Applications API").
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

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


def application(number: int, state: str, user: str = "anna", **more: Any) -> dict[str, Any]:
    """An application of the ResourceManager's answer."""
    changes: dict[str, Any] = {"id": f"application_1795503116011_{number:04d}", "user": user, "state": state, **more}
    if state not in ("ACCEPTED", "RUNNING"):
        changes = {"runningContainers": -1, "resourceInfo": None, **changes}
    recorded = WAITING if state == "ACCEPTED" else RECORDED
    return {name: value for name, value in {**recorded, **changes}.items() if value is not None}


def gpus(value: int) -> dict[str, Any]:
    """resourceInfo of an application whose containers have so many GPUs."""
    used = {"name": "yarn.io/gpu", "resourceType": "COUNTABLE", "units": "", "value": value}
    parts = {"partitionName": "", "used": {"resourceInformations": {"resourceInformation": [used]}}}
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
            named = [one for one in self.known if one["id"] == address.path.rsplit("/", 1)[-1]]
            return {"app": named[0]} if named else {"RemoteException": {"exception": "NotFoundException"}}
        found = [
            one
            for one in self.known
            if one["user"] == query.get("user", one["user"])
            and one["state"] in query.get("states", one["state"]).split(",")
            and query.get("applicationTags", "") in one["applicationTags"]
        ]
        return {"apps": {"app": found}} if found else {"apps": None}
