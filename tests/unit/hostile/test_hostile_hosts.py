"""Hosts that answer what an attacker wants, against every playbook: they reach no file, no program and no variable beyond themselves.

Ansible connects to all hosts through ssh_stand_in.py. Every run has honest hosts and a hostile one for each attack.
"""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ansible_programs
import driver_hosts
import pytest
import python_files
import ssh_stand_in
import yaml

from hadoop_dl_dev import report_sample

REPOSITORY = Path(__file__).resolve().parents[3]
PLAYBOOKS = sorted(path.name for path in (REPOSITORY / "playbooks").glob("*.yml"))  # a new one is covered, too
ASK_NOTHING = (
    *("plan.yml", "preflight.yml", "report.yml"),  # they ask the readers' questions alone
    *("build_tensorflow.yml", "cdsw.yml", "cdsw_engine.yml", "mirror.yml"),  # they ask hosts of other groups
    "node_maintenance.yml",  # it asks ResourceManagers
    "gpu.yml",  # what site.yml asks first
    "bootstrap_ssh.yml",  # it has no questions of readers: test_bootstrap_ssh.py has hosts of its own, a hostile one among them
)
OPTIONS = {
    "upgrade_driver.yml": ["-e", "nvidia_driver_version=580.105.08"],
    "upgrade_kernel.yml": ["-e", "nvidia_driver_version=580.95.05 nvidia_driver_kernel_version=5.14.0-427.20.1.el9_4"],
    "yarn_gpu.yml": [
        *("-e", "{yarn_gpu: true, yarn_gpu_restart_allowed: true, upgrade_batch: 100%}"),
        *("-e", "yarn_gpu_nodemanager_command=/bin/true yarn_gpu_resourcemanager_command=/bin/true"),
    ],
}
FACTS: dict[str, dict[str, Any]] = {
    "yarn_gpu.yml": {
        "hadoop": {"distribution": "apache", "home": "/h", "version": "3.3.6", "conf_dir": "/etc/hadoop/conf"},
        "yarn": {
            "manager": None,
            "files": {
                "/etc/hadoop/conf/capacity-scheduler.xml": {"settings": {}, "ours": {}, "problem": None},
                "/etc/hadoop/conf/yarn-site.xml": {
                    "settings": {"yarn.nodemanager.container-executor.class": "LinuxContainerExecutor"},
                    "ours": {},
                    "problem": None,
                },
            },
            "executor_config": "/etc/hadoop/container-executor.cfg",
            "devices": "/sys/fs/cgroup/devices",
            "drained": {},
        },
    }
}
HONEST = {
    "edge1": "edge_nodes",
    "mirror1": "mirror_host",
    "master1": "masters",
    "data1": "data_nodes",
    "data2": "data_nodes",
}
WATCHED = ("ansible.cfg", "compat", "lib", "playbooks", "plugins", "roles", "stacks")
KERNEL = report_sample.KERNELS[0]
# What the modules answer on an honest host, as far as plays read it; everything else is this.
ANYTHING: dict[str, Any] = {
    "rc": 0,
    "stdout": "",
    "stderr": "",
    "stdout_lines": [],
    "stderr_lines": [],
    "files": [],
    "content": "",
    "stat": {"exists": False},
    "ansible_facts": {"getent_passwd": dict.fromkeys(("deeplearning-mirror", "deeplearning-build"))},
}
GPU_HOST = driver_hosts.ANSWER | {
    "kernels": {
        "default_boot": KERNEL,
        "headers": {KERNEL: "/h"},
        "installed": [KERNEL],
        "needed": [KERNEL],
        "running": KERNEL,
    },
    "kernel_packages": {},
    "modules": {KERNEL: None},
    "driver": {"library": "/usr/lib64/libcuda.so.1", "packages": {}, "source": "package", "version": "580.95.05"},
    "loaded": {"dependents": [], "kind": "proprietary", "nouveau": False, "version": "580.95.05"},
    "locks": driver_hosts.LOCKS | {"file": None, "lines": [], "ours": False},
    "disk_free_mb": {"/boot": 75314, "/usr": 75314, "/var": 75314},
    "secure_boot": False,
    "gpus": ["10de:1eb8"] * 2,
}
REMOVAL = {
    "applications": {},
    "bazel": {},
    "build": [],
    "cdsw": {},
    "container_runtime": [],
    "environments": ["e"],
    "gpu": {},
    "mirror": [],
    "parts": ["environments"],
    "stays": [],
    "users": [],
    "yarn_gpu": {},
    "hdfs": {
        "directories": [],
        "files": [],
        "record": "/opt/deeplearning/etc/hdfs.json",
        "recorded": False,
        "user": "",
    },
}
EARLIER = {"current": "new-000000000002", "earlier": "old-000000000001", "problem": "", "resumes": ""}
HADOOP = {
    "distribution": "cdh",
    "home": "/h",
    "hdfs_home": "/h",
    "conf_dir": "/etc/hadoop/conf",
    "java_home": "/j",
    "java_version": "17",
    "libhdfs": "/h/libhdfs.so",
    "libjvm": "/j/libjvm.so",
    "classpath": "/h/a.jar",
    "links": {},
}
MODULES = {
    "hadoop_client_info": {"hadoop": HADOOP, "problems": []},
    "file_keys": {"changed": False, "restart": False, "files": []},
    "package_repositories_info": {"unsigned": []},
    "gpu_host_info": {"gpu_host": GPU_HOST},
    "removal_info": {"removal": REMOVAL},
    "environment_earlier_info": EARLIER,
    "environment_contents_info": {"environment": "", "packages": {}, "python": "", "stack": ""},
    "run_lock": {"holder": {}, "machine": ""},
}
SITE = {
    "deeplearning_request": report_sample.STACK,
    "mirror_url": "http://mirror1:8900",
    "mirror_mode": "fetch",
    "nvidia_license_accepted": True,
    "nvidia_driver_hold": [],
}
GPU = "0000:3b:00.0"
ACCEPTED = {
    "cards": {GPU: "Tesla T4"},
    "results": [{"name": "idle_gpus_measured", "outcome": "PASS", "message": "1 GPUs"}],
    "measures": [{"gpu": GPU, "peer": "", "kind": "memory", "link": "", "speed": 240_000, "limit": 320_064}],
}
PASSED = {"results": [{"name": "driver_runs", "outcome": "PASS", "message": ""}], "problem": None}


