"""What nvidia_driver makes of a host: the expressions of its task files, on a host that is a mapping."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from hadoop_dl.data import driver_choices

ROLE = Path(__file__).resolve().parents[2] / "roles" / "nvidia_driver"
KERNEL = "5.14.0-427.18.1.el9_4.x86_64"
MODULE = {"version": "580.82.07", "built_for": KERNEL, "open": False, "signer": None}


def tasks(name: str) -> dict[str, Any]:
    """The tasks of a file by their names, inside blocks too."""
    waiting = yaml.safe_load((ROLE / "tasks" / f"{name}.yml").read_text(encoding="utf-8"))
    found = {}
    while waiting:
        task = waiting.pop(0)
        found[task["name"]] = task
        waiting += [inner for part in ("block", "rescue", "always") for inner in task.get(part, [])]
    return found


def template(expression: Any, **known: Any) -> Any:
    defaults = {
        key: value
        for file in ("defaults/main.yml", "vars/main.yml", "vars/RedHat.yml")
        for key, value in yaml.safe_load((ROLE / file).read_text(encoding="utf-8")).items()
    }
    return Templar(loader=DataLoader(), variables={"inventory_hostname": "data1", **defaults, **known}).template(
        expression
    )


def holds(conditions: Any, **known: Any) -> bool:
    listed = conditions if isinstance(conditions, list) else [conditions]
    return all(template("{{ " + str(condition) + " }}", **known) for condition in listed)


def passes(check: Mapping[str, Any], **known: Any) -> bool:
    """Whether an assert of a role is skipped, or holds."""
    return not holds(check.get("when", True), **known) or holds(check["ansible.builtin.assert"]["that"], **known)


@pytest.mark.parametrize(
    ("family", "distribution", "supported"),
    [
        ("RedHat", "rhel", True),
        ("RedHat", "rocky", True),
        ("Debian", "debian", True),
        ("Debian", "ubuntu", False),  # NVIDIA's and Ubuntu's own packages have other names
    ],
)
def test_a_system_whose_packages_are_not_known_is_refused_first(
    family: str, distribution: str, supported: bool
) -> None:
    found = tasks("preflight")
    assert list(found)[1] == "Check the system"
    known = {"__nvidia_driver_host": {"family": family, "distribution": distribution, "major": "22"}}
    check = found["Check the system"]["ansible.builtin.assert"]
    assert holds(check["that"], **known) is supported
    assert f"data1 is {distribution} 22" in template(check["fail_msg"], **known)


def loaded(version: str | None, nouveau: bool = False) -> dict[str, Any]:
    host = {"loaded": {"version": version, "kind": "proprietary", "nouveau": nouveau}, "gpus": ["10de:15f8"] * 2}
    return {"gpu_host": {**host, "users": [], "services": []}}


def test_nouveau_is_unloaded_before_the_module_is_loaded() -> None:
    names = list(tasks("load"))
    assert names.index("Unload nouveau") < names.index("Load the new module")
    unload = tasks("load")["Unload nouveau"]
    assert unload["limited_command"]["argv"] == ["modprobe", "-r", "nouveau"]
    for nouveau in (True, False):
        assert holds(unload["when"], __nvidia_driver_after=loaded(None, nouveau)) is nouveau


@pytest.mark.parametrize(("status", "tried"), [(0, True), (1, False)])
def test_the_module_is_loaded_where_nouveau_left(status: int, tried: bool) -> None:
    load = tasks("load")["Load the new module"]
    known = {"__nvidia_driver_nouveau": {"rc": status}, "__nvidia_driver_module_unload": {"skipped": True}}
    assert holds(load["when"], **known) is tried


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (loaded(None, nouveau=True), "nouveau is loaded and holds the GPU"),  # it stayed
        (loaded("550.54.15"), ""),  # it left
        (loaded("535.104.05"), "driver 535.104.05 (proprietary) runs, 550.54.15 (proprietary) is installed"),
    ],
)
def test_a_reboot_is_required_only_for_what_stayed(now: dict[str, Any], reason: str) -> None:
    decide = tasks("activate")["Decide whether a reboot is required"]
    known = {**decide["vars"], "__nvidia_driver_now": now, "nvidia_driver_version": "550.54.15"}
    assert template(decide["ansible.builtin.set_fact"], **known) == {
        "nvidia_driver_reboot_required": bool(reason),
        "nvidia_driver_reboot_reason": reason,
    }


def test_the_device_of_unified_memory_is_created_at_once_and_at_each_boot() -> None:
    create = tasks("load")["Create the device nodes, also that of unified memory"]
    known = {**create["vars"], "__nvidia_driver_after": loaded("550.54.15")}
    argv = template(create["limited_command"]["argv"], **known)
    assert argv == ["nvidia-modprobe", "-u", "-c", "0", "-c", "1"]
    assert create["limited_command"]["creates"] == "/dev/nvidia-uvm"
    unit = tasks("daemons")["Create the device nodes at boot, also that of unified memory"]["ansible.builtin.copy"]
    assert unit["content"] == "[Service]\nExecStartPre=-/usr/bin/nvidia-modprobe -u -c 0\n"
    assert template(unit["dest"]) == "/etc/systemd/system/nvidia-persistenced.service.d/deeplearning.conf"


@pytest.mark.parametrize(
    ("state", "installed", "packages", "goes"),
    [
        ("present", None, [], False),
        ("present", "535.104.05", [], True),
        ("present", "550.54.15", ["kmod-nvidia-latest-dkms"], False),
        ("present", "550.54.15", ["kmod-nvidia-open-dkms"], True),  # the module of the other kind
        ("absent", None, [], False),
        ("absent", "550.54.15", [], True),
    ],
)
def test_gpus_must_be_idle_only_where_their_driver_goes(
    state: str, installed: str | None, packages: list[str], goes: bool
) -> None:
    host = {"driver": {"version": installed, "packages": dict.fromkeys(packages, ["1"])}, "kernels": {"needed": []}}
    known = {"nvidia_driver_state": state, "nvidia_driver_version": "550.54.15"}
    condition = tasks("main")["Wait for idle GPUs before their driver is removed"]["when"]
    assert holds(condition, **known, __nvidia_driver_before={"gpu_host": host}) is goes
    assert not holds(condition)  # the host gets no driver, and was not read


NEXT = "5.14.0-427.20.1.el9_4"


@pytest.mark.parametrize(
    ("requested", "needed", "moves", "accepted"),
    [
        ("", [KERNEL], False, True),
        (KERNEL.removesuffix(".x86_64"), [KERNEL], False, True),
        (NEXT, [KERNEL], False, False),
        (NEXT, [KERNEL, NEXT + ".x86_64"], False, False),  # installed, and the host was not rebooted
        (NEXT, [KERNEL], True, True),  # playbooks/upgrade_kernel.yml
    ],
)
def test_another_kernel_is_the_upgrades_work(requested: str, needed: list[str], moves: bool, accepted: bool) -> None:
    check = tasks("check_host")["Check that the kernel is the one that is requested"]
    known: dict[str, Any] = {
        "nvidia_driver_kernel_version": requested,
        "__nvidia_driver_host": {"kernels": {"needed": needed}},
        **({"__nvidia_driver_kernel_moves": True} if moves else {}),
    }
    assert passes(check, **known) is accepted
    assert "playbooks/upgrade_kernel.yml" in template(check["ansible.builtin.assert"]["fail_msg"], **known)


@pytest.mark.parametrize(
    ("secure_boot", "build", "certificate", "key", "accepted"),
    [
        (False, "dkms", "", "", True),
        (None, "dkms", "", "", True),  # a host without EFI
        (True, "dkms", "", "", False),
        (True, "dkms", "/root/mok.der", "", False),
        (True, "dkms", "", "/root/mok.priv", False),
        (True, "dkms", "/root/mok.der", "/root/mok.priv", True),
        (True, "precompiled", "/root/nvidia.der", "", True),  # NVIDIA signs these
        (True, "precompiled", "", "", False),
    ],
)
def test_secure_boot_requires_a_key_and_its_certificate(
    secure_boot: bool | None, build: str, certificate: str, key: str, accepted: bool
) -> None:
    known = {
        "__nvidia_driver_host": {"secure_boot": secure_boot},
        "nvidia_driver_build": build,
        "nvidia_driver_signing_certificate": certificate,
        "nvidia_driver_signing_key": key,
    }
    assert passes(tasks("check_host")["Check Secure Boot"], **known) is accepted


@pytest.mark.parametrize(
    ("build", "family", "major", "source", "module", "accepted"),
    [
        ("precompiled", "RedHat", "8", "package", "proprietary", True),
        ("precompiled", "RedHat", "10", "package", "proprietary", True),
        ("precompiled", "RedHat", "7", "package", "proprietary", False),
        ("precompiled", "Debian", "12", "package", "proprietary", False),
        ("precompiled", "RedHat", "9", "runfile", "proprietary", False),
        ("precompiled", "RedHat", "9", "package", "open", False),
        ("dkms", "Debian", "12", "runfile", "open", True),
    ],
)
def test_precompiled_modules_exist_where_nvidia_makes_them(
    build: str, family: str, major: str, source: str, module: str, accepted: bool
) -> None:
    known = {
        "__nvidia_driver_host": {"family": family, "major": major},
        "nvidia_driver_build": build,
        "nvidia_driver_source": source,
        "nvidia_driver_module": module,
    }
    assert passes(tasks("check_request")["Check the kind of build"], **known) is accepted


@pytest.mark.parametrize(
    ("build", "module"),
    [
        ("dkms", {"name": "kernel-devel", "version": NEXT}),
        ("precompiled", {"name": "kmod-nvidia-580.82.07-5.14.0-427.20.1", "version": "580.82.07"}),
    ],
)
def test_a_kernel_is_asked_for_with_what_its_module_needs(build: str, module: dict[str, str]) -> None:
    inputs = {"nvidia_driver_kernel_version": NEXT, "nvidia_driver_version": "580.82.07", "nvidia_driver_build": build}
    matched = {"name": "kernel-devel-matched", "version": NEXT}
    for headers, ties in (({}, []), ({"kernel-devel-matched": ["5.14.0-427.18.1.el9_4"]}, [matched])):
        inputs["__nvidia_driver_before"] = {"gpu_host": {"header_packages": headers}}
        wanted = template("{{ __nvidia_driver_kernel_packages_wanted }}", **inputs)
        assert wanted == [{"name": "kernel", "version": NEXT}, module, *ties]


@pytest.mark.parametrize(
    ("major", "build", "kernels", "headers", "asked"),
    [
        ("9", "dkms", {"kernel-core": ["1"]}, {}, True),
        ("10", "dkms", {"kernel-core": ["1"]}, {}, True),
        ("8", "dkms", {"kernel-core": ["1"]}, {}, False),  # its dkms does not require it
        ("9", "dkms", {"kernel-core": ["1"]}, {"kernel-devel-matched": ["1"]}, False),  # it is there
        ("9", "dkms", {}, {}, False),  # a kernel of another vendor
        ("9", "precompiled", {"kernel-core": ["1"]}, {}, False),
    ],
)
def test_what_dkms_requires_of_the_kernels_headers_is_asked_for_before_anything_changes(
    major: str, build: str, kernels: Any, headers: Any, asked: bool
) -> None:
    known = {"nvidia_driver_version": "550.54.15", "nvidia_driver_build": build}
    host = {"major": major, "kernel_packages": kernels, "header_packages": headers, "kernels": {"default_boot": KERNEL}}
    required = template("{{ __nvidia_driver_required }}", **known, __nvidia_driver_before={"gpu_host": host})
    assert ({"name": "dkms", "least": ""} in required) is (build == "dkms")
    assert ({"name": "kernel-devel-matched", "version": KERNEL.removesuffix(".x86_64")} in required) is asked
    assert (
        tasks("repository")["Check that the repositories have every package"]["pinned_packages"]["names"]
        == "{{ __nvidia_driver_requested_packages }}"
    )


@pytest.mark.parametrize(
    ("version", "key", "least"),
    [
        ("550.54.15", "", ""),
        ("550.54.15", "/root/site.key", "3.0.4"),  # the first that signs with it
        ("575.57.08", "", "3.1.8"),  # what its module's package requires
        ("580.82.07", "/root/site.key", "3.1.8"),
    ],
)
def test_dkms_is_asked_for_in_a_version_that_does_what_is_needed(version: str, key: str, least: str) -> None:
    known = {"nvidia_driver_version": version, "nvidia_driver_signing_key": key}
    assert template("{{ __nvidia_driver_dkms_least }}", **known) == least


@pytest.mark.parametrize(
    ("said", "accepted"),
    [
        ("dkms-3.0.4", True),
        ("dkms-3.1.8", True),
        ("dkms: 2.8.7", False),
        ("dkms-3.0.3-1.el7", False),
        ("", True),  # it is not installed yet: the repositories are asked for one
    ],
)
def test_a_dkms_that_leaves_modules_unsigned_is_refused_first(said: str, accepted: bool) -> None:
    check = tasks("check_dkms")["Check that dkms signs with the site's key"]
    known = {**check["vars"], "__nvidia_driver_dkms_version": {"stdout": said}}
    assert holds(check["ansible.builtin.assert"]["that"], **known) is accepted
    assert tasks("check_host")["Check that dkms uses it"]["ansible.builtin.include_tasks"] == "check_dkms.yml"


def certificate(subject: dict[str, str], issuer: dict[str, str]) -> str:
    """A certificate in DER, as slurp answers with it."""

    def named(parts: dict[str, str]) -> x509.Name:
        return x509.Name([x509.NameAttribute(getattr(x509.NameOID, part), text) for part, text in parts.items()])

    key = ec.generate_private_key(ec.SECP256R1())
    day = datetime(2026, 1, 1, tzinfo=timezone.utc)
    builder = x509.CertificateBuilder(named(issuer), named(subject), key.public_key(), 1, day, day + timedelta(9))
    return base64.b64encode(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)).decode()


# One of the site's own, one that the site's authority issued, and one without a common name.
OWN = certificate({"COMMON_NAME": "Site"}, {"COMMON_NAME": "Site"})
ISSUED = certificate({"COMMON_NAME": "Site"}, {"ORGANIZATION_NAME": "A", "COMMON_NAME": "A root"})
NAMELESS = certificate({"ORGANIZATION_NAME": "Example"}, {"ORGANIZATION_NAME": "Example"})


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (OWN, ["Site"]),
        (ISSUED, ["Site", "A root"]),
        (NAMELESS, ["Example"]),
        (base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode(), []),
        ("", []),
    ],
)
def test_a_certificate_that_names_nobody_is_refused_before_anything_changes(content: str, names: list[str]) -> None:
    check = tasks("check_certificate")["Check that it names whom modules must be signed by"]["ansible.builtin.assert"]
    known = {
        "__nvidia_driver_certificate": {"content": content} if content else {"msg": "file not found: /srv/site.der"},
        "nvidia_driver_signing_certificate": "/srv/site.der",
    }
    assert template("{{ __nvidia_driver_signers }}", **known) == names
    assert holds(check["that"], **known) is bool(names)
    found = "is not." if content else "is missing."
    assert f"on data1 /srv/site.der {found} Nothing was changed." in template(check["fail_msg"], **known)


@pytest.mark.parametrize(
    ("content", "signer", "signed"),
    [
        (OWN, "Site", True),
        (OWN, "Example: Site", True),  # RHEL 7
        (ISSUED, "A root", True),
        (OWN, "DKMS module signing key", False),  # a key that dkms made itself
        (OWN, None, False),
    ],
)
def test_a_module_is_signed_by_the_sites_key_and_not_by_any(content: str, signer: str | None, signed: bool) -> None:
    check = tasks("module")["Check the module for {{ __nvidia_driver_kernel }}"]
    known = {
        **check["vars"],
        "__nvidia_driver_kernel": KERNEL,
        "__nvidia_driver_certificate": {"content": content},
        "__nvidia_driver_after_build": {"gpu_host": {"modules": {KERNEL: {**MODULE, "signer": signer}}}},
        "__nvidia_driver_before": {"gpu_host": {"secure_boot": True}},
        "__nvidia_driver_dkms": {"rc": 0},
        "nvidia_driver_version": "580.82.07",
    }
    assert holds(check["ansible.builtin.assert"]["that"], **known) is signed
    build = tasks("module")["Build the module for {{ __nvidia_driver_kernel }}"]
    known |= {
        **build["vars"],
        "__nvidia_driver_after": known["__nvidia_driver_after_build"],
        "nvidia_driver_signing_key": "k",
    }
    assert holds(build["when"], **known) is not signed  # it is built again


@pytest.mark.parametrize(
    ("headers", "ours", "renewed"), [([{"name": "kernel-devel"}], True, True), ([], True, False), ([{}], False, False)]
)
def test_locks_of_an_earlier_run_let_the_headers_of_a_forced_kernel_in(headers: Any, ours: bool, renewed: bool) -> None:
    names = list(tasks("headers"))
    name = "Lock headers to the kernels that are installed now"
    assert names.index(name) < names.index("Install the headers of exactly these kernels")
    known = {
        "__nvidia_driver_headers": headers,
        "__nvidia_driver_before": {"gpu_host": {"locks": {"ours": ours}}},
    }
    assert holds(tasks("headers")[name]["when"], **known) is renewed


@pytest.mark.parametrize(
    ("family", "kernel", "installed", "refusals"),
    [
        ("RedHat", NEXT, "580.82.07", []),
        ("RedHat", "", "580.82.07", ["Check which kernel is requested"]),
        ("RedHat", NEXT, None, ["Check which kernel is requested"]),
        ("Debian", "6.1.0-31", "580.82.07", ["Check the system"]),
    ],
)
def test_a_kernel_is_changed_on_rhel_where_the_driver_is(
    family: str, kernel: str, installed: str | None, refusals: list[str]
) -> None:
    found = {"family": family, "distribution": "debian", "major": "12", "driver": {"version": installed}}
    known = {
        "__nvidia_driver_before": {"gpu_host": found},
        "nvidia_driver_kernel_version": kernel,
        "nvidia_driver_version": "580.82.07",
    }
    checks = {name: task["ansible.builtin.assert"] for name, task in tasks("kernel_request").items()}
    assert [name for name, check in checks.items() if not holds(check["that"], **known)] == refusals
    said = " ".join(template(checks["Check the system"]["fail_msg"], **known).split())
    assert (
        "changes the kernel of RHEL 7, 8 and 9, but data1 is Debian 12. Run this again with --limit '!data1'." in said
    )


def test_a_kernel_whose_module_fails_is_not_booted() -> None:
    found = yaml.safe_load((ROLE / "tasks" / "kernel.yml").read_text(encoding="utf-8"))
    change = next(task for task in found if "block" in task)
    files = [task["ansible.builtin.include_tasks"] for task in change["block"]]
    assert files == ["kernel_packages.yml", "boot_kernel.yml", "main.yml"]
    back, locks = change["rescue"]
    assert back["ansible.builtin.include_tasks"] == "boot_kernel.yml"
    assert back["vars"] == {"__nvidia_driver_boot": "{{ __nvidia_driver_original_boot_kernel }}"}
    assert locks["ansible.builtin.include_tasks"] == "restore_locks.yml"  # it fails with the reason
    names = [task["name"] for task in found]
    assert names.index(change["name"]) < names.index("Reboot, or report that it is required")


@pytest.mark.parametrize(
    ("module", "accepted"),
    [
        (MODULE, True),
        (None, False),  # dkms built none
        ({**MODULE, "version": "550.54.15"}, False),
        ({**MODULE, "built_for": "5.14.0-427.13.1.el9_4.x86_64"}, False),
        ({**MODULE, "open": True}, False),
    ],
)
def test_a_kernel_without_its_module_is_told_with_what_dkms_says(module: Any, accepted: bool) -> None:
    task = tasks("module")["Check the module for {{ __nvidia_driver_kernel }}"]
    known = {
        **task["vars"],
        "nvidia_driver_version": "580.82.07",
        "__nvidia_driver_kernel": KERNEL,
        "__nvidia_driver_before": {"gpu_host": {"secure_boot": None}},
        "__nvidia_driver_after_build": {"gpu_host": {"modules": {KERNEL: module}}},
        "__nvidia_driver_dkms": {"rc": 10, "stderr": "Error! Bad return status for module build"},
        "__nvidia_driver_dkms_name": "nvidia",
    }
    check = task["ansible.builtin.assert"]
    assert holds(check["that"], **known) is accepted
    said = template(check["fail_msg"], **known)
    assert (
        said.startswith(f"Kernel {KERNEL} of data1 requires the proprietary module 580.82.07 built for it,")
        is not accepted
    )
    assert ("dkms ended with status 10: Error! Bad return status" in said) is not accepted


@pytest.mark.parametrize(
    ("required", "checking", "accepted"),
    [(False, False, True), (True, False, False), (True, True, True)],
)
def test_a_required_reboot_stops_a_rollout_but_no_rehearsal(required: bool, checking: bool, accepted: bool) -> None:
    check = tasks("accept")["Check that the new driver runs without a reboot"]["ansible.builtin.assert"]
    known = {"nvidia_driver_reboot_required": required, "ansible_check_mode": checking}
    assert holds(check["that"], **known) is accepted


RECORD = "/opt/deeplearning/etc/nvidia-driver-working-versions.json"


@pytest.mark.parametrize(
    ("recorded", "driver", "kernel"),
    [
        ([], "535.261.03", "6.1.0-31-amd64"),  # no upgrade was left half done: what is here now works
        ({"driver": "535.216.01", "kernel": "6.1.0-28-amd64"}, "535.216.01", "6.1.0-28-amd64"),
    ],
)
def test_the_way_back_is_what_worked_before_an_upgrade_that_failed(recorded: Any, driver: str, kernel: str) -> None:
    remember = tasks("read_working_versions")["Remember the versions to go back to"]
    now = {"driver": {"version": "535.261.03"}, "kernels": {"running": "6.1.0-31-amd64"}}
    known = {
        **remember["vars"],
        "__nvidia_driver_record_value": recorded,
        "__nvidia_driver_before": {"gpu_host": now},
    }
    found = template(remember["ansible.builtin.set_fact"]["__nvidia_driver_working"], **known)
    assert found == {"driver": driver, "kernel": kernel}
    for playbook, words in (("driver", f"driver_version={driver}"), ("kernel", f"kernel_version={kernel}")):
        path = ROLE.parents[1] / "playbooks" / f"upgrade_{playbook}.yml"
        plays = yaml.safe_load(path.read_text(encoding="utf-8"))
        (command,) = (play["vars"]["upgrade_way_back"] for play in plays if "upgrade_way_back" in play.get("vars", {}))
        assert template(command, __nvidia_driver_working=found).endswith(words)


def test_what_worked_is_written_once_and_goes_when_the_new_version_works() -> None:
    write = tasks("write_working_versions")["Record the versions to go back to"]["ansible.builtin.copy"]
    assert template(write["dest"]) == RECORD
    accepted = list(tasks("accept").values())
    assert accepted[-2]["name"] == "Check that the GPUs work"
    assert template(accepted[-1]["ansible.builtin.file"]) == {"path": RECORD, "state": "absent"}
    assert "__nvidia_driver_records" in tasks("remove_settings")["Remove the records"]["loop"]
    assert RECORD in template("{{ __nvidia_driver_records }}")


@pytest.mark.parametrize(
    ("inputs", "forgotten"),
    [
        ({}, True),
        ({"nvidia_driver_upgrade_allowed": "true"}, False),  # accept.yml decides
        ({"__nvidia_driver_kernel_moves": True}, False),
        ({"nvidia_driver_reboot_required": True}, False),
    ],
)
def test_an_ordinary_run_that_ends_well_needs_no_way_back(inputs: dict[str, Any], forgotten: bool) -> None:
    forget = tasks("main")["Remove the earlier versions of an upgrade that this run completed"]
    assert list(tasks("main")).index("Load the driver and start its services") < list(tasks("main")).index(
        forget["name"]
    )
    assert template(forget["ansible.builtin.file"]["path"]) == RECORD
    assert holds(forget["when"], **{"nvidia_driver_reboot_required": False, **inputs}) is forgotten


def test_what_watches_the_gpus_is_stopped_before_the_module_goes_and_started_again() -> None:
    load = tasks("load")
    names = list(load)
    stop, start = "Stop the services that hold the old module", "Start the services again that held the old module"
    assert names.index(stop) < names.index("Unload the old module") < names.index("Load the new module")
    assert names[-1] == start
    known = loaded("535.104.05")
    known["gpu_host"]["services"] = ["nvidia-dcgm", "dcgm-exporter"]
    for name, state in ((stop, "stopped"), (start, "started")):
        assert template(load[name]["loop"], __nvidia_driver_after=known) == ["nvidia-dcgm", "dcgm-exporter"]
        assert load[name]["ansible.builtin.systemd_service"]["state"] == state
    modprobed = {"__nvidia_driver_module_load": {"rc": 0}, "__nvidia_driver_after": known}
    assert holds(load[start]["when"], **modprobed)
    assert not holds(load[start]["when"], **{**modprobed, "__nvidia_driver_module_load": {"skipped": True}})


@pytest.mark.parametrize(
    ("recorded", "removed"),
    [
        ([], ["libcuda1", "nvidia-smi"]),  # the host had none of a driver
        (["libcuda1"], ["nvidia-smi"]),
        (None, []),  # this role never installed one here
    ],
)
def test_removal_leaves_the_packages_that_the_host_had_before(recorded: list[str] | None, removed: list[str]) -> None:
    choose = tasks("remove")["Choose the packages that this role installed"]
    known = {
        **choose["vars"],
        "__nvidia_driver_before": {"gpu_host": {"driver": {"packages": {"libcuda1": ["1"], "nvidia-smi": ["1"]}}}},
        "__nvidia_driver_record_value": recorded or [],
        "__nvidia_driver_record_stat": {"stat": {"exists": recorded is not None}},
    }
    assert sorted(template(choose["ansible.builtin.set_fact"]["__nvidia_driver_role_packages"], **known)) == removed
    once = tasks("package")["Record which packages of a driver the host had"]["ansible.builtin.copy"]
    assert once["force"] is False  # a later run would take this role's own for the host's


def test_dkms_forgets_the_sites_key_before_it_is_removed() -> None:
    names = list(tasks("remove"))
    assert names.index("Remove the signing key from DKMS") < names.index("Remove the packages")


@pytest.mark.parametrize(
    ("entries", "lacking"),
    [
        ({}, []),
        ({"a": ["quiet", "x", "y"], "b": ["y", "x"]}, []),
        ({"a": ["x", "y"], "b": ["x"], "c": []}, ["b", "c"]),
    ],
)
def test_kernels_whose_boot_entry_lacks_an_argument(entries: dict[str, list[str]], lacking: list[str]) -> None:
    assert driver_choices.kernels_without_arguments(entries, ["x", "y"]) == lacking


def test_kernels_whose_initramfs_contains_nouveau() -> None:
    images = {"a": {"nouveau": True}, "b": {"nouveau": False}, "c": None}
    assert driver_choices.kernels_with_nouveau(images) == ["a"]


@pytest.mark.parametrize(
    ("family", "package"),
    [
        ("RedHat", {"name": "kernel-devel", "version": NEXT}),
        ("Debian", {"name": f"linux-headers-{NEXT}.x86_64", "version": ""}),
    ],
)
def test_headers_are_asked_for_of_exactly_the_kernels_that_have_none(family: str, package: dict[str, str]) -> None:
    bare = f"{NEXT}.x86_64"
    kernels = {"needed": [KERNEL, bare], "headers": {KERNEL: "/usr/src/kernels/x", bare: None, "older": None}}
    host = {"gpu_host": {"family": family, "kernels": kernels}}
    found = template("{{ __nvidia_driver_headers }}", __nvidia_driver_before=host)
    assert found == [{"kernel": bare, **package}]
    assert (
        template("{{ __nvidia_driver_headers }}", __nvidia_driver_before=host, nvidia_driver_build="precompiled") == []
    )


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"stdout": "a\n b", "stderr": "c"}, "a b c"),
        ({"msg": "No such file", "stdout": ""}, "No such file"),
        ({"skipped": True}, "nothing"),
    ],
)
def test_what_a_command_printed_is_one_line(result: dict[str, Any], words: str) -> None:
    assert driver_choices.said(result, "nothing") == words


def test_where_another_driver_comes_from_is_named() -> None:
    assert driver_choices.origin({"source": "runfile", "packages": {}}) == "a .run file (/usr/bin/nvidia-uninstall)"
    assert driver_choices.origin({"source": "package", "packages": {"b": [], "a": []}}) == "packages (a, b)"


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"build": "precompiled"}, "Add the package kmod-nvidia-580.82.07 for this kernel to the mirror"),
        ({"source": "runfile"}, "Run this role with nvidia_driver_state: absent, and again."),
        ({}, "read /var/lib/dkms/nvidia/580.82.07/build/make.log"),
        ({"signed": True}, "580.82.07 signed by Site and built for it, but has none; modules exist for: other."),
    ],
)
def test_a_missing_module_is_told_with_the_way_out(inputs: dict[str, Any], words: str) -> None:
    request = {"host": "data1", "version": "580.82.07", "kind": "open", "build": "dkms", "source": "package"}
    request |= {"signed": False, "signers": ["Site"], "log": "/var/lib/dkms/nvidia/580.82.07/build/make.log"}
    assert words in driver_choices.module_problem({KERNEL: None, "other": MODULE}, KERNEL, {**request, **inputs}, {})


@pytest.mark.parametrize(
    ("was_here", "had", "removed"),
    [(True, {"runfile": False}, True), (True, {"runfile": True}, False), (False, [], False), (True, [], True)],
    ids=["ours", "the site's, adopted", "never here", "ours, of a release without the record"],
)
def test_a_runfile_driver_is_removed_only_where_this_role_installed_it(was_here: bool, had: Any, removed: bool) -> None:
    condition = tasks("remove")["Remove what the .run file installed"]["when"]
    assert holds(condition, __nvidia_driver_managed=was_here, __nvidia_driver_original_state=had) is removed


def test_what_the_host_had_is_recorded_before_the_first_change_and_not_by_a_later_run() -> None:
    names = list(tasks("main"))
    assert names.index("Record what the host had") < names.index("Install the headers of the kernels")
    record = tasks("write_original_state")["Record what the host had of a driver"]
    known = {"__nvidia_driver_before_stats": {"results": [{"stat": {"exists": False}}, {"stat": {"exists": True}}]}}
    gpu_host = {"boot_arguments": {"a": ["ro", "modprobe.blacklist=nouveau"]}, "driver": {"source": "runfile"}}
    had = template(record["vars"], __nvidia_driver_before={"gpu_host": gpu_host}, **known, **{
        key: value for key, value in record["vars"].items() if key != "__nvidia_driver_original_state"
    })["__nvidia_driver_original_state"]  # fmt: skip
    assert had == {"arguments": ["modprobe.blacklist=nouveau"], "runfile": True, "unit": True}
    assert holds(record["when"], **known)
    known["__nvidia_driver_before_stats"]["results"][0]["stat"]["exists"] = True
    assert not holds(record["when"], **known)
    assert record["ansible.builtin.copy"]["force"] is False


def test_arguments_and_a_unit_of_the_site_stay() -> None:
    steps = tasks("remove_settings")
    before = {"gpu_host": {"boot_arguments": {"a": ["rd.driver.blacklist=nouveau", "modprobe.blacklist=nouveau"]}}}
    known = {"__nvidia_driver_original_state": {"arguments": ["modprobe.blacklist=nouveau"], "unit": True}}
    arguments = steps["Remove the kernel arguments"]
    own = template(arguments["vars"]["__nvidia_driver_role_arguments"], **known)
    assert own == ["rd.driver.blacklist=nouveau"]
    assert template(arguments["vars"]["__nvidia_driver_boot_argument_words"], __nvidia_driver_before=before) != []
    unit = "/etc/systemd/system/nvidia-persistenced.service"
    assert unit not in template(steps["Remove the settings"]["loop"], **known)
    assert unit in template(steps["Remove the settings"]["loop"], __nvidia_driver_original_state={})


def test_a_removal_that_was_killed_writes_menu_and_images_although_no_setting_is_left() -> None:
    steps = tasks("remove_settings")
    for name, nothing in (
        ("Write grub's menu", {"__nvidia_driver_menu": []}),
        (
            "Rebuild the initramfs of every kernel without the settings",
            {"__nvidia_driver_settings_stat": {"stat": {"exists": False}}},
        ),
    ):
        for killed in (True, False):
            assert (
                holds(steps[name]["when"], __nvidia_driver_removal_mark_stat={"stat": {"exists": killed}}, **nothing)
                is killed
            )
    names = list(steps)
    assert names.index("Remove the records") > names.index("Rebuild the initramfs of every kernel without the settings")
