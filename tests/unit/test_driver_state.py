"""What the role nvidia_driver concludes after the driver was installed, and the order in which its files do what was decided."""

import contextlib
from pathlib import Path
from typing import Any

import jinja2
import pytest
import python_files
import yaml
from driver_hosts import NEW, OLD, host, module, request

from hadoop_dl.data import driver_state
from hadoop_dl.data.driver_problems import ARGUMENTS
from hadoop_dl.data.driver_state import State

REPOSITORY = Path(__file__).resolve().parents[2]
ROLE = REPOSITORY / "roles" / "nvidia_driver" / "tasks"
RUNS = {"version": "550.54.15", "kind": "proprietary", "nouveau": False}
MODULES = {OLD: module(OLD), NEW: module(NEW)}


def state(inputs: dict[str, Any] | None = None, signers: tuple[str, ...] = (), **changes: Any) -> State:
    return driver_state.driver_state(request(**(inputs or {})), host(**changes), signers)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"loaded": {"nouveau": True}}, "nouveau is loaded and holds the GPU"),  # it stayed
        ({"loaded": RUNS}, ""),
        ({}, ""),  # no module runs: one may be loaded
        (
            {"loaded": {**RUNS, "version": "535.104.05"}},
            "driver 535.104.05 (proprietary) runs, 550.54.15 (proprietary) is installed",
        ),
        ({"loaded": {**RUNS, "kind": "open"}}, "driver 550.54.15 (open) runs, 550.54.15 (proprietary) is installed"),
        ({"loaded": {"nouveau": True}, "gpus": []}, ""),
    ],
)
def test_a_reboot_is_required_only_for_what_stayed(changes, reason):
    assert state(**changes).reboot_reason == reason


def test_a_kernel_that_moves_requires_a_reboot_until_it_runs():
    moves = {"kernel": NEW.removesuffix(".x86_64"), "kernel_moves": True}
    assert state(moves, loaded=RUNS).reboot_reason == f"kernel {NEW} is installed, but {OLD} runs"
    assert state(moves, loaded=RUNS).boot_problems == (
        f"After the reboot data1 must run kernel {NEW}, but runs {OLD}. Look at grubby --default-kernel and the console, and run this again.",
    )
    driver = state(moves, loaded=RUNS, kernels={"running": NEW})
    assert (driver.reboot_reason, driver.boot_problems) == ("", ())
    assert state({**moves, "kernel_moves": False}, loaded=RUNS).reboot_reason == ""


@pytest.mark.parametrize(
    ("loaded", "words"),
    [
        ({}, "must run driver 550.54.15, but runs none."),
        ({"version": "535.104.05", "kind": "open"}, "but runs 535.104.05."),
        ({**RUNS, "nouveau": True}, "but runs 550.54.15 (nouveau is back)."),
    ],
)
def test_a_driver_that_does_not_run_after_the_reboot_is_told(loaded, words):
    (problem,) = state(loaded=loaded).boot_problems
    assert words in problem


@pytest.mark.parametrize(
    ("changes", "loads"),
    [
        ({}, True),
        ({"loaded": RUNS}, False),
        ({"loaded": {**RUNS, "kind": "open"}}, True),
        ({"gpus": []}, False),
        ({"users": [{"pid": 7, "name": "python3"}]}, False),
    ],
)
def test_the_module_is_loaded_where_an_idle_gpu_waits_for_it(changes, loads):
    assert state(**changes).loads is loads


def test_a_device_node_is_created_for_each_gpu_and_for_unified_memory():
    assert state().devices == ("nvidia-modprobe", "-u", "-c", "0", "-c", "1")


SIGNED = {"signing_key": "/srv/site.key"}


