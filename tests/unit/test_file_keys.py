"""Keys of files: what the module file_keys does to Hadoop's files, cdsw.conf and Docker's daemon.json, and to the ledger.

hadoop/yarn-default-*.xml.gz are yarn-default.xml of org.apache.hadoop:hadoop-yarn-common 3.3.6 and 2.10.2 (Maven Central), unchanged. CFG is
container-executor.cfg as hadoop-yarn-project/hadoop-yarn/conf has it in both releases.
"""

import gzip
import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import host_modules
import pytest
from ansible.module_utils.hadoop_dl_host import hadoop_files, key_formats
from ansible_programs import REPOSITORY
from cdsw_deployment import DRIVERS, WANTED
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from killed_steps import NEVER, killed, module_main

HERE = Path(__file__).parent / "hadoop"
DEFAULTS = {
    release: gzip.decompress((HERE / f"yarn-default-{release}.xml.gz").read_bytes()) for release in ("3.3.6", "2.10.2")
}
GPU = "yarn.io/gpu"
TYPES, PLUGINS = "yarn.resource-types", "yarn.nodemanager.resource-plugins"
DEVICES = "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices"
DISCOVERY = "yarn.nodemanager.resource-plugins.gpu.path-to-discovery-executables"
SITE = b"""<?xml version="1.0"?>
<!-- of the site: a-secret -->
<configuration>
  <property>
    <name>yarn.nodemanager.aux-services</name> <!-- and why -->
    <value>mapreduce_shuffle</value>
    <final>true</final>
  </property>
  <property><name>yarn.nodemanager.resource-plugins</name><value>
      yarn.io/fpga</value></property>
</configuration>
"""
CFG = b"""yarn.nodemanager.linux-container-executor.group=#configured value of yarn.nodemanager.linux-container-executor.group
banned.users=#comma separated list of users who can not run applications
min.user.id=1000#Prevent other super-users
allowed.system.users=##comma separated list of system users who CAN run applications
feature.tc.enabled=false
"""
CDSW = (REPOSITORY / "demo/cdsw/cdsw.conf").read_text(encoding="utf-8").encode()
NEWER = {**WANTED, "NVIDIA_LIBRARY_PATH": f"{DRIVERS}/440.64"}
DAEMON = b'{\n  "storage-driver": "devicemapper",\n  "log-opts": {"max-size": "10m"}\n}'
RUNTIME = {"args": [], "path": "nvidia-container-runtime"}
STEPS = ("chmod", "fchmod", "chown", "fchown", "rename", "unlink")


@pytest.mark.parametrize("release", DEFAULTS)
def test_every_property_of_hadoop_itself_is_read_as_a_parser_of_xml_reads_it(release):
    properties = ElementTree.fromstring(DEFAULTS[release]).iter("property")  # noqa: S314 (Hadoop's own file)
    pairs = [((entry.findtext("name") or "").strip(), entry.findtext("value")) for entry in properties]
    expected = {name: value.strip() for name, value in pairs if value is not None}
    assert len(expected) > 350
    assert hadoop_files.xml_values(DEFAULTS[release]) == expected


@pytest.mark.parametrize("release", DEFAULTS)
def test_any_property_of_hadoop_itself_changes_alone_and_back_to_the_same_bytes(release):
    head, *tail = DEFAULTS[release].replace(b"</configuration>", b"").split(b"<property>")
    for data in (b"<property>".join([head, *tail[n : n + 20]]) + b"</configuration>" for n in range(0, len(tail), 20)):
        for name in (values := hadoop_files.xml_values(data)):
            new_data = hadoop_files.xml_with(data, name, hadoop_files.element("a<b&c"))
            assert hadoop_files.xml_values(new_data) == {**values, name: "a<b&c"}, name
            assert hadoop_files.xml_with(new_data, name, hadoop_files.xml_raw(data, name)) == data, name


