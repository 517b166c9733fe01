"""What an engine image is requested with."""

from typing import Any

BASE = "docker.repository.cloudera.com/cdsw/engine:13"
CPU, GPU, WITH_WHEELS = "tf1.15-cpu-py36-el7", "tf1.15-py36-el7", "tf2.21-py311"


def given(stack: str = CPU, **changed: Any) -> dict[str, Any]:
    none = dict.fromkeys(("python", "version", "cuda_repository", "cuda_key"), "")
    defaults = {"stack": stack, "base": BASE, "mirror_url": "http://mirror01:8900", "cuda_packages": []}
    return {**none, **defaults, **changed}
