"""What the role nvidia_driver does on a host: the function that decides, on every kind of host and request."""

import base64
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_programs import tasks_in
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from driver_hosts import DEBIAN, NEW, OLD, host, installed, module, request
from gpu_host_info import RECORDS

from hadoop_dl.data import typed
from hadoop_dl.data.driver_problems import signers
from hadoop_dl.data.driver_work import Work, driver_work
from hadoop_dl.data.gpu_host import Original

ROLE = Path(__file__).resolve().parents[2] / "roles" / "nvidia_driver" / "tasks"
NEXT = "5.14.0-427.20.1.el9_4"
RUNFILE = {"source": "runfile"}
KERNEL = {"kernel": NEXT, "kernel_moves": True}
FREE = {"/usr": 100, "/boot": 900, "/var": 9000}


def work(inputs: dict[str, Any] | None = None, **changes: Any) -> Work:
    return driver_work(request(**(inputs or {})), host(**changes))


def certificate(subject: dict[str, str], issuer: dict[str, str]) -> str:
    """A certificate in DER, as the module answers with it."""

    def named(parts: dict[str, str]) -> x509.Name:
        return x509.Name([x509.NameAttribute(getattr(x509.NameOID, part), text) for part, text in parts.items()])

    key = ec.generate_private_key(ec.SECP256R1())
    day = datetime(2026, 1, 1, tzinfo=timezone.utc)
    builder = x509.CertificateBuilder(named(issuer), named(subject), key.public_key(), 1, day, day + timedelta(9))
    return base64.b64encode(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)).decode()


OWN = certificate({"COMMON_NAME": "Site"}, {"COMMON_NAME": "Site"})
SIGNING = {"certificate": OWN, "mokutil": "/srv/site.der is already enrolled", "dkms": "dkms-3.0.4"}
KEY = {"signing_key": "/srv/site.key", "signing_certificate": "/srv/site.der"}


@pytest.mark.parametrize(
    ("inputs", "changes"),
    [
        ({}, {}),
        ({}, {"distribution": "rocky"}),
        ({}, {"driver": installed()}),
        ({"upgrade_allowed": True}, {"driver": installed("535.104.05")}),
        ({"build": "precompiled"}, {"major": "8"}),
        ({"build": "precompiled", "module": "open"}, {}),  # a distribution's
        ({"module": "open", **RUNFILE}, {}),
        (RUNFILE, {}),
        ({"kernel": OLD.removesuffix(".x86_64")}, {"kernels": {"needed": [OLD]}}),
        (KERNEL, {"driver": installed()}),
        ({}, {"secure_boot": False}),
        (KEY, {"secure_boot": True, "signing": SIGNING}),
        (KEY, {"secure_boot": True, "signing": {**SIGNING, "dkms": "dkms cannot be run: No such file"}}),
        (KEY, {"signing": {**SIGNING, "mokutil": "", "dkms": ""}}),  # without Secure Boot nothing needs to be enrolled
        ({**RUNFILE, **KEY}, {"secure_boot": True, "signing": {**SIGNING, "dkms": "dkms: 2.8.7"}}),
        # NVIDIA signs these
        ({"build": "precompiled", "signing_certificate": "/n.der"}, {"secure_boot": True, "signing": SIGNING}),
        ({}, {"driver": installed(), "disk_free_mb": FREE}),  # nothing is installed
        ({"state": "absent", "version": "", "license_accepted": False}, {"locks": {"plugin": False}}),
    ],
)
def test_requests_that_a_host_can_have(inputs, changes):
    assert work(inputs, **changes).problems == ()


UBUNTU = {"family": "Debian", "distribution": "ubuntu", "major": "22"}
OF_RUNFILE = {"driver": {"source": "runfile", "version": "535.104.05"}}