@pytest.mark.parametrize(
    ("inputs", "signers", "changes", "right"),
    [
        ({}, [], {}, True),
        ({}, [], {"version": "535.104.05"}, False),
        ({}, [], {"built_for": OLD}, False),
        ({}, [], {"open": True}, False),
        ({"module": "open"}, [], {"open": True}, True),
        (SIGNED, ["Site"], {"signer": "Site"}, True),
        (SIGNED, ["Site"], {"signer": "Example: Site"}, True),  # RHEL 7
        (SIGNED, ["Site", "A root"], {"signer": "A root"}, True),
        (SIGNED, ["Site"], {"signer": "DKMS module signing key"}, False),  # a key that dkms made itself
        (SIGNED, ["Site"], {}, False),
    ],
)
def test_a_module_that_is_wrong_is_built_again_and_refused_if_it_stays(inputs, signers, changes, right, monkeypatch):
    modules = {**MODULES, OLD: module(OLD, signer="Site", open=inputs.get("module") == "open")}
    modules[NEW] = module(NEW, **changes)
    built = state(inputs, tuple(signers), modules=modules).builds
    assert [build["kernel"] for build in built] == ([] if right else [NEW])
    monkeypatch.setattr(driver_state, "certificate_signers", lambda host: signers)
    before = host(secure_boot=bool(signers))
    problems = driver_state.module_problems(request(**inputs), host(modules=modules), before, [])
    assert len(problems) == (not right)


@pytest.mark.parametrize(("module", "name"), [("proprietary", "nvidia"), ("open", "nvidia-open")])
def test_modules_are_built_for_the_kernels_that_may_run(module, name):
    (built, _) = state({"module": module}).builds
    assert built["argv"] == ["dkms", "install", "-m", name, "-v", "550.54.15", "-k", OLD, "--force"]


def test_a_module_that_another_key_signed_is_signed_again(tmp_path, monkeypatch):
    """The stand-in does what dkms does: what is built is not signed again, also with --force."""
    dkms = python_files.load(REPOSITORY / "demo/gpu/files/dkms")
    monkeypatch.setattr(dkms, "TREE", str(tmp_path / "tree"))
    monkeypatch.setattr(dkms, "HEADERS", str(tmp_path) + "%.0s")
    monkeypatch.setattr(dkms, "PLACE", str(tmp_path / "lib/%s/extra"))
    monkeypatch.setattr(dkms, "run", lambda *argv: Path(argv[3]).write_bytes(b"") if "module" in argv else "550.54.15")
    monkeypatch.setattr(dkms, "signature", lambda certificate: Path(certificate).read_bytes())
    monkeypatch.setattr(dkms, "setting", lambda path, name: str(tmp_path / "key") * name.startswith("mok"))
    (built, _) = state(SIGNED).builds
    for key in (b"one", b"two"):
        (tmp_path / "key").write_bytes(key)
        for command in (built["removal"], built["argv"]):
            with contextlib.suppress(SystemExit):  # what is not there cannot be removed
                dkms.main(command[1:])
        assert (tmp_path / f"lib/{OLD}/extra/nvidia.ko").read_bytes() == key


@pytest.mark.parametrize("inputs", [{"build": "precompiled"}, {"source": "runfile"}])
def test_only_dkms_builds_modules(inputs):
    assert state(inputs).builds == ()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "read /var/lib/dkms/nvidia/550.54.15/build/make.log, and run this again."),
        ({"build": "precompiled"}, "or set nvidia_driver_build: dkms."),
        ({"source": "runfile"}, "nvidia_driver_state: absent, and again."),
    ],
)
def test_a_kernel_without_its_module_is_told_with_what_dkms_says(inputs, words):
    failed_result = {"item": {"kernel": NEW}, "rc": 10, "stderr": "Error! Bad return status\nfor module build"}
    results = [failed_result, {"skipped": True}]
    current_host = host(modules={OLD: module(OLD), NEW: None})
    (problem,) = driver_state.module_problems(request(**inputs), current_host, host(), results)
    assert problem.startswith(f"Kernel {NEW} of data1 requires the proprietary module 550.54.15 built for it,")
    assert f"but has none; modules exist for: {OLD}. " in problem
    assert "dkms ended with status 10: Error! Bad return status for module build." in problem
    assert problem.endswith(words)


def test_under_secure_boot_the_signer_is_told(monkeypatch):
    monkeypatch.setattr(driver_state, "certificate_signers", lambda host: ["Site"])
    current_host = host(modules={OLD: module(OLD, signer="Site"), NEW: module(NEW, signer="other")})
    (problem,) = driver_state.module_problems(request(build="precompiled"), current_host, host(secure_boot=True), [])
    assert "550.54.15 signed by Site and built for it" in problem
    assert '"signer": "other"' in problem


