"""Inputs: what a site may set is checked once, before any task sees it, and refused with name, value and what is accepted."""

import datetime
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.plugins.filter.core import to_bool
from jinja2 import Environment, meta

from hadoop_dl.hosts.actions import NAMED
from hadoop_dl.plan import forms, inputs

REPOSITORY = Path(__file__).resolve().parents[2]
KNOWN = inputs.all_inputs(REPOSITORY)
NESTED = {
    f"{name}.{key}": given.key(key, spec)
    for name, given in KNOWN.items()
    for key, spec in given.spec.get("options", {}).items()
    if name not in inputs.reserved(REPOSITORY)
}
ROLES = sorted(path.parent.parent.name for path in REPOSITORY.glob("roles/[a-z]*/meta/argument_specs.yml"))
SHA256 = "0" * 64
ARCHIVE = {"file": "files/cudnn.tgz", "sha256": SHA256}
DATE = datetime.date(2026, 1, 1)
ODD: list[Any] = [
    *(None, True, 0, -1, 10.1, math.nan, "", "³", "maybe", "a\nb", "x" * 300, "x" * 5000, [], [None], [[]], [{}], {}),
    *({1: 2}, {"a": None}, {"a": {"b": {"c": DATE}}}, DATE, datetime.datetime(2026, 1, 1, 12, 0), {None: 1, "x": 2}),
    inputs.FailedTemplate("'x' is undefined"),
]