@pytest.mark.parametrize(
    ("inputs", "changes", "words"),
    [
        ({}, UBUNTU, ["data1 is ubuntu 22", "Nothing was changed"]),
        (
            {},
            DEBIAN,
            ["on RHEL 7, 8 and 9, but data1 is debian 12", "nvidia_driver_version: none. Nothing was changed"],
        ),
        ({}, {"major": "10"}, ["on RHEL 7, 8 and 9, but data1 is rhel 10"]),
        ({"state": "absent"}, UBUNTU, ["packages are known on RHEL 7, 8 and 9"]),
        ({"license_accepted": False}, {}, ["nvidia_license_accepted: true", "nvidia_driver_license_accepted"]),
        *(
            (
                {"build": "precompiled", **inputs},
                changes,
                ["packages of the module for RHEL 8", "nvidia_driver_build: dkms"],
            )
            for inputs, changes in (({}, {"major": "7"}), (RUNFILE, {}))
        ),
        ({**RUNFILE, "fabric_manager": True}, {"nvswitches": 6}, ["contains none", "data1 (6 NVSwitches)"]),
        *(
            ({"dcgm_version": "4.5.2", **inputs}, changes, ["nvidia_driver_dcgm_version requires", "remove the input"])
            for inputs, changes in ((RUNFILE, {}), ({"version": "440.33.01"}, {}))
        ),
        (
            RUNFILE,
            {"driver": installed()},
            ["from packages (kmod-nvidia-latest-dkms)", "nvidia_driver_state: absent; or"],
        ),
        ({}, OF_RUNFILE, [".run file (/usr/bin/nvidia-uninstall)", "(or nvidia-uninstall --silent)"]),
        ({}, {"driver": installed("535.104.05")}, ["driver 535.104.05, locked", "upgrade_driver.yml --limit data1"]),
        ({"module": "open"}, {"driver": installed()}, ["550.54.15 (kmod-nvidia-latest-dkms), locked"]),
        # Another kernel is the work of upgrade_kernel.yml; one that is installed and did not run yet, too.
        ({"kernel": NEXT}, {"kernels": {"needed": [OLD]}}, [f"runs or boots {OLD}", "playbooks/upgrade_kernel.yml"]),
        ({"kernel": NEXT}, {"kernels": {"needed": [OLD, f"{NEXT}.x86_64"]}}, [f"boots {OLD}, {NEXT}.x86_64"]),
        ({**KERNEL, "kernel": ""}, {"driver": installed()}, ["requires nvidia_driver_kernel_version"]),
        (KERNEL, {}, ["data1 with driver none", "playbooks/gpu.yml first"]),
        (KERNEL, DEBIAN, ["on RHEL 7, 8 and 9, but data1 is debian 12"]),
        ({}, {"locks": {"plugin": False}}, ["dnf versionlock", "Add python3-dnf-plugin-versionlock"]),
        ({}, {"major": "7", "locks": {"plugin": False, "manager": "yum"}}, ["Add yum-plugin-versionlock"]),
        ({}, {"disk_free_mb": FREE}, ["/usr requires 2000 MB", "has 100 MB"]),
        ({}, {"disk_free_mb": {**FREE, "/usr": None}}, ["has 0 MB"]),
        *(
            (inputs, {"secure_boot": True}, ["Secure Boot is on", "mokutil --import"])
            for inputs in ({}, {"signing_certificate": "/c"}, {"signing_key": "/k"}, {"build": "precompiled"})
        ),
        *(
            (KEY, {"signing": {**SIGNING, "certificate": content}}, [f"on data1 /srv/site.der is {what}. Nothing was"])
            for content, what in ((None, "missing"), ("AAAA", "not"))
        ),
        (
            KEY,
            {"secure_boot": True, "signing": {**SIGNING, "mokutil": "/srv/site.der is not enrolled"}},
            ["does not trust yet (/srv/site.der is not enrolled)", "mokutil --import /srv/site.der"],
        ),
        *(
            (KEY, {"secure_boot": True, "signing": {**SIGNING, "dkms": said}}, ["3.0.4 or later", f"has dkms {found}."])
            for said, found in (("dkms: 2.8.7", "2.8.7"), ("dkms-3.0.3-1.el7", "3.0.3"))
        ),
    ],
)
def test_requests_that_a_host_cannot_have(inputs, changes, words):
    (problem,) = work(inputs, **changes).problems
    assert [word for word in words if word not in problem] == []


def test_every_problem_is_told_at_once():
    problems = work({"license_accepted": False}, locks={"plugin": False}, secure_boot=True).problems
    assert len(problems) == 3


@pytest.mark.parametrize(
    ("state", "version", "packages", "module", "replaces", "goes"),
    [
        ("present", None, [], "proprietary", False, False),
        ("present", "535.104.05", [], "proprietary", True, True),
        ("present", "550.54.15", ["kmod-nvidia-latest-dkms"], "proprietary", False, False),
        ("present", "550.54.15", ["kmod-nvidia-latest-dkms"], "open", True, True),  # the module of the other kind
        ("absent", None, [], "proprietary", False, False),
        ("absent", "550.54.15", [], "proprietary", False, True),
    ],
)
def test_gpus_must_be_idle_only_if_their_driver_goes(state, version, packages, module, replaces, goes):
    planned_work = work({"state": state, "module": module}, driver=installed(version, tuple(packages)))
    assert (planned_work.replaces, planned_work.requires_idle_gpus) == (replaces, goes)