IMAGE = {"readable": True, "nouveau": True}
BOTH = list(ARGUMENTS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"boot_arguments": {OLD: BOTH, NEW: ["quiet", *BOTH]}}, []),
        ({"boot_arguments": {OLD: BOTH[:1], NEW: BOTH}}, [f'grubby --info=ALL shows {{"{OLD}": ["rd.driver']),
        ({"boot_arguments": {}}, ["shows no entry"]),
        ({"boot_arguments": {}, "kernels": {"installed": []}}, []),  # a container
        ({"boot_arguments": {OLD: BOTH}, "initramfs": {OLD: IMAGE, NEW: None}}, [f"but these do: {OLD}. Rebuild"]),
        ({"boot_arguments": {OLD: BOTH}, "initramfs": {OLD: {**IMAGE, "nouveau": False}}}, []),
    ],
)
def test_nouveau_is_in_no_boot_entry_and_no_initramfs(changes, words):
    problems = state(**changes).problems
    assert len(problems) == len(words)
    assert [word for word, problem in zip(words, problems, strict=True) if word not in problem] == []


@pytest.mark.parametrize(
    ("entries", "sets"),
    [({}, False), ({OLD: BOTH[::-1]}, False), ({OLD: BOTH, NEW: BOTH[:1]}, True), ({OLD: []}, True)],
)
def test_arguments_are_set_where_a_boot_entry_lacks_one(entries, sets):
    assert state(boot_arguments=entries).sets_arguments is sets


def test_what_is_installed_is_locked_in_the_managers_list():
    locks = {"file": "/etc/dnf/plugins/versionlock.list", "lines": ["nvidia-smi-0:1-1.*"]}
    assert driver_state.locks(host()) == locks


FAILED = {"failed": True, "rc": 1, "cmd": ["sh", "x.run"], "stderr": "ERROR:  no\nspace", "stdout": ""}


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (
            {"results": [{"rc": 0}, {**FAILED, "item": {"kernel": NEW}}]},
            [f"for kernel {NEW}, but sh ended with status 1: ERROR: no space."],
        ),
        (FAILED, [f"for kernel {OLD}, {NEW}, but sh ended", "Free space in MB: /usr 3.", "does not count as a driver"]),
        ({"failed": True, "msg": "The .run file must have the sha256"}, ["The .run file must have the sha256"]),
    ],
)
def test_an_installer_that_fails_is_told_with_the_free_space(failed, words):
    problem = driver_state.installer_problem(request(source="runfile"), failed, "/usr\n3", [OLD, NEW])
    assert [word for word in words if word not in problem] == []


@pytest.mark.parametrize(
    ("connection", "machine", "boot", "container", "same"),
    [
        ("local", "other", "other", False, True),
        ("ssh", "machine", "other", True, True),
        ("ssh", "other", "boot", False, True),
        ("ssh", "other", "boot", True, False),  # a container has its machine's boot id
        ("ssh", "other", "other", False, False),
    ],
)
def test_the_host_that_runs_ansible(connection, machine, boot, container, same):
    assert driver_state.runs_ansible(host(container=container), connection, machine, boot) is same


@pytest.mark.parametrize(
    ("status", "output", "waits"),
    [
        (0, "PASS  fabric_manager: joined\nPASS  cuda_computes: 8 GPUs", False),
        (1, "FAIL  fabric_manager: GPU 0: In Progress\nFAIL  cuda_computes: 802", True),
        (1, "SKIP  fabric_manager: none\nFAIL  cuda_computes: 999", False),
    ],
)
def test_gpus_have_time_to_join_the_fabric_of_their_links(status, output, waits):
    tasks = yaml.safe_load((ROLE / "accept.yml").read_text(encoding="utf-8"))
    (check,) = [task for task in tasks if "rescue" in task]
    (task,) = check["block"]
    names = {"__nvidia_driver_root": "/opt/deeplearning", "nvidia_driver_upgrade_checks": ["cuda_computes"]}
    argv = ["/opt/deeplearning/bin/gpu-check", "fabric_manager", "cuda_computes"]
    assert jinja2.Template(task["limited_command"]["argv"]).render(**names) == str(argv)
    done = jinja2.Template("{{ " + task["until"] + " }}").render({task["register"]: {"rc": status, "stdout": output}})
    assert done == str(not waits)
    assert task["retries"] * task["delay"] == 180
    assert "failed_when" not in task  # the command's own status decides in the end