class Site:
    """A controller's directory with an inventory, a home, results of runs, and files that no run may touch."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("outside", "home", "results", "cache"):
            (directory / name).mkdir()
        (directory / "outside" / "secret").write_text("secret")
        python_files.write_program(directory / "ssh", ssh_stand_in, directory)

    def inventory(self, attacks: Iterable[str], **facts: Any) -> None:
        """Hostile hosts come first: their answers could reach every host that is asked later."""
        groups = {f"bad-{attack}": "data_nodes" for attack in attacks} | HONEST
        hosts = {
            name: {"facts": report_sample.node(2, 2 if group == "data_nodes" else 0) | facts}
            for name, group in groups.items()
        }
        for attack in attacks:
            hosts[f"bad-{attack}"]["attack"] = attack
        self.hosts = hosts
        children: dict[str, Any] = {}
        for name, group in groups.items():
            variables = {"gpu_count": 2} if group == "data_nodes" else {}
            children.setdefault(group, {"hosts": {}})["hosts"][name] = variables
        common = {
            **SITE,
            "ansible_ssh_executable": str(self.directory / "ssh"),
            "ansible_ssh_transfer_method": "piped",
            "ansible_ssh_retries": 0,
            "ansible_become": False,
            "ansible_python_interpreter": "/usr/bin/python3",
            "mirror_controller_cache": str(self.directory / "cache"),
            "report_directory": str(self.directory / "results" / "report"),
            "verify_report_directory": str(self.directory / "results" / "verify"),
            "assume_yes": True,
        }
        content = {"all": {"vars": common, "children": children}}
        (self.directory / "hosts.yml").write_text(yaml.safe_dump(content, sort_keys=False))

    def run(self, playbook: str, *options: str, spared: Iterable[str] = ()) -> tuple[int, str]:
        """Run it, and look that nothing beyond the hostile hosts has changed."""
        content = {"hosts": self.hosts, "spared": list(spared), "modules": MODULES, "else": ANYTHING}
        content["accepted"] = ACCEPTED
        content["report"] = {"health": PASSED, "times": {"changed": 1000, "verified": 2000}}
        (self.directory / "site.json").write_text(json.dumps(content))
        (self.directory / "asked.jsonl").unlink(missing_ok=True)
        before = self.files()
        environment = {"HOME": str(self.directory / "home"), "ANSIBLE_FORKS": "2", "PYTHONDONTWRITEBYTECODE": "1"}
        arguments = ("-i", self.directory / "hosts.yml", REPOSITORY / "playbooks" / playbook, *options)
        completed = ansible_programs.run("ansible-playbook", *arguments, timeout=600, **environment)
        output = completed.stdout + completed.stderr
        assert not (self.directory / "evaluated").exists(), f"text of a host was evaluated: {output}"
        assert self.files() == before, output
        assert not re.search("Unexpected Exception|Traceback|dead state", output), output
        recap = output.rpartition("PLAY RECAP")[2]
        assert all(
            re.search(rf"^{host} .*unreachable=0", recap, re.MULTILINE) for host in ("edge1", "data1", "data2")
        ), output
        assert not [record for record in self.asked() if "cd / &&" in record["asked"]], (
            "a script that the stand-in does not know"
        )
        for record in self.asked():
            if record["host"] in HONEST:
                assert ssh_stand_in.MARK not in json.dumps(record), record
        assert len({tuple(record["options"]) for record in self.asked() if record["host"] in HONEST}) == 1
        return completed.returncode, output

    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "asked.jsonl").read_text().splitlines()]

    def files(self) -> dict[str, tuple[int, int]]:
        """The files of the controller that no run of these playbooks writes, with sizes and times."""
        tops = [REPOSITORY / name for name in WATCHED] + [
            self.directory / name for name in ("outside", "hosts.yml", "ssh")
        ]
        walks = [path for top in tops for path in ([top] if top.is_file() else every_file(top))]
        stamps = {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in walks}
        return stamps | {
            str(self.directory): (len({*os.listdir(self.directory)} - {"asked.jsonl", "hosts", "evaluated"}), 0)
        }


def every_file(top: Path) -> list[Path]:
    return [
        Path(folder, name)
        for folder, folders, names in os.walk(top)
        if Path(folder).name != "__pycache__" and not folder.endswith(".egg-info")
        for name in names
    ]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_every_host_is_a_row_of_the_report_and_hostile_ones_are_no_more(site):
    site.inventory(ssh_stand_in.ATTACKS)
    code, output = site.run("report.yml")
    rows = {
        row["host"]: row for row in json.loads((site.directory / "results/report/report.json").read_text())["hosts"]
    }
    assert set(rows) == set(site.hosts), output
    assert {rows[host]["state"] for host in HONEST} <= {"drift", "as planned"}, output


def test_the_plan_names_hostile_hosts_and_is_made_for_all_others(site):
    of_ansible = {
        "terminal",
        "printed",
    }  # they attack what Ansible prints itself, and of more hosts some are only counted
    site.inventory([attack for attack in ssh_stand_in.ATTACKS if attack not in of_ansible])
    code, output = site.run("plan.yml")
    hosts = set(re.findall(r"^([\w-]+) .*unreachable=1", output, re.MULTILINE))
    assert hosts == {
        f"bad-{attack}" for attack in set(ssh_stand_in.ATTACKS) - {"keys", "failed", "skipped"} - of_ansible
    }, output
    changing_hosts = set(HONEST) - {"master1"}
    assert all(re.search(rf"^  (\S.*, )?{host}(, |$)", output, re.MULTILINE) for host in changing_hosts), output
    assert code == 4, output  # Ansible's status for unreachable hosts


@pytest.mark.parametrize("playbook", [name for name in PLAYBOOKS if name not in ASK_NOTHING])
def test_a_host_that_turns_hostile_after_the_plan_reaches_nothing_beyond_itself(site, playbook):
    """The readers' questions are answered as on any host, so that the plays come to theirs. A lock that is not taken would end all of them."""
    site.inventory(("keys", "templates", "broken"), **FACTS.get(playbook, {}))
    questions = ("facts", "report", *(["run_lock"] if playbook != "frameworks.yml" else []))
    _code, output = site.run(playbook, "--check", *OPTIONS.get(playbook, []), spared=questions)
    assert {"data1", "data2", "edge1"} <= {entry["host"] for entry in site.asked()}, output
    hosts = {entry["host"] for entry in site.asked() if entry["host"] not in HONEST and entry["asked"] not in questions}
    assert hosts == {"bad-keys", "bad-templates", "bad-broken"}, output