@pytest.mark.parametrize(
    ("build", "module"),
    [
        ("dkms", {"name": "kernel-devel", "version": NEXT}),
        ("precompiled", {"name": "kmod-nvidia-550.54.15-5.14.0-427.20.1", "version": "550.54.15"}),
    ],
)
@pytest.mark.parametrize("tied", [False, True])
def test_a_kernel_is_asked_for_with_what_its_module_needs(build, module, tied):
    devel = {"name": "kernel-devel-matched", "version": NEXT}
    headers = {"kernel-devel-matched": ["5.14.0-427.18.1.el9_4"]} if tied else {}
    planned_work = work({**KERNEL, "build": build}, driver=installed(), header_packages=headers)
    assert planned_work.checks[-1].title == f"Kernel {NEXT}"
    assert list(planned_work.checks[-1].packages) == [{"name": "kernel", "version": NEXT}, module] + [devel] * tied
    assert all(
        not package["name"].startswith("kmod-") for package in planned_work.kernel_packages
    )  # it is the driver's transaction
    installed_work = work(
        {**KERNEL, "build": build}, driver=installed(), kernels={"installed": [OLD, f"{NEXT}.x86_64"]}
    )
    assert [check.title for check in installed_work.checks if check.title.startswith("Kernel")] == []


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
def test_what_dkms_requires_of_the_kernels_headers_is_checked_before_anything_changes(
    major, build, kernels, headers, asked
):
    planned_work = work({"build": build}, major=major, kernel_packages=kernels, header_packages=headers)
    packages = planned_work.checks[0].packages
    assert ({"name": "dkms", "least": ""} in packages) is (build == "dkms")
    assert ({"name": "kernel-devel-matched", "version": NEW.removesuffix(".x86_64")} in packages) is asked


@pytest.mark.parametrize(
    ("version", "key", "least"),
    [
        ("550.54.15", "", ""),
        ("550.54.15", "/root/site.key", "3.0.4"),  # the first that signs with it
        ("575.57.08", "", "3.1.8"),  # what its module's package requires
        ("580.82.07", "/root/site.key", "3.1.8"),
    ],
)
def test_dkms_is_asked_for_in_a_version_that_does_what_is_needed(version, key, least):
    assert {"name": "dkms", "least": least} in work({"version": version, "signing_key": key}).checks[0].packages


def test_headers_are_asked_for_of_exactly_the_kernels_that_have_none():
    kernels = {"headers": {OLD: "/usr/src/x", NEW: None, "older": None}}
    planned_work = work(kernels=kernels)
    release = NEW.removesuffix(".x86_64")
    assert planned_work.headers.packages == ({"kernel": NEW, "name": "kernel-devel", "version": release},)
    assert planned_work.headers.record == (f"kernel-devel-{release}",)
    assert planned_work.headers.packages[0] in planned_work.checks[0].packages
    assert work({"build": "precompiled"}, kernels=kernels).headers.packages == ()


def test_an_installed_driver_asks_no_repository():
    assert work(driver=installed()).checks == ()
    assert work(RUNFILE).checks == ()


def test_the_module_of_the_other_kind_leaves_in_the_transaction():
    installation = work({"module": "open"}, driver=installed()).installation
    assert installation.leaving == ("kmod-nvidia-latest-dkms",)
    assert "kernel" in installation.exclude


@pytest.mark.parametrize(
    ("inputs", "version", "titles"),
    [
        ({}, None, ["Driver 550.54.15"]),
        ({}, "550.54.15", []),  # it is there
        ({}, "535.104.05", ["Driver 550.54.15"]),
        ({"source": "runfile"}, None, []),
        ({"kernel": NEXT, "kernel_moves": True}, "550.54.15", [f"Kernel {NEXT}"]),
    ],
)
def test_each_transaction_is_solved_before_anything_changes(inputs, version, titles):
    planned_work = work(
        inputs, driver=installed(version, ("kmod-nvidia-latest-dkms", "libnvidia-ml") if version else ())
    )
    assert [transaction.title for transaction in planned_work.transactions] == titles
    for transaction in planned_work.transactions:
        if transaction.title.startswith("Driver"):
            installation = planned_work.installation
            assert (transaction.packages, transaction.exclude) == (installation.packages, installation.exclude)
            assert transaction.leaving == installation.leaving == ("libnvidia-ml",) * bool(version)


