"""What the role yarn_gpu sets and finds, as filters. The work is in lib/hadoop_dl/data/: yarn_work.py and yarn_discovery.py."""

from collections.abc import Callable, Mapping
from typing import Any

from hadoop_dl.data import yarn_discovery, yarn_work
from hadoop_dl.data.yarn_work import Isolation, Labels, Request


def settings(request: Mapping[str, Any], gpus: bool) -> yarn_work.Files:
    services = tuple(str(service) for service in request["services"])
    texts = {name: str(request[name]) for name in ("conf_dir", "devices", "discovery")}
    isolation = Isolation(**request["isolation"]) if request["isolation"] else None
    labels = Labels(**request["labels"]) if request["labels"] else None
    own = Request(services=services, isolation=isolation, labels=labels, health=bool(request["health"]), **texts)
    return yarn_work.settings(own, bool(gpus))


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "yarn_gpu_settings": settings,
            "yarn_gpu_discovered": yarn_discovery.discovered,
            "yarn_gpu_drop_in": yarn_discovery.drop_in,
        }
