"""Arguments of modules that place files below a directory."""

from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host import atomic_files
from archives import archive

Arguments = dict[str, Any]


def receipt(root: Path) -> Arguments:
    (root / "file").write_text("content")
    state = str(root / "deeplearning/state")
    return {"component": "cuda", "digest": "aa", "paths": [str(root / "file")], "state_directory": state}


def placed_archive(root: Path) -> Arguments:
    path = archive(root, "cudnn", "lib/libcudnn.so.8")
    places = {"path": str(root / "cuda/cudnn-8"), "root": str(root / "deeplearning")}
    return {"archive": path, "sha256": atomic_files.sha256_of(path), **places}


def placed_spark(root: Path) -> Arguments:
    path = archive(root, "pyspark-9", "deps/bin/spark-submit", "deps/jars/a.jar", "lib/pyspark.zip")
    places = {"path": "spark/pyspark-9", "downloads": "downloads", "root": "deeplearning"}
    inputs = {name: str(root / place) for name, place in places.items()}
    return {**inputs, "url": f"file://{path}", "sha256": atomic_files.sha256_of(path)}
