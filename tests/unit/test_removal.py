"""playbooks/remove.yml: what is shown, what is refused, and what is left. The hosts are directories; molecule/remove has whole ones."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import ansible_programs
import pytest
from ansible.module_utils.hadoop_dl_host import mirror_removal, removal_reader
from ansible_programs import REPOSITORY
from environments import NAME
from host_modules import answer, has, run, start
from other_processes import lasting
from resource_manager import serving

from hadoop_dl.hosts import removal

GROUPS = {"data1": "data_nodes", "edge1": "edge_nodes"}


def listing(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")) if root.is_dir() else []


# --- one host ------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path, stages: dict[str, Path]) -> Path:
    """A host with an environment, its client's settings, Spark, receipts, and leftovers of killed runs."""
    root = tmp_path / "deeplearning"
    shutil.copytree(stages["active"], root, symlinks=True)
    for directory in (
        "spark/pyspark-3.0.3/jars",
        "jars",
        "hadoop/lib",
        "downloads",
        "state",
        "etc",
        f"envs/{NAME}.client",
    ):
        (root / directory).mkdir(parents=True, exist_ok=True)
    for name in ("hadoop-env.sh", "spark-defaults.conf"):
        (root / "envs" / f"{NAME}.client" / name).write_text("export A=1\n")
        (root / "etc" / name).unlink(missing_ok=True)
        (root / "etc" / name).symlink_to(f"../current/.deeplearning/client/{name}")
    (root / "spark" / "pyspark-3.0.3" / ".deeplearning.json").write_text("{}")
    (root / "jars" / "tensorflow-hadoop-1.15.0.jar").write_text("")
    (root / "hadoop" / "lib" / "native").symlink_to("/usr/lib")
    (root / "downloads" / "cuda-10.1.run").write_text("")
    (root / "state" / "hadoop_client.json").write_text('{"component": "hadoop_client"}')
    (root / "state" / ".draft-verify.json").write_text("{")
    (root / "envs" / f".removing-{NAME}.7").mkdir()
    (root / ".removing-spark").mkdir()
    return root


def remove(root: Path, **arguments: Any) -> dict[str, Any]:
    return run("remove_environments", root=str(root), **arguments)


def test_nothing_of_the_environments_is_left_and_what_is_not_ours_stays(root):
    (root / "site.txt").write_text("keep")
    (root / "envs" / "conda").mkdir()
    (root / "etc" / "gpu-check.json").write_text("{}")
    assert remove(root)["changed"] is True
    for component in removal.COMPONENTS["environments"]:
        run("own_files", component=component, root=str(root))
    files = [path for path in listing(root) if not (root / path).is_dir()]
    assert files == [".lock", "etc/gpu-check.json", "site.txt"]
    assert removal_reader.Removal(str(root)).stays() == [str(root / "site.txt"), str(root / "envs/conda")]
    assert remove(root)["changed"] is False


def test_spark_hadoop_and_jars_go_by_their_rows_and_what_is_beside_them_stays(root):
    for name in ("spark/site.txt", "jars/mysql-connector.jar"):
        (root / name).write_text("keep")
    (root / "spark/pyspark-3.0.3.new-7").mkdir()
    host = removal_reader.Removal(str(root))
    assert host.stays() == [str(root / name) for name in ("jars/mysql-connector.jar", "spark/site.txt")]
    for component in removal.COMPONENTS["environments"]:
        run("own_files", component=component, root=str(root))
    assert [path.name for path in (root / "spark").iterdir()] == ["site.txt"]
    assert [path.name for path in (root / "jars").iterdir()] == ["mysql-connector.jar"]
    assert not (root / "hadoop").exists()


def test_check_mode_names_every_path_and_removes_none(root):
    before = listing(root)
    result = remove(root, _ansible_check_mode=True)
    assert result["changed"] is True
    assert [path.replace(f"{root}/", "") for path in result["removed"]][0] == "current"
    assert listing(root) == before


def test_a_removal_that_is_killed_anywhere_continues(root):
    """Each path that goes, in its order, is where a run may have been killed."""
    paths = remove(root, _ansible_check_mode=True)["removed"]
    for index, target in enumerate(map(Path, paths)):
        if not os.path.lexists(target):
            continue
        if target.is_dir() and not target.is_symlink():
            aside = target if target.name.startswith(".removing-") else target.with_name(f".removing-{target.name}")
            if aside != target:
                shutil.rmtree(aside, ignore_errors=True)
                target.rename(aside)
        else:
            target.unlink()
        copy = root.with_name(f"copy{index}")
        shutil.copytree(root, copy, symlinks=True)
        remove(copy)
        for component in removal.COMPONENTS["environments"]:
            run("own_files", component=component, root=str(copy))
        assert not copy.exists(), index
        assert removal_reader.Removal(str(copy)).environments() == []


