"""What the module of the role yarn_gpu does to Hadoop's files, on those of Hadoop itself.

hadoop/yarn-default-*.xml.gz are yarn-default.xml of org.apache.hadoop:hadoop-yarn-common 3.3.6 and 2.10.2 (Maven Central), unchanged. CFG is
container-executor.cfg as hadoop-yarn-project/hadoop-yarn/conf has it in both releases.
"""

from __future__ import annotations

import gzip
import json
import os
import pwd
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import host_modules
import pytest
from ansible.module_utils.hadoop_dl_host import hadoop_files
from test_cdsw_modules import killed_runs

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


@pytest.mark.parametrize("release", DEFAULTS)
def test_every_property_of_hadoop_itself_is_read_as_a_parser_of_xml_reads_it(release: str) -> None:
    properties = ElementTree.fromstring(DEFAULTS[release]).iter("property")  # noqa: S314 (Hadoop's own file)
    pairs = [((entry.findtext("name") or "").strip(), entry.findtext("value")) for entry in properties]
    expected = {name: value.strip() for name, value in pairs if value is not None}
    assert len(expected) > 350
    assert hadoop_files.xml_values(DEFAULTS[release]) == expected


@pytest.mark.parametrize("release", DEFAULTS)
def test_any_property_of_hadoop_itself_changes_alone_and_back_to_the_same_bytes(release: str) -> None:
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
        ("<configuration></configuration>".encode("utf-16"), "encoding that has ASCII"),
    ],
)
def test_a_file_that_hadoop_reads_otherwise_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(hadoop_files.Unusable, match=words.replace("(", r"\(")):
        hadoop_files.xml_with(data, "a", "<value>b</value>")


def test_the_last_value_counts_unless_an_earlier_one_is_final() -> None:
    template = "<property><name>a</name><value>%s</value>%s</property>"
    data = f"<configuration>{template % (1, '')}{template % (2, '')}</configuration>".encode()
    assert hadoop_files.xml_values(data) == {"a": "2"}
    data = f"<configuration>{template % (1, '<final>true</final>')}{template % (2, '')}</configuration>".encode()
    assert hadoop_files.xml_values(data) == {"a": "1"}


class Conf:
    """A directory of configuration files, and the module on it."""

    def __init__(self, directory: Path) -> None:
        names = ("yarn-site.xml", "resource-types.xml", "container-executor.cfg")
        self.site, self.types, self.cfg = (directory / name for name in names)
        self.record = directory / "opt/etc/yarn_gpu.json"
        self.site.write_bytes(SITE)
        self.site.chmod(0o640)
        self.cfg.write_bytes(CFG)
        self.files: dict[str, dict[str, str]] = {
            str(self.site): {PLUGINS: GPU, DEVICES: "auto", DISCOVERY: "/usr/bin"},
            str(self.types): {TYPES: GPU},
            str(self.cfg): {"[gpu] module.enabled": "true"},
        }

    def run(self, files: dict[str, Any], **more: Any) -> dict[str, Any]:
        arguments = {"record": str(self.record), "services": ["nodemanager"], **more}
        return host_modules.run("hadoop_settings", files=files, **arguments)

    def values(self, path: Path) -> dict[str, str]:
        return dict(hadoop_files.values(str(path), path.read_bytes()))


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    return Conf(tmp_path)


def test_properties_are_added_one_by_one_and_a_second_run_changes_nothing(conf: Conf) -> None:
    answer = conf.run(conf.files, _ansible_diff=True)
    assert (answer["changed"], answer["restart"]) == (True, True)
    values = conf.values(conf.site)
    assert (values[PLUGINS], values[DEVICES], values[DISCOVERY]) == ("yarn.io/fpga,yarn.io/gpu", "auto", "/usr/bin")
    assert conf.values(conf.types) == {TYPES: GPU}
    assert b"<!-- of the site: a-secret -->" in conf.site.read_bytes()
    assert b"<!-- and why -->" in conf.site.read_bytes()
    assert "a-secret" not in json.dumps(answer)
    assert conf.site.stat().st_mode & 0o777 == 0o640
    assert conf.types.stat().st_mode & 0o777 == 0o644
    assert conf.record.stat().st_mode & 0o777 == 0o600
    assert conf.cfg.read_bytes() == CFG + b"[gpu]\nmodule.enabled=true\n"
    assert conf.run(conf.files)["restart"] is True, "a killed run owes it"
    assert conf.run(conf.files, state="restarted")["changed"] is True
    next_result = conf.run(conf.files)
    assert (next_result["changed"], next_result["restart"], next_result["previous"]) == (False, False, conf.files)