def problems(**variables: Any) -> list[str]:
    return inputs.check(variables, REPOSITORY).problems


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("nvidia_driver_reboot_allowed", "maybe", 'must be true or false, but is "maybe"'),
        ("nvidia_driver_reboot_allowed", "", 'true or false, but is ""'),
        ("nvidia_driver_reboot_allowed", "y", "true or false"),
        ("cuda_purge_enabled", None, "but is empty (null)"),
        ("verify_become", 2, "but is the number 2"),
        ("nvidia_driver_version", 470.82, "an exact version in quotes"),
        ("nvidia_driver_version", "newest", 'such as "535.104.05", but is "newest"'),
        ("nvidia_driver_version", ["535.104.05"], "an exact version in quotes"),
        ("cuda_versions", "12.2", "must be a list"),
        ("cuda_versions", [10.1], "but is the number 10.1"),
        ("cuda_versions", [["12.2"]], "must be a list"),
        ("cudnn_versions", [{"cuda": "12.2"}], "a list of mappings with the keys cuda, version"),
        ("cudnn_versions", ["8.9.7.29"], "a list of mappings"),
        ("cudnn_versions", [7], "a list of mappings"),
        ("nccl_versions", [{"version": "2.4.8", "cuda": "10"}], "a list of mappings"),
        ("upgrade_driver_wait", "soon", "must be a whole number"),
        ("nccl_tarballs", {"2.18.5": {"file": "x.tgz"}}, "file: …, sha256: …"),
        ("cudnn_tarballs", {"8.9.7.29": {"sha256": SHA256}}, "file: …, sha256: …"),
        ("cudnn_tarballs", {8.9: ARCHIVE}, "keys are text in quotes"),
        ("cudnn_source", "Tarball", "must be package or tarball"),
        ("nvidia_driver_state", "gone", "must be present or absent"),
        ("mirror_mode", None, "must be fetch, push or external"),
        ("mirror_port", 70000, "a whole number from 1024 to 65535"),
        ("mirror_port", 80, "a whole number from 1024 to 65535"),
        ("mirror_timeout", "-5", "a whole number from 1"),
        ("tensorflow_timeout", "an hour", "a whole number"),
        ("mirror_url", "mirror01:8900", "an HTTP address"),
        ("mirror_url", "ftp://mirror01", "an HTTP address"),
        ("mirror_url", "http://user:secret@mirror01", "without a user or password"),
        ("mirror_root", "/", "a directory that only this project uses"),
        ("mirror_root", "/srv/", "a directory that only this project uses"),
        ("mirror_root", "/etc/mirror", "a directory that only this project uses"),
        ("mirror_root", "/srv/mirror/../../etc", "a directory that only this project uses"),
        ("mirror_root", "srv/mirror", "a directory that only this project uses"),
        ("mirror_environment", {"https_proxy": None}, "but is a value that is not shown"),
        ("mirror_environment", {"https_proxy": "http://a\nb"}, "one line without control characters"),
        ("tensorflowonspark_spark_defaults", {"spark.yarn.queue": "gpu\nspark.x true"}, "one line"),
        ("hadoop_client_java_home", "/usr/lib/jvm\n", "one line"),
        ("spark_home", "opt/spark", "an absolute path"),
        ("deeplearning_unreachable", "Continue", "must be continue or stop"),
        ("deeplearning_request", {"tensorflow": 1.15}, "with values in quotes"),
        ("deeplearning_request", {"tensorflow": DATE}, "with values in quotes"),
        ("deeplearning_request", {}, "the name of a stack, or constraints"),
        ("deeplearning_request", "x" * 300, "the name of a stack"),
        ("deeplearning_request", None, "but is empty (null)"),
        ("gpu_count", "³", "a whole number from 0 to 64"),
        ("gpu_count", True, "a whole number from 0 to 64"),
        ("apply", "everything", "must be needed or all"),
        ("upgrade_batch", 0, "a whole number of hosts from 1, or a share from 1% to 100%, but is the number 0"),
        ("upgrade_batch", "-1", "a whole number of hosts from 1"),
        ("upgrade_batch", "half", "a whole number of hosts from 1"),
        ("upgrade_batch", "101%", "a whole number of hosts from 1"),
        ("deeplearning_root", "/srv/dl", "is not an input and must not be set"),
        ("environment_root", "/srv/dl", "must be /opt/deeplearning"),
        ("mirror_url", inputs.FailedTemplate("'place' is undefined"), "cannot be evaluated: 'place' is"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_and_what_is_accepted(name, value, words):
    (problem,) = problems(**{name: value})
    assert problem.startswith(f"{name} ")
    assert words in problem
    assert "secret" not in problem


# Values that a site may write by mistake, and that a role would refuse later or not at all.
HARMFUL: dict[str, list[Any]] = {
    "upgrade_canary_user": ["root", "", "-c id", "a;id"],
    "upgrade_canary_command": ["", "  "],
    "upgrade_canary": [0, ["data1", "data1"], "data1;x", True],
    "tensorflow_build_root": ["/opt/hadoop"],
    "tensorflow_build_source": [{"file": "x"}, {"file": "http://me:pw@host/x", "sha256": SHA256}, {"bundle": "x"}],
    "tensorflow_build_archives": [
        {"../x": ARCHIVE},
        {"x.tgz": {"file": "", "sha256": SHA256}},
        {"x.tgz": {"file": "x", "sha256": "0"}},
    ],
    "tensorflow_build_capabilities": [["7"], ["7.0", "7.0"]],
    "tensorflow_build_flags": [["//tensorflow:all"]],
    "tensorflow_build_path": [["bin"]],
    "tensorflow_build_compiler": ["gcc -O3"],
    "tensorflow_build_answers": [{"TF NEED": "1"}, {"TF_NEED": ["1"]}],
    "mirror_files": [{"../../etc/x": ARCHIVE}, {".hidden": ARCHIVE}, {"x": {"url": "http://x", "sha256": SHA256}}],
    "mirror_root": [
        *("/srv/50%m", "/srv/two words", "/srv/./", "//", "/srv", "/home", "/home/me/mirror", "/root", "/tmp/x"),
        *("/usr/share/mirror", "/opt/deeplearning/envs", "/opt/cloudera/parcels", "/opt//hadoop", "/var/lib/docker/x"),
    ],
    "mirror_url": [
        "http://mirror1:89000",
        "http://mirror1:http",
        "http://mirror1:8900/?x=1",
        "http://m/a b",
        "http://",
    ],
    "mirror_bundle": ["/srv/mysite.bundle"],  # without its key
    "mirror_index_url": ["https://me:pw@artifactory/simple"],
    "mirror_bind": ["999.0.0.1", "--root=/"],
    "mirror_login": [
        {"user": "svc"},
        {"user": "svc", "password": "x", "token": "y"},
        {"username": "svc", "password": "x"},
        {"user": "a:b", "password": "x"},
    ],
    "mirror_environment": [{"HTTPS PROXY": "x"}, {"https_proxy": {"host": "x"}}],
    "mirror_tls_certificate": ["files/mirror.pem"],
    "mirror_tls_key": ["files/mirror.key"],
    "bazel_package": ["bazel; id", ""],
    "bazel_files": [{"newest": ARCHIVE}, {"0.26.1": {"file": "x", "sha256": "y"}}],
    "bazel_versions": [["0.26.1", "0.26.1"], [""]],
    "bazel_environment": [{"JAVA HOME": "/usr"}],
    "bazel_repository_url": ["http://me:pw@repo/el9", "http://repo/el9"],
    "cdsw_engine_base": ["engine:13\nRUN id", "engine 13"],
    "cdsw_engine_repository": ["Engine:1"],
    "cdsw_engine_network": ["--privileged"],
    "cdsw_engine_cuda_packages": [["cuda-libraries-10-0"], ["cuda-libraries-10-0=10.0.130-1; id"]],
    "cdsw_engine_cuda_repository": ["file:///x"],
    "cdsw_engine_stack": ["../tf"],
    "cluster_manager_url": ["https://cm01:7183"],  # no playbook changes a manager any more
    "upgrade_maintenance": [True, "yes"],
    "mirror_package_sets": [[{"name": "el9", "packages": ["dkms"]}]],  # a plan decides them
    "verify_expected_failures": [["test_everything"], ["--collect-only"]],
    "hadoop_client_hadoop_home": ["/opt/../etc"],
    "hadoop_client_java_versions": [["11.0"]],
    "tensorflowonspark_hdfs_directory": ["/", "/user", "/user/anna"],
    "tensorflowonspark_hdfs_user": ["hdfs; id"],
    "tensorflowonspark_spark_defaults": [{"yarn.queue": "gpu"}, {"spark.x": {"a": "b"}}],
    "report_directory": [""],
    "remove_parts": ["gpu, mirrors", [], ["gpu", "gpu"]],
    "rollback_to": ["../../etc"],
    "deeplearning_extra_packages": [
        ["pandas @ https://evil/pandas.whl"],
        ["git+https://evil/pandas"],
        ["dask<"],
        ["--index-url=http://x"],
    ],
    "cuda_package_versions": [{"8": "8.0.61"}, {"8.0": "newest"}],
    "cuda_runfiles": [{"8.0": {"file": "https://me:pw@x/cuda.run", "sha256": SHA256}}],
    "nvidia_driver_runfile": ["ftp://x/driver.run"],
    "nvidia_driver_upgrade_checks": [["everything_works"]],
    "environment_root": ["/opt"],
    # What belongs to users, or comes twice.
    "yarn_gpu_node_label_store": [
        *("hdfs:///user", "hdfs:///user/anna", "hdfs://nameservice1/tmp", "file:///etc", "file:///home/anna/labels"),
    ],
    "yarn_gpu_discovery": ["/tmp/nvidia-smi", "/home/anna/nvidia-smi"],
    "yarn_gpu_devices": ["0:0,0:0", "0:0,1:1,0:2", "0:1,1:2,3:1"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in HARMFUL.items() for value in values])
def test_a_harmful_value_is_refused_by_its_name(name, value):
    refusals = problems(**{name: value})
    assert any(name in problem for problem in refusals), refusals
    assert not any("pw@" in problem for problem in refusals)


@pytest.mark.parametrize(
    ("name", "value", "converted"),
    [
        ("nvidia_driver_reboot_allowed", "false", False),
        ("nvidia_driver_reboot_allowed", "No", False),
        ("nvidia_driver_reboot_allowed", "yes", True),
        ("nvidia_license_accepted", 1, True),
        ("gpu_count", "2", 2),
        ("mirror_port", "8900", 8900),
        ("upgrade_batch", "25%", "25%"),
        ("upgrade_batch", "2", 2),
        ("mirror_url", "https://mirror01.example.com:8900/dl", "https://mirror01.example.com:8900/dl"),
        ("mirror_root", "/data/deeplearning", "/data/deeplearning"),
        ("mirror_root", "/srv/deeplearning-mirror", "/srv/deeplearning-mirror"),
        ("mirror_root", "/mnt/disk1/mirror/", "/mnt/disk1/mirror/"),
        ("mirror_root", "/mirror", "/mirror"),
        ("yarn_gpu_node_label_store", "hdfs:///yarn/node-labels", "hdfs:///yarn/node-labels"),
        ("yarn_gpu_node_label_store", "file:///var/lib/hadoop-yarn/labels", "file:///var/lib/hadoop-yarn/labels"),
        ("tensorflowonspark_hdfs_directory", "/user/spark/share/lib", "/user/spark/share/lib"),
        ("yarn_gpu_discovery", "/opt/site/nvidia-smi", "/opt/site/nvidia-smi"),
        ("yarn_gpu_devices", "0:0,10:1,1:10", "0:0,10:1,1:10"),
        ("cuda_default", "", ""),
        ("cuda_versions", "none", "none"),
        ("nvidia_driver_version", "none", "none"),
        ("cudnn_tarballs", {"8.9.7.29": ARCHIVE}, {"8.9.7.29": ARCHIVE}),
        ("deeplearning_request", {"tensorflow": "1.15", "hdfs": True}, {"tensorflow": "1.15", "hdfs": True}),
        ("tensorflowonspark_spark_defaults", {"spark.executor.instances": 2}, {"spark.executor.instances": 2}),
    ],
)
def test_a_right_value_is_converted_to_its_type(name, value, converted):
    result = inputs.check({name: value}, REPOSITORY)
    assert result.problems == []
    assert result.values[name] == converted
    assert type(result.values[name]) is type(converted)


@pytest.mark.parametrize("value", [*forms.TRUE, *forms.FALSE, "TRUE", "Off", True, False, 0, 1])
def test_a_boolean_is_what_the_roles_filter_makes_of_it(value):
    name = "nvidia_driver_reboot_allowed"
    assert inputs.check({name: value}, REPOSITORY).values[name] is to_bool(value)


OF_RUNFILE = {"nvidia_driver_version": "535.104.05", "nvidia_driver_source": "runfile"}


ARTIFACTORY = {"mirror_index_url": "https://artifactory.example.com/artifactory/api/pypi/deeplearning/simple"}
NEXUS = {"mirror_index_url": "http://nexus:8081/repository/deeplearning/simple"}
LOGIN = {"mirror_login": {"user": "svc", "password": "s3cret"}}


def archive_of(version: str) -> dict[str, Any]:
    return {"cudnn_versions": [{"version": version, "cuda": "8.0"}], "cudnn_source": "tarball"}


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"cuda_versions": ["12.2"], "cuda_default": "8.0"}, "cuda_default must be one of cuda_versions (12.2)"),
        (OF_RUNFILE, "requires nvidia_driver_runfile and nvidia_driver_runfile_sha256"),
        ({"nvidia_driver_signing_key": "/k"}, "requires nvidia_driver_signing_certificate"),
        ({"cuda_versions": ["8.0"], "cuda_source": "runfile"}, "requires an entry of cuda_runfiles for 8.0"),
        (archive_of("7.6.5.32"), "requires an entry of cudnn_tarballs for 7.6.5.32"),
        (
            {**archive_of("1.2.3"), "cudnn_tarballs": {"1.2.3": {"file": "x.tgz"}}},
            "requires an entry of cudnn_tarballs for 1.2.3",
        ),
        ({**NEXUS, **LOGIN}, "mirror_index_url must begin with https://"),
        (LOGIN, "mirror_index_url, but that is not set"),
        ({**ARTIFACTORY, "mirror_login": {"user": "svc"}}, "must have user and password"),
    ],
)
def test_inputs_that_contradict_each_other_are_refused(variables, words):
    (problem,) = problems(**variables)
    assert words in problem
    assert "s3cret" not in problem