@pytest.mark.parametrize("playbook", ["rollback.yml", "frameworks.yml", "remove.yml"])
def test_a_host_moves_no_cursor_whatever_ansible_itself_prints_of_it(site, playbook):
    """Failures with their exceptions, warnings, deprecations, diffs, and what follows the answer."""
    site.inventory(["terminal", "printed"])
    spared = ("facts", "report", "run_lock")
    _code, output = site.run(playbook, "--check", "--diff", spared=spared)
    for attack in ("terminal", "printed"):
        assert {entry["asked"] for entry in site.asked() if entry["host"] == f"bad-{attack}"}.difference(spared)
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", output), output


def shown(output: str) -> str:
    """Messages as the operator reads them, without the quotes of YAML."""
    return " ".join(output.split()).replace("''", "'")


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_host_that_refuses_its_lock_is_named_with_the_way_to_leave_it_out(site, taken_over):
    site.inventory(["keys"])
    MODULES["run_lock"] = {**(honest := MODULES["run_lock"]), "holder": {"id": "f" * 32, "who": "x", "pid": 1}}
    try:
        _code, output = site.run("rollback.yml", *(["-e", "run_lock_takeover=true"] if taken_over else []))
    finally:
        MODULES["run_lock"] = honest
    assert re.search(r"leave it out: --limit '!data1'", shown(output)), output