def test_the_way_back_gives_the_same_bytes_and_forgets_the_record_after_the_restart(conf: Conf) -> None:
    conf.run(conf.files)
    answer = conf.run({})
    assert (answer["changed"], answer["restart"]) == (True, True)
    assert (conf.site.read_bytes(), conf.cfg.read_bytes(), conf.types.exists()) == (SITE, CFG, False)
    assert json.loads(conf.record.read_text(encoding="utf-8"))["services"] == ["nodemanager"]
    conf.run({}, state="restarted")
    assert not conf.record.exists()


def test_a_differing_value_of_the_site_stops_before_any_file_changes(conf: Conf) -> None:
    conf.site.write_bytes(hadoop_files.xml_with(SITE, DEVICES, hadoop_files.element("0:0")))
    before = conf.site.read_bytes()
    answer = conf.run(conf.files)
    assert answer["failed"] is True
    assert f"must have auto for {DEVICES}, but the site has 0:0" in answer["msg"]
    assert (conf.site.read_bytes(), conf.cfg.read_bytes(), conf.types.exists()) == (before, CFG, False)
    assert not conf.record.exists()


def test_the_calculator_of_hadoops_own_file_is_nobodys_choice_and_comes_back(conf: Conf) -> None:
    name, package = "yarn.scheduler.capacity.resource-calculator", "org.apache.hadoop.yarn.util.resource"
    scheduler = conf.site.with_name("capacity-scheduler.xml")
    content = hadoop_files.xml_with(SITE, name, hadoop_files.element(f"{package}.DefaultResourceCalculator"))
    scheduler.write_bytes(content)
    conf.run({str(scheduler): {name: f"{package}.DominantResourceCalculator"}})
    assert conf.values(scheduler)[name] == f"{package}.DominantResourceCalculator"
    conf.run({})
    assert scheduler.read_bytes() == content


def test_what_the_site_has_already_stays_after_the_removal(conf: Conf) -> None:
    conf.site.write_bytes(hadoop_files.xml_with(SITE, DEVICES, hadoop_files.element("auto")))
    conf.run(conf.files)
    conf.run({})
    assert conf.values(conf.site)[DEVICES] == "auto"


def test_what_somebody_changed_since_stays_and_of_a_list_the_added_word_goes(conf: Conf) -> None:
    conf.run(conf.files)
    content = hadoop_files.xml_with(conf.site.read_bytes(), DEVICES, hadoop_files.element("1:1"))
    content = hadoop_files.xml_with(content, PLUGINS, hadoop_files.element("yarn.io/gpu,yarn.io/fpga,acme.com/tpu"))
    conf.site.write_bytes(content)
    conf.run({})
    values = conf.values(conf.site)
    assert (values[DEVICES], values[PLUGINS]) == ("1:1", "yarn.io/fpga,acme.com/tpu")
    assert DISCOVERY not in values


def test_another_request_changes_what_this_project_set(conf: Conf) -> None:
    conf.run(conf.files)
    conf.files[str(conf.site)] = {PLUGINS: GPU, DEVICES: "0:0"}
    conf.run(conf.files)
    assert conf.values(conf.site)[DEVICES] == "0:0"
    assert DISCOVERY not in conf.values(conf.site)
    conf.run({})
    assert conf.site.read_bytes() == SITE


def test_a_link_to_the_file_stays_a_link(conf: Conf) -> None:
    target = conf.site.with_name("real.xml")
    conf.site.rename(target)
    conf.site.symlink_to(target)
    conf.run(conf.files)
    assert conf.site.is_symlink()
    assert conf.values(target)[DEVICES] == "auto"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("exists", [True, False])
