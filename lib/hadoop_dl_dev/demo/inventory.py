"""The inventory of a demo cluster: what an operator would write for these hosts."""

import os
import shutil
from typing import Any

import yaml

from hadoop_dl.data.stacks import load_stack
from hadoop_dl.plan.tensorboard import PROJECTS
from hadoop_dl_dev.demo import artifacts, workbench
from hadoop_dl_dev.demo.cluster import CA_BUNDLE, DEFAULT_NAME, KEYTAB, REALM, Cluster
from hadoop_dl_dev.demo.kerberos import USER_KEYTAB


def write(cluster: Cluster) -> None:
    """inventories/demo, or that of a second cluster. The mirror's and Hadoop's settings are in group_vars/all.yml."""

    def hosts(names: list[str]) -> dict[str, dict[str, Any]]:
        # RHEL 7 has only Python 2.7 unless somebody installed more; what the mirror host runs needs a Python 3.
        old = {"ansible_python_interpreter": "/usr/bin/python2.7"} if cluster.image.startswith("el7") else {}
        no_gpus = dict.fromkeys(set(cluster.data_hosts) - set(cluster.gpu_hosts), {"gpu_count": 0})
        return {
            name: {
                "ansible_host": cluster.addresses[name],
                **({} if name == "mirror1" else old),
                **no_gpus.get(name, {}),
            }
            for name in names
        }

    board = {"name": "demo", "directory": "hdfs:///user/analyst/model-spark", "user": "analyst", "port": 6100}
    board |= {"principal": f"analyst@{REALM}", "keytab": USER_KEYTAB} if cluster.kerberos else {}
    stack = load_stack(cluster.stack)
    projects = {entry.project for entry in stack.lock(stack.pythons[0]).entries}
    boards = [board] if PROJECTS & projects else []  # TensorFlow 2.21 comes without it
    groups = {
        "masters": {"hosts": hosts(["master1"])},
        "data_nodes": {"hosts": hosts(cluster.data_hosts), "vars": {"gpu_count": 2}},
        "edge_nodes": {"hosts": hosts(["edge1"]), "vars": {"gpu_count": 0, "tensorboard_services": boards}},
        "mirror_host": {"hosts": hosts(["mirror1"])},
    }
    if cluster.cdsw:
        groups["cdsw_hosts"] = {"hosts": hosts([workbench.NAME])}
    variables = {
        "deeplearning_request": cluster.stack,
        "mirror_mode": "fetch",
        "mirror_url": cluster.mirror_url,
        "mirror_environment": mirror_environment(),
        # nvidia-smi is a stand-in here: TensorFlow cannot compute on its GPUs, and the suite must report that.
        "verify_expected_failures": [*workbench.COMPUTES, *(workbench.DRIVES if cluster.cdsw else ())],
        # The GPUs are a stand-in and there is no repository of NVIDIA's: the stack's driver and libraries are left out.
        **dict.fromkeys(("nvidia_driver_version", "cuda_versions", "cudnn_versions", "nccl_versions"), "none"),
        "upgrade_batch": "100%",  # nobody computes here yet: all NodeManagers restart at once
        "yarn_gpu": bool(cluster.gpu_hosts),
        "yarn_gpu_restart_allowed": True,
        **{f"yarn_gpu_{unit}_command": f"systemctl restart yarn-{unit}" for unit in ("resourcemanager", "nodemanager")},
        "ansible_user": "deploy",
        "ansible_ssh_private_key_file": str(cluster.state / "id_ed25519"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={cluster.state / 'known_hosts'}",
    }
    if cluster.kerberos:
        variables |= {"hadoop_principal": f"deeplearning@{REALM}", "hadoop_keytab": KEYTAB}
        variables["yarn_gpu_nodemanager_user"] = "analyst"
    if cluster.name != DEFAULT_NAME:  # its hosts have the names of the demo's, which may be verified meanwhile
        variables["verify_report_directory"] = str(cluster.state / "verify")
    files: dict[str, Any] = {"hosts.yml": {"all": {"children": groups}}, "group_vars/all.yml": variables}
    if cluster.cdsw:
        files["group_vars/cdsw_hosts.yml"] = workbench.variables()
    shutil.rmtree(cluster.inventory, ignore_errors=True)
    (cluster.inventory / "group_vars").mkdir(parents=True)
    head = "---\n# Written by scripts/demo; make demo writes it again.\n"
    for path, content in files.items():
        (cluster.inventory / path).write_text(head + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        (cluster.inventory / path).chmod(0o600)  # a proxy's or an index's address may hold a password


def mirror_environment() -> dict[str, str]:
    """Variables with which this machine reaches the package index and Maven Central, for the one node that fetches."""
    variables = {}
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        value = os.environ.get(name) or os.environ.get(name.upper())
        variables.update({name: value} if value else {})
    index = artifacts.index_url()
    variables.update({"PIP_INDEX_URL": index} if index else {})
    maven = os.environ.get("MAVEN_CENTRAL_URL")
    variables.update({"MAVEN_CENTRAL_URL": maven} if maven else {})
    variables.update({"SSL_CERT_FILE": str(CA_BUNDLE)} if CA_BUNDLE.exists() else {})
    return variables