INCLUDES = b'<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="a"/></configuration>'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<configuration/>", "but has <configuration/>"),
        (b"<property/>", "be a <configuration>"),
        (b"<configuration><property></configuration>", "be XML, but is not"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><configuration></configuration>', "no document type"),
        (INCLUDES, "include no other file"),
        (b'<?xml version="1.0" encoding="utf-7"?><configuration></configuration>', "be XML"),
        ("<configuration></configuration>".encode("utf-16"), "encoding that has ASCII"),
    ],
)
def test_a_file_that_hadoop_reads_otherwise_is_refused(data, words):
    with pytest.raises(hadoop_files.Unusable, match=words.replace("(", r"\(")):
        hadoop_files.xml_with(data, "a", "<value>b</value>")


def test_the_last_value_counts_unless_an_earlier_one_is_final():
    template = "<property><name>a</name><value>%s</value>%s</property>"
    data = f"<configuration>{template % (1, '')}{template % (2, '')}</configuration>".encode()
    assert hadoop_files.xml_values(data) == {"a": "2"}
    data = f"<configuration>{template % (1, '<final>true</final>')}{template % (2, '')}</configuration>".encode()
    assert hadoop_files.xml_values(data) == {"a": "1"}


def test_container_executor_cfg_changes_by_section():
    text = b"a=1\n\n[gpu]\nmodule.enabled=false\n\n[cgroups]\n  root = /cg  \n"
    assert hadoop_files.cfg_values(text) == {"a": "1", "[gpu] module.enabled": "false", "[cgroups] root": "/cg"}
    new_text = hadoop_files.cfg_with(text, "[cgroups] yarn-hierarchy", "yarn-hierarchy=/yarn")
    assert new_text == text + b"yarn-hierarchy=/yarn\n"
    assert hadoop_files.cfg_with(new_text, "[cgroups] yarn-hierarchy", None) == text
    assert hadoop_files.cfg_with(text, "[gpu] module.enabled", "module.enabled=true") == text.replace(b"false", b"true")


def test_container_executor_cfg_is_read_as_the_program_reads_it():
    """configuration.c of 3.3: # begins a comment anywhere, a key with nothing before it is not set, and of two the first counts (get_section_value)."""
    text = b"[gpu]#of the site\nmodule.enabled=## true or no\n[cgroups]\nroot=/a # why\nroot=/b\n#[docker]\n#root=/c\n"
    assert hadoop_files.cfg_values(text) == {"[cgroups] root": "/a"}
    new_text = hadoop_files.cfg_with(text, "[gpu] module.enabled", "module.enabled=true")
    assert hadoop_files.cfg_values(new_text) == {"[gpu] module.enabled": "true", "[cgroups] root": "/a"}
    assert hadoop_files.cfg_with(new_text, "[gpu] module.enabled", None) == text
    before = hadoop_files.cfg_raw(text, "[cgroups] root")
    new_text = hadoop_files.cfg_with(text, "[cgroups] root", "root=/d")
    assert hadoop_files.cfg_values(new_text)["[cgroups] root"] == "/d"
    assert hadoop_files.cfg_with(new_text, "[cgroups] root", before) == text


def test_lines_may_end_as_on_windows():
    data = SITE.replace(b"\n", b"\r\n")
    new_data = hadoop_files.xml_with(data, DEVICES, hadoop_files.element("auto"))
    assert new_data.count(b"\n") == new_data.count(b"\r\n")
    assert hadoop_files.xml_with(new_data, DEVICES, None) == data


