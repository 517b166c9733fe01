"""Hosts of one CDSW from the RPM: directories of this machine behind a stand-in of ssh, and a stand-in of CDSW's command that they share."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ansible_programs
import yaml
from ansible.module_utils.hadoop_dl_host import ledger

REPOSITORY = ansible_programs.REPOSITORY
SAMPLE = (REPOSITORY / "demo/cdsw/cdsw.conf").read_text(encoding="utf-8")
HOSTS = MASTER, WORKER = "cdsw1", "cdsw2"
DRIVER = "/var/lib/nvidia-docker/volumes/nvidia_driver/470.82.01"
SETTINGS = {"NVIDIA_GPU_ENABLE": "true", "NVIDIA_LIBRARY_PATH": DRIVER}
TEMPLATE = "{{ lookup('pipe', 'touch SITE/evaluated') }}"
# SITE/HOST/breaks: text of the module whose connection breaks.
SSH = f"""#!/bin/sh
for argument; do host=${{command:-}}; command=$argument; done
input=$(mktemp SITE/input.XXXXXX)
cat > "$input"
if [ -e SITE/"$host"/breaks ] && grep -q "$(cat SITE/"$host"/breaks)" "$input"; then
    echo "{TEMPLATE}" >&2
    exit 255
fi
PATH="SITE/$host/bin:$PATH" HOME="SITE/$host" exec sh -c "$command" < "$input"
"""
UNAME = """#!/bin/sh
[ "$*" = -n ] && { echo HOST; exit; }
exec /bin/uname "$@"
"""
# As demo/cdsw/cdsw, for several hosts. SITE/nodes has a file with the GPUs of each host that joined; SITE/killed ends the controller there.
CDSW = """#!/bin/sh
set -eu
point() {
    [ "$(cat SITE/kill 2> /dev/null)" = "$1" ] || return 0
    rm SITE/kill
    kill -9 "$(cat SITE/controller)"
    exit 1
}
echo "HOST $*" >> SITE/calls
point "HOST before $1"
case $1 in
    restart | join)
        [ ! -e SITE/HOST/refuses ] || ! grep -q "$(cat SITE/HOST/refuses)" SITE/HOST/cdsw.conf || { cat SITE/HOST/fails_with; exit 1; }
        [ "$1" = restart ] || [ -e SITE/nodes/cdsw1 ] || { echo "Failed to connect to the master" >&2; exit 1; }
        cp SITE/HOST/cdsw.conf SITE/HOST/running.conf
        grep -q 'NVIDIA_GPU_ENABLE="true"' SITE/HOST/running.conf && echo 2 > SITE/nodes/HOST || echo 0 > SITE/nodes/HOST
        ;;
    reset | stop) rm -f SITE/nodes/HOST ;;
    status)
        [ -e SITE/nodes/cdsw1 ] || { echo "Processes are not running: [kubelet]."; exit 1; }
        [ ! -e SITE/no_table ] || { echo "Cloudera Data Science Workbench is ready!"; exit; }
        echo "|  NAME | STATUS | CREATED-AT | VERSION | EXTERNAL-IP | OS-IMAGE | KERNEL-VERSION | GPU | STATEFUL |"
        for node in SITE/nodes/*; do
            echo "|  $(basename "$node") | True | 2018-01-28 | v1.6.11 | None | CentOS Linux 7 (Core) | 3.10.0 | $(cat "$node") | True |"
        done
        echo "|  NAME | READY | STATUS | RESTARTS | CREATED-AT | POD-IP | HOST-IP | ROLE |"
        echo "|  web-3320989329-698m4 | 1/1 | Running | 0 | 2018-01-28 | 100.66.0.11 | 10.0.0.167 | web |"
        echo "Cloudera Data Science Workbench is ready!"
        ;;
esac
point "HOST after $1"
"""


class Site:
    """A master and a worker, each with 2 GPUs, that run without GPUs in sessions at first."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "nodes").mkdir()
        self.program(directory / "ssh", SSH)
        for host in HOSTS:
            (directory / host / "bin").mkdir(parents=True)
            self.program(directory / host / "bin/uname", UNAME.replace("HOST", host))
            self.program(directory / host / "bin/cdsw", CDSW.replace("HOST", host))
            self.conf(host).write_text(SAMPLE, encoding="utf-8")
            (directory / host / "running.conf").write_text(SAMPLE, encoding="utf-8")
            (directory / "nodes" / host).write_text("0\n", encoding="utf-8")
            (directory / host / "fails_with").write_text("Failed to start\n", encoding="utf-8")

    def program(self, path: Path, text: str) -> None:
        path.write_text(text.replace("SITE", str(self.directory)), encoding="utf-8")
        path.chmod(0o755)

    def conf(self, host: str) -> Path:
        return self.directory / host / "cdsw.conf"

    def set_up(self, host: str) -> None:
        """As an administrator leaves it: CDSW runs with the settings."""
        lines = "".join(f'{key}="{value}"\n' for key, value in SETTINGS.items())
        for name in ("cdsw.conf", "running.conf"):
            (self.directory / host / name).write_text(SAMPLE + lines, encoding="utf-8")
        (self.directory / "nodes" / host).write_text("2\n", encoding="utf-8")

    def nodes(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8").strip() for path in (self.directory / "nodes").iterdir()}

    def differences(self) -> list[str]:
        """What is not as after an undisturbed run: every host runs with the settings, is in CDSW, and nothing is pending."""
        lines = [f'{key}="{value}"' for key, value in SETTINGS.items()]
        gaps = [f"{host}: {line}" for host in HOSTS for line in lines if line not in self.running(host).splitlines()]
        gaps += [f"{host}: cdsw.conf" for host in HOSTS if self.conf(host).read_text("utf-8") != self.running(host)]
        gaps += [f"{host}: restart" for host in HOSTS if self.is_pending(host)]
        return gaps + [f"{host}: not in CDSW" for host in HOSTS if self.nodes().get(host) != "2"]

    def is_pending(self, host: str) -> bool:
        return bool(ledger.pending("cdsw", str(self.directory / host / "opt")))

    def running(self, host: str) -> str:
        return (self.directory / host / "running.conf").read_text(encoding="utf-8")

    def calls(self) -> list[str]:
        path = self.directory / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def changes(self) -> list[str]:
        """What CDSW's command was asked for, without the questions."""
        return [call for call in self.calls() if not call.endswith(" status")]

    def evaluated(self) -> bool:
        return (self.directory / "evaluated").exists()

    def command(self, *options: str, **variables: Any) -> list[str]:
        parameters = {
            "ansible_ssh_executable": str(self.directory / "ssh"),
            "ansible_become": False,
            "ansible_python_interpreter": sys.executable,
            "cdsw_kind": "rpm",
            "cdsw_release": "1.4.0",
            "cdsw_settings": SETTINGS,
            "cdsw_gpu_count": 2,
            "cdsw_master": MASTER,
            "cdsw_restart_allowed": True,
            "cdsw_timeout": 9,
            "__cdsw_root": f"{self.directory}/{{{{ inventory_hostname }}}}/opt",
            "__cdsw_conf": f"{self.directory}/{{{{ inventory_hostname }}}}/cdsw.conf",
            **variables,
        }
        hosts = {host: {"cdsw_host_role": "master" if host == MASTER else "worker"} for host in HOSTS}
        report = {"name": "Report", "ansible.builtin.debug": {"msg": "COMPLETE {{ cdsw_complete }}"}}
        role = {"name": "Role", "ansible.builtin.include_role": {"name": "cdsw", "public": True}}
        play = [{"hosts": "all", "gather_facts": False, "tasks": [role, report]}]
        for name, content in (("hosts.yml", {"all": {"hosts": hosts}}), ("play.yml", play)):
            (self.directory / name).write_text(yaml.safe_dump(content), encoding="utf-8")
        (self.directory / "vars.json").write_text(json.dumps(parameters), encoding="utf-8")
        site = str(self.directory)
        return ["-i", f"{site}/hosts.yml", "-e", f"@{site}/vars.json", *options, f"{site}/play.yml"]

    def environment(self) -> dict[str, str]:
        return {"ANSIBLE_ROLES_PATH": str(REPOSITORY / "roles"), "ANSIBLE_SSH_RETRIES": "0"}

    def run(self, *options: str, **variables: Any) -> tuple[int, str]:
        return ansible_programs.play(*self.command(*options, **variables), timeout=300, **self.environment())

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "ansible-playbook"), *self.command()],
            env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), **self.environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        (self.directory / "controller").write_text(str(process.pid), encoding="utf-8")
        return process

    def kill(self, point: str) -> None:
        """Run until CDSW's command is at this point, such as `cdsw2 after reset`; there the controller dies."""
        (self.directory / "kill").write_text(point, encoding="utf-8")
        process = self.start()
        try:
            code = process.wait(timeout=300)
        finally:
            process.kill()
        assert code == -9, f"the run ended with {code} before {point}"


def failures(said: str, host: str) -> list[str]:
    """What failed on a host, one text for each."""
    parts = said.split("fatal: [")[1:]
    return [part for part in parts if part.startswith(f"{host}]")]


DRIVERS = "/var/lib/nvidia-docker/volumes/nvidia_driver"
WANTED = {"NVIDIA_GPU_ENABLE": "true", "NVIDIA_LIBRARY_PATH": f"{DRIVERS}/418.67"}
