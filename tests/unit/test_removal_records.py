"""Which record each removal reads: nothing is removed because the inventory names it. A new removal is written down here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_programs import REPOSITORY, tasks_in

OWN_NAME = "a fixed name that only this project uses"
THIS_RUN = "a file or package that this run has just created, where the host had none"
RECORDS = {
    "playbooks/layers/additional_environments.yml": OWN_NAME,
    "playbooks/layers/cdsw.yml": OWN_NAME,
    "playbooks/layers/gpu.yml": OWN_NAME,
    "playbooks/layers/remove.yml": "etc/hdfs.json for files in HDFS; receipts and the lock by fixed names",
    "playbooks/layers/tasks/canary_job.yml": THIS_RUN,
    "playbooks/layers/tasks/publish_wheel.yml": THIS_RUN + "; on the controller",
    "playbooks/layers/tasks/remove_yarn_gpu.yml": OWN_NAME,
    "playbooks/layers/tensorboard.yml": OWN_NAME,
    "roles/_cuda_package/tasks/remove_one.yml": "etc/gpu-check-cuda.json, -cudnn.json, -nccl.json and the files of the package's own directory",
    "roles/_cuda_package/tasks/remove_rest.yml": OWN_NAME,
    "roles/bazel/tasks/install_binary.yml": THIS_RUN,
    "roles/bazel/tasks/install_package.yml": THIS_RUN,
    "roles/bazel/tasks/remove.yml": "the directory .deeplearning, which only this role uses",
    "roles/bazel/tasks/remove_sources.yml": "the directory .deeplearning, which only this role uses",
    "roles/bazel/tasks/remove_version.yml": "VERSION/.deeplearning.json; the link only if it points to that version",
    "roles/cdsw/tasks/cloudera_manager.yml": OWN_NAME,
    "roles/cdsw_engine/tasks/remove.yml": "etc/cdsw_engine.json: images and archives",
    "roles/container_runtime/tasks/package.yml": OWN_NAME,
    "roles/container_runtime/tasks/remove.yml": "etc/container_runtime.json: the package, and whether it was there before",
    "roles/cuda/tasks/install_toolkit.yml": THIS_RUN,
    "roles/cuda/tasks/remove_rest.yml": "etc/gpu-check-cuda.json: where /usr/local/cuda pointed before",
    "roles/cuda/tasks/remove_toolkit.yml": "the mark .deeplearning-runfile in the toolkit's directory",
    "roles/cuda/tasks/run_installer.yml": THIS_RUN,
    "roles/deeplearning_command/tasks/pip_conf.yml": OWN_NAME,
    "roles/deeplearning_command/tasks/remove.yml": OWN_NAME,
    "roles/environment/tasks/remove.yml": "marks, receipts and names: plugins/module_utils/hadoop_dl_host/own_entries.py",
    "roles/gpu_check/tasks/remove.yml": OWN_NAME,
    "roles/mirror/tasks/remove.yml": "etc/mirror.json: directories and whether the account was there before; manifest.json and set.json",
    "roles/nvidia_driver/tasks/accept.yml": OWN_NAME,
    "roles/nvidia_driver/tasks/main.yml": OWN_NAME,
    "roles/nvidia_driver/tasks/package.yml": OWN_NAME,
    "roles/nvidia_driver/tasks/remove.yml": "etc/nvidia-driver-packages-before.json, -headers.json and -before.json: what the host had",
    "roles/nvidia_driver/tasks/remove_settings.yml": "etc/nvidia-driver-before.json; settings by fixed names",
    "roles/nvidia_driver/tasks/runfile.yml": "etc/nvidia-driver-before.json",
    "roles/yarn_gpu/tasks/boot_order.yml": OWN_NAME,
    "roles/yarn_gpu/tasks/remove_cgroup.yml": OWN_NAME,
    "roles/tensorboard/tasks/remove.yml": OWN_NAME,
    "roles/tensorflow_build/tasks/remove.yml": "etc/tensorflow_build.json: directories and accounts: plugins/module_utils/hadoop_dl_host/build_place.py",
    "roles/tensorflowonspark/tasks/remove_client.yml": "marks, receipts and names: plugins/module_utils/hadoop_dl_host/own_entries.py; own files in etc/",
}
REMOVING = ("file", "user", "group", "tensorflow_build_place", "mirror_artifacts", "bazel_program", "engine_image")
ALWAYS = ("remove_packages", "remove_environments", "remove_hdfs_files")
PROGRAMS = re.compile(r"\b(rm|rmdir|userdel|groupdel)\b|uninstall")
# Directories that playbooks set and that no site may set otherwise; what is removed below them has a name of this project.
SET_BY_PLAYBOOKS = {"tensorflowonspark_root", "tensorflowonspark_directory", "deeplearning_command_root"}


def removals(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for task in tasks_in(path):
        for key, arguments in task.items():
            module = key.rpartition(".")[2]
            text = str(arguments)
            removes = module in REMOVING and isinstance(arguments, dict) and arguments.get("state") == "absent"
            runs = module in ("command", "shell", "locked_command", "limited_command") and PROGRAMS.search(text)
            if removes or runs or module in ALWAYS:
                yield module, task


def every_removal() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    paths = [*REPOSITORY.glob("roles/*/tasks/**/*.yml"), *REPOSITORY.glob("playbooks/**/*.yml")]
    tasks_by_path = {str(path.relative_to(REPOSITORY)): list(removals(path)) for path in paths}
    return {path: tasks for path, tasks in tasks_by_path.items() if tasks}


def test_each_removal_has_its_record_here() -> None:
    assert sorted(every_removal()) == sorted(RECORDS)


@pytest.mark.parametrize("path", sorted(RECORDS))
def test_no_path_or_account_that_is_removed_comes_from_the_inventory(path: str) -> None:
    defaults = REPOSITORY / Path(path).parents[1] / "defaults" / "main.yml"
    inputs = set(yaml.safe_load(defaults.read_text(encoding="utf-8")) or {}) if defaults.is_file() else set()
    for module, task in every_removal()[path]:
        if module not in ("file", "user", "group", "locked_command"):
            continue
        arguments = next(value for key, value in task.items() if key.rpartition(".")[2] == module)
        values = [arguments.get(key) for key in ("path", "name", "argv")] + [task.get("loop"), task.get("vars")]
        words = set(re.findall(r"\w+", str(values)))
        assert not words & (inputs - SET_BY_PLAYBOOKS), task["name"]