class Host:
    """Files with keys below a directory, the site's first, and the module on them."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.root = directory, directory / "opt"
        names = ("yarn-site.xml", "resource-types.xml", "container-executor.cfg", "cdsw.conf", "docker/daemon.json")
        self.site, self.types, self.cfg, self.cdsw, self.daemon = self.paths = [directory / name for name in names]
        self.daemon.parent.mkdir()
        self.restore()
        self.files: dict[str, dict[str, Any]] = {
            str(self.site): {PLUGINS: GPU, DEVICES: "auto", DISCOVERY: "/usr/bin"},
            str(self.types): {TYPES: GPU},
            str(self.cfg): {"[gpu] module.enabled": "true"},
            str(self.cdsw): {**WANTED},
            str(self.daemon): {"runtimes.nvidia": RUNTIME},
        }

    def restore(self) -> None:
        """As the site has it, before this project."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.types.unlink(missing_ok=True)
        for path, content in ((self.site, SITE), (self.cfg, CFG), (self.cdsw, CDSW), (self.daemon, DAEMON)):
            path.write_bytes(content)
            path.chmod(0o640)

    def contents(self) -> list[bytes | None]:
        return [path.read_bytes() if path.exists() else None for path in self.paths]

    def arguments(self, files: dict[str, Any], **more: Any) -> dict[str, Any]:
        parameters = {"component": "a", "services": ["daemon"], "replaces": True, "root": str(self.root)}
        return {**parameters, "files": files, **more}

    def run(self, files: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return host_modules.run("file_keys", **self.arguments({} if files is None else files, **more))

    def restarted(self) -> None:
        self.run(state="restarted")

    def ledger(self) -> Path:
        return self.root / "state/a.json"

    def values(self, path: Path) -> dict[str, Any]:
        return dict(key_formats.of(str(path)).values(path.read_bytes()))


AS_BEFORE = [SITE, None, CFG, CDSW, DAEMON]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_keys_are_set_one_by_one_and_a_second_run_changes_nothing(host):
    answer = host.run(host.files, _ansible_diff=True)
    assert (answer["changed"], answer["restart"], answer["files"]) == (True, True, sorted(host.files))
    values = host.values(host.site)
    assert (values[PLUGINS], values[DEVICES], values[DISCOVERY]) == ("yarn.io/fpga,yarn.io/gpu", "auto", "/usr/bin")
    assert host.values(host.types) == {TYPES: GPU}
    assert b"<!-- of the site: a-secret -->" in host.site.read_bytes()
    assert host.cfg.read_bytes() == CFG + b"[gpu]\nmodule.enabled=true\n"
    lines = host.cdsw.read_text().splitlines()
    assert [line for line in lines if line.encode() not in CDSW] == [f'{key}="{WANTED[key]}"' for key in WANTED]
    removed_lines = ["NVIDIA_GPU_ENABLE=false", 'NVIDIA_LIBRARY_PATH=""']
    assert [line for line in CDSW.decode().splitlines() if line not in lines] == removed_lines
    settings = json.loads(host.daemon.read_text())
    assert list(settings) == ["storage-driver", "log-opts", "runtimes"]
    assert settings["runtimes"] == {"nvidia": RUNTIME}
    assert "a-secret" not in json.dumps(answer)
    assert [path.stat().st_mode & 0o777 for path in host.paths] == [0o640, 0o644, 0o640, 0o640, 0o640]
    assert host.ledger().stat().st_mode & 0o777 == 0o600
    assert host.run(host.files)["restart"] is True, "a killed run owes it"
    host.restarted()
    second_answer = host.run(host.files)
    assert (second_answer["changed"], second_answer["restart"]) == (False, False)


def test_the_way_back_gives_the_same_bytes_and_forgets_the_rows_after_the_restart(host):
    host.run(host.files)
    host.restarted()
    answer = host.run()
    assert (answer["changed"], answer["restart"], answer["files"]) == (True, True, [])
    assert host.contents() == AS_BEFORE
    assert host.run()["restart"] is True, "killed before the restart"
    host.restarted()
    assert not host.ledger().exists()
    assert host.run()["changed"] is False


def test_without_services_nothing_waits_for_a_restart(host):
    assert host.run(host.files, services=[])["restart"] is False
    assert host.run(host.files, services=[])["changed"] is False
    host.run(services=[])
    assert (host.contents(), host.ledger().exists()) == (AS_BEFORE, False)


def test_the_receipt_shares_the_ledger_and_its_rows_stay(host):
    host.run(host.files, services=[])
    receipt = {"component": "a", "paths": [str(host.cfg)], "state_directory": str(host.root / "state")}
    answer = host_modules.run("receipt", digest="0" * 12, _ansible_diff=True, **receipt)
    assert answer["changed"] is True
    assert "max-size" not in json.dumps(answer), "rows may have the text of a file"
    assert host_modules.run("receipt", digest="0" * 12, **receipt)["changed"] is False
    assert host.run(host.files, services=[])["changed"] is False
    assert json.loads(host.ledger().read_text())["files"].keys() == {str(host.cfg)}
    assert host.ledger().stat().st_mode & 0o777 == 0o600
    host_modules.run("receipt", **{**receipt, "digest": "", "paths": []})
    assert "files" not in json.loads(host.ledger().read_text())
    host.run(services=[])
    assert host.contents() == AS_BEFORE


REFUSED = [
    ("site", hadoop_files.xml_with(SITE, DEVICES, "<value>0:0</value>"), f"must have auto for {DEVICES}, but the site"),
    ("daemon", b'{"runtimes": {"nvidia": {"path": "/opt/site/runtime"}}}', "which this project did not set"),
    ("daemon", b"{'runtimes': {}}", "must be JSON, but is not"),
    ("daemon", b'["nvidia"]', "it or its runtimes is none"),
    ("site", b"<configuration>", "yarn-site.xml must be XML, but is not"),
]


@pytest.mark.parametrize(("name", "content", "words"), REFUSED)
def test_a_file_that_differs_or_is_not_understood_stops_before_any_file_changes(host, name, content, words):
    getattr(host, name).write_bytes(content)
    before = host.contents()
    del host.files[str(host.cdsw)]  # CDSW's own file has false
    answer = host.run(host.files, replaces=False)
    assert answer["failed"] is True
    assert words in answer["msg"]
    assert "Nothing was changed" in answer["msg"]
    assert (host.contents(), host.ledger().exists()) == (before, False)


def test_a_value_that_a_shell_would_read_is_refused(host):
    answer = host.run({str(host.cdsw): {"NVIDIA_LIBRARY_PATH": '/x"; reboot; "'}})
    assert "must set NVIDIA_LIBRARY_PATH to a plain value" in answer["msg"]


def test_a_file_that_this_project_cannot_create_is_a_sentence(host):
    host.cdsw.unlink()
    assert f"{host.cdsw} must exist, but does not. Nothing was changed." in host.run(host.files)["msg"]
    assert host.contents()[0] == SITE


def test_rows_go_where_the_file_was_removed_meanwhile(host):
    host.run({str(host.cdsw): WANTED})
    host.restarted()
    host.cdsw.unlink()
    assert host.run()["restart"] is False
    assert (host.cdsw.exists(), host.ledger().exists()) == (False, False)


def test_the_calculator_of_hadoops_own_file_is_nobodys_choice_and_comes_back(host):
    name, package = "yarn.scheduler.capacity.resource-calculator", "org.apache.hadoop.yarn.util.resource"
    scheduler = host.site.with_name("capacity-scheduler.xml")
    content = hadoop_files.xml_with(SITE, name, hadoop_files.element(f"{package}.DefaultResourceCalculator"))
    scheduler.write_bytes(content)
    host.run({str(scheduler): {name: f"{package}.DominantResourceCalculator"}}, replaces=False)
    assert host.values(scheduler)[name] == f"{package}.DominantResourceCalculator"
    host.run()
    assert scheduler.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("site", hadoop_files.xml_with(SITE, DEVICES, "<value>auto</value>")),
        ("cdsw", f"NVIDIA_GPU_ENABLE='true'  # since May\nNVIDIA_LIBRARY_PATH={DRIVERS}/418.67\n".encode()),
        ("daemon", json.dumps({"runtimes": {"nvidia": RUNTIME, "kata": {"path": "/opt/kata"}}}).encode()),
        # as nvidia-docker2 2.0.3 wrote it
        ("daemon", b'{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}}}'),
    ],
)
def test_what_the_site_has_already_is_accepted_in_its_form_and_stays(host, name, content):
    path: Path = getattr(host, name)
    path.write_bytes(content)
    files = {str(path): {DEVICES: "auto"} if name == "site" else host.files[str(path)]}
    assert host.run(files, replaces=False)["changed"] is False
    host.run()
    assert path.read_bytes() == content