@pytest.mark.parametrize(
    ("installed_now", "requested", "leaving"),
    [
        (["kmod-nvidia-latest-dkms"], "precompiled", ["kmod-nvidia-latest-dkms"]),
        (["kmod-nvidia-550.54.15-5.14.0-400"], "precompiled", []),  # of this version for a further kernel
        (["kmod-nvidia-535.104.05-5.14.0-427.18.1"], "precompiled", ["kmod-nvidia-535.104.05-5.14.0-427.18.1"]),
        (["kmod-nvidia-550.54.15-5.14.0-427.18.1"], "dkms", ["kmod-nvidia-550.54.15-5.14.0-427.18.1"]),
        (["kmod-nvidia-open-550.54.15-5.14.0-400"], "precompiled", ["kmod-nvidia-open-550.54.15-5.14.0-400"]),
    ],
)
def test_modules_of_another_kind_or_version_leave(installed_now, requested, leaving):
    planned_work = work({"build": requested}, driver=installed(packages=tuple(installed_now)))
    assert list(planned_work.installation.leaving) == leaving
    assert planned_work.replaces is bool(leaving)


@pytest.mark.parametrize(
    ("inputs", "signs"),
    [({}, False), (KEY, True), ({**KEY, "build": "precompiled"}, False), ({**KEY, "state": "absent"}, False)],
)
def test_dkms_has_the_key_only_while_it_signs(inputs, signs):
    assert work(inputs).signs is signs


def runs(found: Work) -> list[tuple[str, bool]]:
    return [(run.kernel, "-K" in run.options) for run in found.installer]


def test_the_run_file_installs_everything_once_and_then_modules():
    assert runs(work(RUNFILE)) == [(OLD, False), (NEW, True)]
    assert runs(work()) == []
    host_facts = {"driver": {"source": "runfile", "version": "550.54.15"}}
    modules = {OLD: module(OLD), NEW: module(NEW)}
    assert runs(work(RUNFILE, **host_facts, modules=modules)) == []
    for variant in (None, module(NEW, version="535.104.05"), module(NEW, open=True), module(NEW, other_kernel=True)):
        planned_work = work(RUNFILE, **host_facts, modules={**modules, NEW: variant})
        assert runs(planned_work) == [(NEW, True)]
        assert not planned_work.installs_everything
    interrupted_work = work(RUNFILE, **host_facts, modules=modules, files={"installing": True})
    assert interrupted_work.installs_everything
    assert runs(interrupted_work) == [(OLD, False), (NEW, True)]


@pytest.mark.parametrize(
    ("version", "inputs", "options"),
    [
        ("550.54.15", {}, ()),
        ("550.54.15", {"module": "open"}, ("-m=kernel-open",)),
        ("580.82.07", {"module": "open"}, ("--kernel-module-type=open",)),
        ("580.82.07", KEY, ("--module-signing-secret-key=/srv/site.key", "--module-signing-public-key=/srv/site.der")),
    ],
)
def test_the_installer_is_told_the_kind_of_module_and_the_key(version, inputs, options):
    planned_work = work({**RUNFILE, "version": version, **inputs})
    assert planned_work.installer[0].options == (f"--kernel-name={OLD}", *options)
    assert planned_work.installer[1].options == (f"--kernel-name={NEW}", "-K", *options)


def test_what_the_host_had_is_recorded_before_the_first_change_only():
    arguments = {OLD: ["ro"], NEW: ["modprobe.blacklist=nouveau"]}
    original = work(boot_arguments=arguments, files={"unit": True}, driver={"source": "runfile"}).original
    blacklist = ["modprobe.blacklist=nouveau"]
    assert typed.as_json(original) == {"arguments": blacklist, "runfile": True, "unit": True, "stream": False}
    assert work(files={"stream": True}).original == Original(stream=True)
    assert work(files={"settings": True}).original is None


@pytest.mark.parametrize(
    ("source", "before", "unit"), [("runfile", {}, True), ("runfile", {"unit": True}, False), ("package", {}, False)]
)
def test_a_unit_is_installed_where_neither_package_nor_host_has_one(source, before, unit):
    inputs = RUNFILE if source == "runfile" else {}
    assert work(inputs, records={"before": before}).unit is unit


def test_the_daemons_of_the_driver():
    assert work().daemons == ("nvidia-persistenced",)
    assert work({"persistence": False, "fabric_manager": True}).daemons == ("nvidia-fabricmanager",)


