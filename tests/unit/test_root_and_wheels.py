"""Root imports no wheel: each place that can start an environment's Python, or a program that does, says as whom. A new one must be named here."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# What starts a wheel's code: an environment's Python or programs, Spark's, and the commands that become them.
STARTS = re.compile(
    r"(?<!/usr/)(?<!/usr/bin)\bbin\W{1,6}(python\b(?![3\d.])|spark-submit|deeplearning\b|tfos-submit|tensorboard)"
)
OF_USERS = "roles/(tensorflowonspark/files/tfos-submit|deeplearning_command/files/deeplearning)/"
PLACES = {
    "plugins/modules/environment_seal.py": "environment_imports.runner",  # in a cell
    "plugins/module_utils/hadoop_dl_host/environment_imports.py": "sandbox_cell.",  # in a cell
    "roles/verify/files/probe.py": "user=NOBODY",
    "roles/gpu_check/files/gpu-check/gpu_check/host.py": "def execute_foreign",  # nobody
    "roles/tensorboard/templates/deeplearning-tensorboard.service.j2": "User=",
    # Starts a new tree's Python, which has no wheel yet, and compiles with -S.
    "plugins/module_utils/hadoop_dl_host/environment_build.py": '"-S", "-W", "ignore", "-m", "compileall"',
    # Paths that are written, compared or told, and not started.
    "plugins/module_utils/hadoop_dl_host/own_packages.py": "return Own(",
    "plugins/module_utils/hadoop_dl_host/user_environment.py": "os.X_OK",
    "plugins/module_utils/hadoop_dl_host/earlier_records.py": "OWN = {",
    "roles/tensorflowonspark/tasks/spark.yml": "must_contain:",
    "roles/deeplearning_command/vars/main.yml": "__deeplearning_command_program:",
    "roles/tensorflowonspark/vars/main.yml": "__tensorflowonspark_program:",
    "roles/tensorflowonspark/tasks/main.yml": "__tensorflowonspark_spark_files:",
    "roles/tensorflowonspark/tasks/site_spark.yml": "ansible.builtin.stat:",
    "playbooks/group_vars/all.yml": "tensorflow_build_python:",  # the build user's (build.yml)
}


def test_root_imports_no_wheel_in_any_playbook():
    files = [
        path
        for top in ("plugins", "roles", "playbooks")
        for path in sorted((REPOSITORY / top).rglob("*"))
        if path.suffix in (".py", ".yml", ".j2", ".sh") and path.name not in ("README.md", "argument_specs.yml")
    ]
    found = {str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8") for path in files}
    starting = {name for name, text in found.items() if STARTS.search(text) and not re.match(OF_USERS, name)}
    assert starting == set(PLACES), "name the new place, and as whom it runs what is of a wheel"
    for name, way in PLACES.items():
        assert way in found[name], name