def test_what_somebody_changed_since_stays_and_of_a_list_the_added_word_goes(host):
    host.run(host.files)
    host.restarted()
    host.cdsw.write_text(host.cdsw.read_text().replace("cdsw.example.com", "other.example.com"))
    settings = {**json.loads(host.daemon.read_text()), "debug": True}
    host.daemon.write_text(json.dumps(settings))
    host.run(host.files)
    content = hadoop_files.xml_with(host.site.read_bytes(), DEVICES, hadoop_files.element("1:1"))
    content = hadoop_files.xml_with(content, PLUGINS, hadoop_files.element("yarn.io/gpu,yarn.io/fpga,acme.com/tpu"))
    host.site.write_bytes(content)
    host.run()
    values = host.values(host.site)
    assert (values[DEVICES], values[PLUGINS]) == ("1:1", "yarn.io/fpga,acme.com/tpu")
    assert DISCOVERY not in values
    assert host.cdsw.read_bytes() == CDSW.replace(b"cdsw.example.com", b"other.example.com")
    assert json.loads(host.daemon.read_text()) == {**json.loads(DAEMON), "debug": True}


def test_another_request_changes_what_this_project_set(host):
    host.run(host.files)
    host.restarted()
    host.files[str(host.site)] = {PLUGINS: GPU, DEVICES: "0:0"}
    host.run(host.files, replaces=False)
    assert host.values(host.site)[DEVICES] == "0:0"
    assert DISCOVERY not in host.values(host.site)
    host.run()
    assert host.site.read_bytes() == SITE