@pytest.mark.parametrize(
    ("recorded", "removed"),
    [
        ([], ["libcuda1", "nvidia-smi"]),  # the host had none of a driver
        (["libcuda1"], ["nvidia-smi"]),
        (None, []),  # this role never installed one here
    ],
)
def test_removal_leaves_the_packages_that_the_host_had_before(recorded, removed):
    driver = installed(packages=("libcuda1", "nvidia-smi"))
    removal = work({"state": "absent"}, driver=driver, records={"packages_before": recorded}).removal
    assert sorted(removal.packages) == removed


BLACKLISTS = ("rd.driver.blacklist=nouveau", "modprobe.blacklist=nouveau")


@pytest.mark.parametrize(
    ("before", "settings", "runfile", "arguments", "unit"),
    [
        (None, False, False, (), False),  # nothing of this role is here
        (None, True, True, BLACKLISTS, True),  # of an earlier release
        ({"runfile": True, "unit": True, "arguments": [BLACKLISTS[1]]}, True, False, BLACKLISTS[:1], False),
        ({}, False, True, BLACKLISTS, True),  # a removal was killed
    ],
)
def test_removal_goes_by_the_record_of_what_the_host_had(before, settings, runfile, arguments, unit):
    words = {OLD: list(BLACKLISTS)}
    planned_work = work(
        {"state": "absent"}, records={"before": before}, files={"settings": settings}, boot_arguments=words
    )
    assert (planned_work.removal.runfile, planned_work.removal.arguments) == (runfile, arguments)
    assert (planned_work.removal.unit, planned_work.removal.images) == (unit, settings)
    second_work = work({"state": "absent"}, records={"before": before}, boot_arguments={OLD: ["ro"]})
    assert second_work.removal.arguments == (), "no kernel has one"


@pytest.mark.parametrize(("record", "removed"), [({"stream": False}, True), ({"stream": True}, False), ({}, False)])
def test_the_module_stream_goes_with_the_driver_if_the_host_had_none(record, removed):
    assert work({"state": "absent"}, records={"before": record}).removal.stream is removed


def test_a_removal_that_was_killed_writes_the_images_although_no_setting_is_left():
    assert work({"state": "absent"}, files={"settings": False, "leaving": True}).removal.images


def test_every_record_of_the_role_is_removed_with_it():
    """own_files records the names before the first change, and removes the last one first."""
    names = yaml.safe_load((ROLE.parent / "vars" / "main.yml").read_text(encoding="utf-8"))[
        "__nvidia_driver_record_names"
    ]
    assert set(names) == {f"{name.replace('_', '-')}.json" for name in RECORDS} | {"unfinished", "leaving"}
    assert names[0] == "leaving", "of a killed removal it is left"
    recorded, removed = (
        [task["own_files"] for task in tasks_in(ROLE / file) if "own_files" in task]
        for file in ("main.yml", "remove_settings.yml")
    )
    assert ["__nvidia_driver_record_names" in task["paths"] for task in recorded] == [True]
    assert removed == [{"component": "nvidia_driver"}]


@pytest.mark.parametrize(
    ("recorded", "versions"),
    [
        (None, {"driver": "535.261.03", "kernel": OLD}),  # no upgrade was left half done: what is here now works
        ({"driver": "535.216.01", "kernel": NEW},) * 2,
    ],
)
def test_the_way_back_is_what_worked_before_an_upgrade_that_failed(recorded, versions):
    working_versions = work(driver=installed("535.261.03"), records={"working_versions": recorded}).working
    assert typed.as_json(working_versions) == versions


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (OWN, ["Site"]),
        (certificate({"COMMON_NAME": "Site"}, {"ORGANIZATION_NAME": "A", "COMMON_NAME": "A root"}), ["Site", "A root"]),
        (certificate({"ORGANIZATION_NAME": "Example"}, {"ORGANIZATION_NAME": "Example"}), ["Example"]),
        (base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode(), []),
        (None, []),
    ],
)
def test_the_names_that_a_modules_signer_may_have(content, names):
    assert signers(content) == names


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("distribution", "{{ lookup('pipe', 'id') }}", "distribution"),
        ("kernels", {"running": "{{ x }}"}, "kernels.running"),
        ("records", {"headers": ["{% x %}"]}, r"records.headers\[0\]"),
        ("driver", {"packages": {"{{ x }}": []}}, "a key of driver.packages"),
        ("locks", {"lines": ["a\nb"]}, "locks.lines"),
        ("secure_boot", "yes", "secure_boot"),
    ],
)
def test_an_answer_of_another_form_is_no_host(key, value, place):
    with pytest.raises(typed.TypedError, match=place):
        host(**{key: value})