@pytest.mark.parametrize("variables", [NEXUS, {**ARTIFACTORY, **LOGIN}])
def test_an_index_is_asked_with_a_login_over_https_or_without_one(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize("archives", [{}, {"6.0.21": {"file": "http://mirror01/cudnn.tgz"}}])
def test_an_archive_that_the_role_knows_needs_no_entry_or_no_sha256(archives):
    assert problems(**archive_of("6.0.21"), cudnn_tarballs=archives) == []


@pytest.mark.parametrize("role", ROLES)
def test_every_default_of_a_role_is_one_of_its_inputs_and_accepted(role):
    defaults = yaml.safe_load((REPOSITORY / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    assert set(defaults) == set(inputs.role_options(REPOSITORY, role))
    required_names = {name for name, entry in KNOWN.items() if entry.role == role and entry.spec.get("required")}
    optional_names = {name for name in defaults if name not in required_names | inputs.reserved(REPOSITORY)}
    assert problems(**{name: defaults[name] for name in optional_names}) == []


def test_every_variable_that_the_playbooks_compute_from_is_an_input():
    variables = yaml.safe_load((REPOSITORY / "playbooks/group_vars/all.yml").read_text(encoding="utf-8"))
    templates = Environment(extensions=[])  # noqa: S701 (nothing is rendered)
    templates.filters.update(
        dict.fromkeys(("bool", "split", "hosts_at_once", "stack_artifacts", "stack_lock", "stack_file"), str)
    )
    syntax_trees = [templates.parse(str(value)) for value in variables.values()]
    names = set().union(*map(meta.find_undeclared_variables, syntax_trees)) - set(variables)
    of_ansible = {"ansible_play_hosts_all", "groups", "inventory_dir", "inventory_hostname", "playbook_dir"}
    assert names - of_ansible - {"plan"} <= set(KNOWN)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_no_value_ends_in_an_exception(name):
    for value in ODD:
        for problem in problems(**{name: value}):
            assert name in problem
            assert "\n" not in problem
            assert len(problem) < 500


def test_every_limit_belongs_to_an_input_and_every_form_is_there():
    assert set(forms.limits()) <= set(KNOWN) | set(NESTED)
    limit_forms = {row[key] for row in forms.limits().values() for key in ("form", "keys", "values") if key in row}
    assert limit_forms - {"archive", "text"} <= set(forms.table()["forms"])
    used_forms = limit_forms | {"sha256", "source", "host", "stack"}  # the code names these
    assert set(forms.table()["forms"]) - used_forms == set()


@pytest.mark.parametrize("name", sorted(KNOWN.keys() | NESTED.keys()))
def test_every_input_has_a_form(name):
    """A type is none: a boolean, choices, a range, a form, or keys whose values have one; or no site sets it."""
    definition = {**KNOWN, **NESTED}[name]
    limits, options = definition.limits, definition.spec.get("options")
    checked_types = ("bool", "request", "batch", "canary", "parts")
    if name.partition(".")[0] in inputs.reserved(REPOSITORY) or definition.type in checked_types:
        return
    if definition.type == "int":
        assert {"min", "max"} <= set(limits)
    elif options:
        assert {f"{name}.{key}" for key in options} <= set(NESTED)
    elif definition.type == "dict":
        assert {"keys", "values"} <= set(limits) or limits.get("form") == "archive"
    else:
        assert definition.spec.get("choices") or limits.get("form")


def test_the_inputs_that_a_reader_of_a_host_is_asked_for_are_those_of_the_table():
    """The table is too slow to read for every host, so the action has their names."""
    assert set(NAMED) == {name for name, row in forms.limits().items() if row.get("exists") == "host"}


def test_a_list_has_each_entry_once():
    (problem,) = problems(cuda_versions=["12.2", "12.2"])
    assert "a list without duplicates" in problem
    assert 'but is ["12.2", "12.2"]' in problem
    assert problems(tensorflow_build_flags=["--copt", "--copt"]) == []


@pytest.mark.parametrize("name", sorted(inputs.reserved(REPOSITORY)))
def test_what_only_the_playbooks_set_is_refused_with_another_value(name):
    (problem,) = problems(**{name: "/etc"})
    assert problem == f"{name} must not be set: only the playbooks set it. Remove it from the inventory."
    values = inputs.playbook_values(REPOSITORY)
    assert problems(**{name: values[name]} if name in values else {}) == []


@pytest.mark.parametrize("form", sorted(forms.table()["forms"]))
def test_the_example_of_a_form_is_accepted(form):
    definition = forms.Input("x", "", {"type": "str"}, {"form": form})
    example = forms.table()["forms"][form]["example"]
    assert forms.convert(definition, example) == example


def test_the_example_of_a_path_is_one_of_that_input_and_is_accepted():
    """The example of the form, a CA bundle, is right for inputs that end with _ca alone."""
    paths = {name: KNOWN[name] for name in KNOWN if KNOWN[name].limits.get("form") == "host_path"}
    assert [name for name, entry in paths.items() if not name.endswith("_ca") and "example" not in entry.limits] == []
    for name, entry in KNOWN.items():
        if example := entry.limits.get("example"):
            value = [example] if entry.type == "list" else example
            assert forms.convert(entry, value) == value
            assert f'such as "{example}"' in forms.accepted(entry), name


def test_a_vaulted_value_is_not_shown():
    (problem,) = problems(mirror_url=forms.Secret("hunter2"))
    assert "hunter2" not in problem


def test_a_misspelt_input_is_a_warning_and_a_sites_own_variable_is_none():
    result = inputs.check({"cuda_version": "12.2", "cuda_rack": "b4", "nvidia_smi_path": "/x"}, REPOSITORY)
    assert result.warnings == ["cuda_version is not an input of this project and is not used; cuda_versions is one."]


def test_capitals_are_a_misspelling():
    assert "upgrade_batch is one." in inputs.check({"Upgrade_Batch": 1}, REPOSITORY).warnings[0]


def test_a_label_without_yarn_is_refused():
    sentences = problems(yarn_gpu_node_label="gpu", yarn_gpu_health=True, yarn_gpu=False)
    for name, sentence in zip(("yarn_gpu_health", "yarn_gpu_node_label"), sentences, strict=True):
        assert sentence.startswith(f"{name} requires yarn_gpu, but yarn_gpu is not true")


def test_one_variable_names_the_ca_of_the_mirror():
    group_vars = yaml.safe_load((REPOSITORY / "playbooks/group_vars/all.yml").read_text(encoding="utf-8"))
    of_roles = {name for name in KNOWN if name.endswith("_mirror_ca")}
    assert len(of_roles) == 3
    assert {name: group_vars.get(name) for name in of_roles} == dict.fromkeys(of_roles, "{{ mirror_ca | default('') }}")
    (problem,) = problems(mirror_ca="site-ca.pem")
    assert problem.startswith("mirror_ca must be an absolute path on the hosts, such as ")


def test_an_input_whose_value_comes_later_is_no_conflict():
    """A template of the plan, or a value that is refused itself: the sentence about both inputs would be wrong, or one too many."""
    url = {"cuda_repository_url": "http://mirror1:8900/rpm/el9"}
    assert "cuda_repository_key" in problems(**url)[0]
    assert problems(**url, cuda_repository_key="{{ plan.stack }}.asc") == []
    (problem,) = problems(**url, cuda_repository_key=10.1)
    assert problem.startswith("cuda_repository_key must be a path on the controller")