def test_services_that_do_not_start_get_what_they_ran_with(host):
    host.run(host.files)
    host.restarted()
    first = host.contents()
    for path in (f"{DRIVERS}/440.64", f"{DRIVERS}/535.54.03"):  # they never ran with what came between
        host.run({**host.files, str(host.cdsw): {**WANTED, "NVIDIA_LIBRARY_PATH": path}, str(host.types): {}})
    assert host.run(state="previous")["files"] == sorted(host.files)
    assert host.contents() == first
    host.restarted()
    assert host.run(state="previous")["changed"] is False
    host.run()
    assert host.contents() == AS_BEFORE
    host.run(state="previous")
    assert host.contents() == first, "the way back where the services do not come back without GPUs"


def test_a_first_change_goes_back_to_the_sites(host):
    host.run(host.files)
    answer = host.run(state="previous")
    assert (host.contents(), answer["files"], answer["restart"]) == (AS_BEFORE, [], True)
    host.restarted()
    assert not host.ledger().exists()


def test_a_file_that_is_created_goes_with_its_last_key(host):
    host.daemon.unlink()
    host.run(host.files)
    assert host.values(host.daemon) == {"runtimes.nvidia": RUNTIME}
    host.run()
    assert (host.daemon.exists(), host.types.exists()) == (False, False)


def test_the_diff_has_the_changed_keys_alone_and_no_login(host):
    host.cdsw.write_text(host.cdsw.read_text() + 'HTTP_PROXY="http://service:a-secret@proxy.example.com:3128"\n')
    host.daemon.write_text(json.dumps({"proxies": {"http-proxy": "http://service:a-secret@proxy:3128"}}))
    files = {**host.files, str(host.cdsw): {**NEWER, "HTTP_PROXY": "http://proxy:3128"}}
    answer = host.run(files, _ansible_diff=True)
    diffs = {side["after_header"].rpartition("/")[2]: side for side in answer["diff"]}
    assert diffs["cdsw.conf"]["before"].splitlines()[0] == "HTTP_PROXY=http://***@proxy.example.com:3128"
    assert diffs["cdsw.conf"]["after"].count("\n") == 3
    assert diffs["daemon.json"]["before"] == ""
    assert diffs["daemon.json"]["after"].startswith("runtimes.nvidia={")
    assert "a-secret" not in json.dumps([answer, host.run(_ansible_diff=True)])