def test_a_process_that_uses_it_is_named_and_nothing_goes(root):
    before = listing(root)
    with lasting(cwd=root) as process:
        refusal = remove(root)
        users = removal_reader.Removal(str(root)).users()
        result = remove(root, force=True)
    assert f"these processes use them: {process.pid} (" in refusal["msg"]
    assert "Nothing was removed here" in refusal["msg"]
    assert [user["pid"] for user in users] == [process.pid]
    assert users[0]["command"] == "/bin/sleep 600"
    assert result["changed"] is True
    assert listing(root) != before


def test_two_removals_take_turns(root):
    results = [answer(process) for process in [start("remove_environments", root=str(root)) for _ in range(2)]]
    assert [result.get("failed", False) for result in results] == [False, False]


def test_a_host_is_read_by_its_records(tmp_path):
    root, system = tmp_path / "deeplearning", tmp_path / "system"
    (root / "state").mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "etc/nvidia-driver-leaving").write_text("")  # all that a killed removal left
    (root / "etc/gpu-check-cuda.json").write_text(json.dumps({"cuda": ["8.0", "12.2"]}))
    (root / "state/nccl.json").write_text("torn {")
    (root / "etc/mirror.json").write_text(json.dumps({"roots": {"/data/mirror": False}, "user_existed": False}))
    host = removal_reader.Removal(str(root), bazel_root=str(tmp_path / "bazel"), system=str(system))
    assert host.gpu() == {"cuda": "CUDA 12.2 8.0", "nccl": "NCCL", "nvidia_driver": "driver"}
    assert host.mirror() == ["/data/mirror (0 files)", str(root / "etc/mirror.json")]
    assert (host.bazel(), host.environments(), host.stays()) == ({}, [], [])


def test_the_probes_of_a_killed_switch_go_also_without_an_environment(tmp_path):
    probes = [tmp_path / name / ".new-probe" for name in (".", "etc", "envs")]
    for probe in probes:
        probe.parent.mkdir(exist_ok=True)
        probe.write_text("")
    host = removal_reader.Removal(str(tmp_path), system=str(tmp_path))
    assert (host.environments(), host.stays()) == (["the probe of a killed switch"], [])
    assert remove(tmp_path)["changed"] is True
    assert not any(probe.exists() for probe in probes)
    assert host.environments() == []


def test_a_workbench_and_its_runtime_are_read_by_their_records(tmp_path):
    root, system = tmp_path / "deeplearning", tmp_path / "system"
    (root / "etc").mkdir(parents=True)
    conf = system / "etc/cdsw/config/cdsw.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text((REPOSITORY / "demo/cdsw/cdsw.conf").read_text(encoding="utf-8"), encoding="utf-8")
    host = removal_reader.Removal(str(root), system=str(system))
    assert (host.cdsw(), host.container_runtime()) == ({}, [])
    record = root / "etc/cdsw.json"
    record.write_text(json.dumps({"before": {"NVIDIA_GPU_ENABLE": "NVIDIA_GPU_ENABLE=false"}}))
    assert (host.cdsw()["kind"], host.cdsw()["keys"]) == ("rpm", ["NVIDIA_GPU_ENABLE"])
    conf.unlink()  # CDSW was removed since
    assert host.cdsw()["keys"] == []
    record.write_text(json.dumps({"cloudera_manager": {"cdsw.enable.gpu.config": "true"}}))
    assert (host.cdsw()["kind"], host.cdsw()["cloudera_manager"]) == ("parcel", {"cdsw.enable.gpu.config": "true"})
    (root / "etc/daemon.json").write_text("{}")  # of release 0.2
    assert host.container_runtime() == ["the runtime in daemon.json"]
    package = {"name": "nvidia-docker", "version": "1.0.1-1"}
    (root / "etc/container_runtime.json").write_text(json.dumps(package))
    (root / "etc/daemon.json").unlink()
    assert host.container_runtime() == ["nvidia-docker 1.0.1-1"]
    (root / "etc/container_runtime.json").write_text(json.dumps({**package, "existed": True}))
    assert host.container_runtime() == ["its repository and record"]