def test_root_changes_no_file_to_which_an_account_made_the_link(conf: Conf, exists: bool) -> None:
    target = conf.site.with_name("of-root.xml")
    link = conf.site if exists else conf.types
    if exists:
        conf.site.rename(target)
    link.symlink_to(target)
    os.lchown(link, pwd.getpwnam("nobody").pw_uid, -1)
    assert f"{link} is a link of another account" in conf.run(conf.files)["msg"]
    assert target.exists() is exists
    assert not exists or target.read_bytes() == SITE


def test_check_mode_writes_nothing(conf: Conf) -> None:
    assert conf.run(conf.files, _ansible_check_mode=True)["changed"] is True
    assert (conf.site.read_bytes(), conf.types.exists(), conf.record.exists()) == (SITE, False, False)


def test_no_kill_loses_the_way_back(conf: Conf) -> None:
    def prepare() -> None:
        shutil.rmtree(conf.record.parent.parent, ignore_errors=True)
        conf.types.unlink(missing_ok=True)
        conf.site.write_bytes(SITE)
        conf.cfg.write_bytes(CFG)

    arguments = {"files": conf.files, "record": str(conf.record)}
    for point in killed_runs(prepare, "hadoop_settings", **arguments):
        assert conf.run(conf.files)["restart"] is True, point
        conf.run({})
        assert (conf.site.read_bytes(), conf.cfg.read_bytes(), conf.types.exists()) == (SITE, CFG, False), point
    assert point >= 8


def test_no_kill_of_a_removal_loses_the_way_back(conf: Conf) -> None:
    for point in killed_runs(lambda: conf.run(conf.files), "hadoop_settings", files={}, record=str(conf.record)):
        conf.run({})
        assert (conf.site.read_bytes(), conf.cfg.read_bytes(), conf.types.exists()) == (SITE, CFG, False), point


def test_a_file_that_cannot_be_read_is_named(conf: Conf) -> None:
    conf.site.write_bytes(b"<configuration>")
    answer = conf.run(conf.files)
    assert answer["failed"] is True
    assert f"{conf.site} must be XML, but is not" in answer["msg"]
    assert not conf.types.exists()


def test_container_executor_cfg_changes_by_section() -> None:
    text = b"a=1\n\n[gpu]\nmodule.enabled=false\n\n[cgroups]\n  root = /cg  \n"
    assert hadoop_files.cfg_values(text) == {"a": "1", "[gpu] module.enabled": "false", "[cgroups] root": "/cg"}
    new_text = hadoop_files.cfg_with(text, "[cgroups] yarn-hierarchy", "yarn-hierarchy=/yarn")
    assert new_text == text + b"yarn-hierarchy=/yarn\n"
    assert hadoop_files.cfg_with(new_text, "[cgroups] yarn-hierarchy", None) == text
    assert hadoop_files.cfg_with(text, "[gpu] module.enabled", "module.enabled=true") == text.replace(b"false", b"true")


def test_container_executor_cfg_is_read_as_the_program_reads_it() -> None:
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


def test_lines_may_end_as_on_windows() -> None:
    data = SITE.replace(b"\n", b"\r\n")
    new_data = hadoop_files.xml_with(data, DEVICES, hadoop_files.element("auto"))
    assert new_data.count(b"\n") == new_data.count(b"\r\n")
    assert hadoop_files.xml_with(new_data, DEVICES, None) == data


def test_a_record_that_cannot_be_read_is_not_forgotten(conf: Conf) -> None:
    conf.run(conf.files)
    before = conf.site.read_bytes()
    conf.record.write_text('{"files": {', encoding="utf-8")
    for files in (conf.files, {}):
        answer = conf.run(files)
        assert answer["failed"], answer
        assert f"{conf.record} must be the JSON object that this module wrote" in answer["msg"]
    assert (conf.site.read_bytes(), conf.record.read_text(encoding="utf-8")) == (before, '{"files": {')