def test_a_link_to_the_file_stays_a_link(host):
    target = host.site.with_name("real.xml")
    host.site.rename(target)
    host.site.symlink_to(target)
    host.run(host.files)
    assert host.site.is_symlink()
    assert host.values(target)[DEVICES] == "auto"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_owner_keeps_its_owner(host):
    os.chown(host.daemon, 12345, 12346)
    host.run(host.files)
    assert (host.daemon.stat().st_uid, host.daemon.stat().st_gid) == (12345, 12346)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("exists", [True, False])
def test_root_changes_no_file_to_which_an_account_made_the_link(host, exists):
    target = host.site.with_name("of-root.xml")
    link = host.site if exists else host.types
    if exists:
        host.site.rename(target)
    link.symlink_to(target)
    os.lchown(link, pwd.getpwnam("nobody").pw_uid, -1)
    assert f"{link} is a link of another account" in host.run(host.files)["msg"]
    assert target.exists() is exists
    assert not exists or target.read_bytes() == SITE


def test_check_mode_writes_nothing(host):
    answer = host.run(host.files, _ansible_check_mode=True)
    assert (answer["changed"], answer["restart"]) == (True, True)
    assert (host.contents(), host.ledger().exists()) == (AS_BEFORE, False)


def test_a_ledger_that_cannot_be_read_is_not_forgotten(host):
    host.run(host.files)
    before = host.contents()
    host.ledger().write_text('{"rows": [', encoding="utf-8")
    for files in (host.files, {}):
        assert f"{host.ledger()} must be the JSON object that this project wrote" in host.run(files)["msg"]
    assert (host.contents(), host.ledger().read_text(encoding="utf-8")) == (before, '{"rows": [')


def killed_runs(prepare: Callable[[], object], arguments: dict[str, Any]) -> Iterator[int]:
    """Runs of the module, each on a prepared host, that end before the first of these steps, the second, …, until one ends by itself."""
    for point in range(60):
        prepare()
        dead = killed(module_main("file_keys", arguments), point + 1, STEPS)
        yield point
        if not dead:
            return
    pytest.fail("the module does not end")


@pytest.mark.parametrize("services", [[], ["daemon"]], ids=["no services", "services"])
@pytest.mark.parametrize("work", ["set", "change", "undo"])
def test_no_kill_loses_the_way_back_or_opens_a_file_to_others(host, work, services):
    newer = {**host.files, str(host.cdsw): NEWER, str(host.site): {PLUGINS: GPU, DEVICES: "0:0"}}
    files = {"set": host.files, "change": newer, "undo": {}}[work]
    replaces = work != "change"  # a value that a killed run has not written yet is not the site's

    def run(files: dict[str, Any], **more: Any) -> None:
        assert not killed(module_main("file_keys", host.arguments(files, services=services, **more)), NEVER)

    def prepare() -> None:
        host.restore()
        if work != "set":
            run(host.files)
            run({}, state="restarted")

    for point in killed_runs(prepare, host.arguments(files, services=services, replaces=replaces)):
        opened = {path.name for path in host.directory.rglob("*") if path.is_file() and path.stat().st_mode & 0o007}
        assert opened <= {host.types.name, f".draft-{host.types.name}", ".lock"}, point
        run(host.files, replaces=replaces)  # another request than the killed run's, for "change" and "undo"
        assert host.values(host.cdsw).items() >= WANTED.items(), point
        run({})
        assert host.contents() == AS_BEFORE, point
    assert point >= 6


ONE_KEY = """
from ansible.module_utils.hadoop_dl_host import key_formats
for path, key, value, data in (
    ("a.xml", "b", "1", b"<configuration></configuration>"), ("a.cfg", "b", "1", b"c=2\\n"),
    ("cdsw.conf", "B", "1", b"C=2\\n"), ("a.json", "runtimes.b", {"path": "p"}, b"{}"),
):
    form = key_formats.of(path)
    changed = form.with_raw(data, key, form.written(key, value))
    assert form.values(changed)[key] == value, changed
    assert key not in form.values(form.with_raw(changed, key, None))
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_every_format_sets_and_removes_a_key_with_the_pythons_of_hosts(python):
    command = [python, "-B", "-c", WITHOUT_ANSIBLE + ONE_KEY, UTILITIES]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