def test_a_host_that_refuses_its_rollback_is_named_with_the_way_to_leave_it_out(site):
    """An emergency rollback of the others must be one option away."""
    site.inventory([])
    MODULES["environment_earlier_info"] = {**EARLIER, "problem": "no"}
    try:
        _code, output = site.run("rollback.yml")
    finally:
        MODULES["environment_earlier_info"] = EARLIER
    assert "To go back without these hosts, add --limit 'all:!data1:!data2:!edge1'" in shown(output), output


def test_a_measurement_names_hostile_hosts_and_measures_the_others(site):
    """The row is of what honest hosts measured. Texts of another kind may be anything; what counts is typed."""
    site.inventory(ssh_stand_in.ATTACKS)
    code, output = site.run("accept_gpus.yml")
    assert code == 2, output
    assert re.search(r"Tesla T4 +memory +\d+ +240\.0 +240\.0 +240\.0$", output, re.MULTILINE), output
    for attack in ("broken", "late", "nested", "options", "paths", "templates", "types"):
        assert re.search(rf"^  bad-{attack}: ", output, re.MULTILINE), output
    assert not re.search(r"^  (data1|data2|edge1): ", output, re.MULTILINE), output


def test_the_first_playbook_is_the_one_of_the_directory():
    [play] = yaml.safe_load((REPOSITORY / "site.yml").read_text(encoding="utf-8"))
    assert play["ansible.builtin.import_playbook"] == "playbooks/site.yml"


@pytest.mark.parametrize("attack", ["broken", "printed"])
def test_an_answer_is_no_template_in_a_play_that_reads_it(site, attack):
    """Also in a site's own play: ansible-core 2.16 would evaluate the text of a broken connection."""
    site.inventory([attack])
    ask = {"ansible.builtin.stat": {"path": "/"}, "ignore_unreachable": True}
    tell = {"ansible.builtin.debug": {"msg": f"{{{{ asked }}}} {{{{ several }}}} {{{{ hostvars['bad-{attack}'] }}}}"}}
    tasks = [ask | {"register": "asked"}, ask | {"register": "several", "loop": [1, 2]}, tell]
    plays = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    (site.directory / "own.yml").write_text(json.dumps(plays), encoding="utf-8")
    _code, output = site.run(str(site.directory / "own.yml"))
    begin = "((" if attack == "broken" else "{{"
    assert f"{ssh_stand_in.MARK} {begin} lookup(" in shown(output)