def test_an_application_that_waits_in_a_queue_holds_its_environment(root, tmp_path):
    waiting = {"id": "application_1_7", "applicationTags": f"tfos-submit-9,environment-{NAME[-12:]}"}
    (root / "etc/hadoop-env.sh").unlink()
    (root / "etc/hadoop-env.sh").write_text(f"export HADOOP_CONF_DIR={tmp_path}\n", encoding="utf-8")
    before = listing(root)
    with serving(lambda _: {"apps": {"app": [waiting]}}, tmp_path):
        assert removal_reader.Removal(str(root)).applications() == {NAME: "YARN has the application application_1_7"}
        assert f"{NAME}: YARN has the application application_1_7. Nothing was removed here" in remove(root)["msg"]
        assert listing(root) == before
    assert "YARN did not report" in remove(root)["msg"], "its ResourceManager does not answer any more"
    assert remove(root, force=True)["changed"] is True


@pytest.mark.parametrize("keep_root", [True, False])
def test_a_mirror_loses_what_its_manifest_lists_and_nothing_else(tmp_path, keep_root):
    root = tmp_path / "mirror"
    for name in ("wheels/a.whl", "files/b.tgz", ".staging/part", "rpm/site.rpm"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    artifacts = {"wheels/a.whl": {}, "files/b.tgz": {}, "../outside": {}}
    (root / "manifest.json").write_text(json.dumps({"schema": 1, "artifacts": artifacts}))
    (tmp_path / "outside").write_text("keep")
    mirror_removal.remove(str(root), keep_root, dry=True)
    assert (root / "wheels/a.whl").exists()
    mirror_removal.remove(str(root), keep_root)
    assert [path for path in listing(root) if not (root / path).is_dir()] == ["rpm/site.rpm"]
    assert (tmp_path / "outside").exists()
    shutil.rmtree(root / "rpm")
    mirror_removal.remove(str(root), keep_root)
    assert root.exists() is keep_root


# --- the plan ------------------------------------------------------------------------------------------------------


def planned(
    answers: dict[str, Any], unread: tuple[str, ...] = (), edge_nodes: tuple[str, ...] = (), **request: Any
) -> removal.Removal:
    return removal.make(answers, unread, edge_nodes, removal.Request(**request))


WITH_HDFS = {"environments": [NAME], "hdfs": {"files": ["/apps/x.zip"], "directories": [], "user": "hdfs"}}


def test_hosts_that_are_alike_are_one_entry_and_unread_ones_are_named():
    answers = {"data1": has(gpu={"cuda": "CUDA 12.2"}), "data2": has(gpu={"cuda": "CUDA 12.2"}), "data3": has()}
    plan = planned(answers, unread=("data4",))
    assert "data1, data2:\n    gpu           CUDA 12.2" in plan.text
    assert "data3: nothing" in plan.text
    assert "data4: did not answer; nothing is removed there. Run it again with --limit data4" in plan.text
    assert plan.hosts == {"data1": ["gpu"], "data2": ["gpu"], "data3": []}
    assert "remove_confirmed=true" in plan.problems[0]
    assert planned({"data1": has()}).problems == [], "nothing needs no confirmation"


@pytest.mark.parametrize("trace", ["engines", "etc/cdsw_engine.json"])
def test_engine_images_stay_and_their_own_playbook_is_named(root, trace):
    """By their archives; where a site keeps none, by their record."""
    (root / "README.site").write_text("keep")
    (root / "etc/cdsw_engine.json").write_text("{}")
    if trace == "engines":
        (root / trace).mkdir()
    traces = removal_reader.Removal(str(root)).stays()
    text = planned({"cdsw1": has(stays=traces)}).text
    assert f"stays         {root}/README.site (not managed by this project)" in text
    line = f"stays         {root}/{trace} (engine images: playbooks/cdsw_engine.yml -e cdsw_engine_state=absent)"
    assert line in text
    assert text.count("engine images") == 1


def test_files_in_hdfs_stay_while_an_edge_node_is_not_in_the_run():
    both_nodes = planned({"edge1": has(**WITH_HDFS), "edge2": has(**WITH_HDFS)}, edge_nodes=("edge1", "edge2"))
    one_node = planned({"edge1": has(**WITH_HDFS)}, edge_nodes=("edge1", "edge2"))
    without_hdfs = planned({"edge1": has(**WITH_HDFS)}, edge_nodes=("edge1",), hdfs_files=False)
    assert both_nodes.hosts["edge1"] == ["hdfs", "environments"]
    assert (one_node.hosts["edge1"], without_hdfs.hosts["edge1"]) == (["environments"], ["environments"])
    assert "HDFS: /apps/x.zip stays, because edge2 of edge_nodes did not answer or is not in this run" in one_node.text


@pytest.mark.parametrize(
    ("request_", "refused"),
    [
        ({"confirmed": True}, True),
        ({"checking": True}, True),
        ({"confirmed": True, "forced": True}, False),
        ({"confirmed": True, "parts": ("gpu",)}, False),
    ],
)
def test_an_environment_in_use_is_refused_by_host_process_and_user(request_, refused):
    user = {"pid": 4711, "user": "analyst", "command": "python train.py"}
    plan = planned({"data1": has(environments=[NAME], users=[user])}, **request_)
    sentence = "on data1 process 4711 of analyst (python train.py) uses it"
    assert any(sentence in problem for problem in plan.problems) is refused


def test_what_yarn_said_is_told_once_for_all_hosts_that_asked_it():
    applications = {NAME: "YARN has the application application_1_7"}
    answers = {name: has(environments=[NAME], applications=applications) for name in GROUPS}
    plan = planned(answers, confirmed=True)
    assert plan.problems == [
        f"{NAME} must not be needed by YARN when it is removed from data1, edge1, but YARN has the application application_1_7. Let the "
        "application end (yarn application -list), or add -e remove_forced=true."
    ]
    for request in ({"forced": True}, {"parts": ("gpu",)}):
        assert planned(answers, confirmed=True, **request).problems == []


CDSW = {
    "kind": "rpm",
    "keys": ["NVIDIA_GPU_ENABLE"],
    "cloudera_manager": {},
    "release": "1.4.0",
    "master": True,
    "sessions": 2,
}


@pytest.mark.parametrize(
    ("allowed", "checking", "refused"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_a_restart_of_cdsw_is_shown_and_must_be_allowed(allowed, checking, refused):
    answers = {
        "cdsw1": has(cdsw=CDSW, container_runtime=["nvidia-docker 1.0.1-1"]),
        "cdsw2": has(cdsw={**CDSW, "master": False}),
    }
    plan = planned(answers, confirmed=True, restart_allowed=allowed, checking=checking)
    assert "NVIDIA_GPU_ENABLE of cdsw.conf, as before; CDSW restarts (2 sessions run; a restart ends them)" in plan.text
    assert (plan.hosts["cdsw1"], plan.cdsw_master) == (["cdsw", "container_runtime"], "cdsw1")
    sentence = "restarts CDSW on cdsw1, cdsw2, but cdsw_restart_allowed is not true. Add -e cdsw_restart_allowed=true"
    assert [sentence in problem for problem in plan.problems] == [True] * refused


@pytest.mark.parametrize(
    ("master", "release", "refused"), [(False, "", True), (True, "", False), (False, "1.4.0", False)]
)
def test_a_worker_of_an_unknown_release_is_refused(master, release, refused):
    answers = {"cdsw1": has(cdsw={**CDSW, "master": master, "release": release})}
    plan = planned(answers, confirmed=True, restart_allowed=True)
    assert ["release must be known to let cdsw1 join" in problem for problem in plan.problems] == [True] * refused


def test_what_cloudera_manager_keeps_is_shown():
    parcel = {**CDSW, "kind": "parcel", "keys": [], "cloudera_manager": {"cdsw.enable.gpu.config": "true"}}
    plan = planned({"cdsw1": has(cdsw=parcel)}, confirmed=True)
    assert (
        'Cloudera Manager keeps {"cdsw.enable.gpu.config": "true"}: set there what it must be, and restart' in plan.text
    )
    assert plan.problems == []


@pytest.mark.parametrize(
    ("given", "tags", "skipped", "parts"),
    [
        ([], [], [], removal.PARTS),
        ("", [], [], removal.PARTS),
        ("mirror,gpu", [], [], ("gpu", "mirror")),
        (["bazel"], [], [], ("bazel",)),
        ([], ["all"], [], removal.PARTS),
        ([], ["mirror", "gpu"], [], ("gpu", "mirror")),
        ([], ["all"], ["molecule-notest", "notest"], removal.PARTS),
        ([], ["all"], ["cdsw"], tuple(part for part in removal.PARTS if part != "cdsw")),
        ("gpu,bazel", ["gpu"], [], ("gpu",)),
    ],
)
def test_parts_are_named_as_text_or_a_list_or_by_tags(given, tags, skipped, parts):
    assert removal.parts_of(given, tags, skipped) == parts


@pytest.mark.parametrize(
    ("given", "tags", "skipped", "words"),
    [
        *(
            (given, [], [], "remove_parts must name some of environments, yarn_gpu, cdsw, container_runtime, gpu,")
            for given in ("cuda", ["gpu", "all"], 3, {"gpu": True})
        ),
        ([], ["cuda"], [], "--tags must name some of"),
        ([], ["all"], ["drivers"], "--skip-tags must name some of"),
        ([], ["gpu"], ["gpu"], "leave none"),
    ],
)
def test_what_names_no_part_is_refused(given, tags, skipped, words):
    with pytest.raises(removal.Misused, match=words):
        removal.parts_of(given, tags, skipped)


# --- the playbook, on hosts that are directories -------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path, stages: dict[str, Path]) -> Path:
    hosts = {}
    for name in GROUPS:
        shutil.copytree(stages["active"], tmp_path / name / "deeplearning", symlinks=True)
        hosts[name] = {"environment_root": str(tmp_path / name / "deeplearning")}
    ansible_programs.write_inventory(tmp_path / "hosts.yml", GROUPS, hosts)
    return tmp_path


def play(cluster: Path, *options: str) -> tuple[int, str]:
    playbook = ansible_programs.playbook_for_directories("remove.yml", cluster)
    return ansible_programs.play("-i", cluster / "hosts.yml", playbook, *options, timeout=180)


def there(cluster: Path) -> list[str]:
    return [name for name in GROUPS if (cluster / name / "deeplearning").exists()]


def test_a_tag_is_a_part_and_nothing_is_left_on_any_host(cluster):
    code, output = play(cluster, "--skip-tags", "environments", "-e", "remove_confirmed=true")
    assert (code, there(cluster)) == (0, list(GROUPS)), output
    assert "REMOVE: 0 of 2 hosts have something to remove." in output
    code, output = play(cluster, "--tags", "environments", "-e", "remove_confirmed=true")
    assert (code, there(cluster)) == (0, []), output
    code, output = play(cluster)
    assert code == 0
    assert "REMOVE: 0 of 2 hosts have something to remove." in output


def test_an_unreachable_host_is_named_and_keeps_what_it_has(cluster):
    ansible_programs.change_host(cluster / "hosts.yml", "edge1", ansible_programs.UNREACHABLE)
    code, output = play(cluster, "-e", "remove_confirmed=true")
    assert (code, there(cluster)) == (4, ["edge1"]), output
    assert "edge1: did not answer" in output


HOSTILE = "x\n  REMOVE: nothing\x1b[2J" + "y" * 900


def test_what_a_host_names_writes_no_line_and_moves_no_cursor():
    """A process title, a file below /opt/deeplearning, YARN's reason: none of them is written by the operator."""
    answers = {
        "data1": has(
            environments=[NAME],
            stays=[HOSTILE],
            users=[{"pid": 7, "user": "analyst", "command": HOSTILE}],
            applications={NAME: HOSTILE},
            build=[HOSTILE],
            cdsw={**CDSW, "keys": [], "cloudera_manager": {"a": HOSTILE}},
        )
    }
    plan = planned(answers)
    assert len(plan.text.splitlines()) == 6
    for line in [*plan.text.splitlines(), *plan.problems]:
        assert line.isprintable()
        assert len(line) < 700


@pytest.mark.parametrize(
    "change",
    [
        *({"users": users} for users in ([{"pid": "7", "user": "a", "command": "b"}], ["abc"], {"a": 1}, None)),
        *({"cdsw": cdsw} for cdsw in ({"kind": "rpm"}, {**CDSW, "sessions": "2"}, {**CDSW, "release": "1\n2"}, 7)),
        *({"mirror": mirror} for mirror in ({"before": {}}, [7])),
        *({"gpu": {"cuda": 7}}, {"applications": []}, {"stays": [None]}, {"environments": None}, {"hdfs": {}}),
    ],
)
def test_a_host_whose_answer_has_no_sense_is_named_and_the_others_are_planned(change):
    answers = {"data1": has(**change), "data2": has(gpu={"cuda": "CUDA 12.2"}), "data3": [], "data4": None}
    plan = planned(answers, confirmed=True)
    assert (plan.hosts, plan.problems) == ({"data2": ["gpu"]}, [])
    assert "REMOVE: 1 of 4 hosts have something to remove." in plan.text
    for name in ("data1", "data3", "data4"):
        (line,) = [line for line in plan.text.splitlines() if line.startswith(f"  {name}: answered ")]
        assert line.endswith("Nothing is removed there.")
