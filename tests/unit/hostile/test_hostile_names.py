"""Names that a host answers are no paths of the controller: task files of a role and of the build, with the real ansible-playbook."""

import base64
import hashlib
import json
import sys
from pathlib import Path

import driver_hosts
from ansible_programs import REPOSITORY, play_tasks

NAME = "tensorflow-1.15.0-00123456789ab-cp27-cp27mu-linux_x86_64.whl"


def publish(tmp_path: Path, content: bytes) -> tuple[int, str]:
    """What playbooks/build_tensorflow.yml does with a wheel of these bytes, which should be b"wheel"."""
    for name in ("published", "cache", "mirror/wheels"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "published" / NAME).write_bytes(content)
    wheel = {"name": NAME, "sha256": hashlib.sha256(b"wheel").hexdigest(), "size": 5}
    include = {"ansible.builtin.include_tasks": str(REPOSITORY / "playbooks/layers/tasks/publish_wheel.yml")}
    variables = {
        "tensorflow_build_result": {"provenance": {"wheel": wheel}},
        "tensorflow_build_published": str(tmp_path / "published"),
        "mirror_controller_cache": str(tmp_path / "cache"),
        "build_record": str(tmp_path / "built" / "lock.json"),
    }
    mirror = {"mirror1": {"mirror_root": str(tmp_path / "mirror")}}
    groups = {"build_hosts": {"hosts": {"build1": {}}}, "mirror_host": {"hosts": mirror}}
    return play_tasks(tmp_path, [include], {"vars": variables, "children": groups}, hosts="build1")


def test_a_built_wheel_is_published_under_its_own_name(tmp_path):
    code, output = publish(tmp_path, b"wheel")
    assert code == 0, output
    assert (tmp_path / "mirror/wheels" / NAME).read_bytes() == b"wheel"
    assert [path.name for path in (tmp_path / "cache/wheels").iterdir()] == [NAME]
    assert json.loads((tmp_path / "built/lock.json").read_text())["wheel"]["name"] == NAME


def test_other_bytes_than_those_that_the_build_host_named_are_not_kept(tmp_path):
    code, output = publish(tmp_path, b"other")
    assert code == 2, output
    assert not list((tmp_path / "mirror/wheels").iterdir()) + list((tmp_path / "cache/wheels").iterdir())
    assert not (tmp_path / "built").exists()


def test_a_build_host_that_sends_more_than_it_named_does_not_fill_the_controller(tmp_path):
    code, output = publish(tmp_path, b"wheel" * 100_000)
    assert code == 2, output
    assert "of build1 must arrive with 5 bytes, but: " in output
    assert not list((tmp_path / "mirror/wheels").iterdir()) + list((tmp_path / "cache/wheels").iterdir())


ANSWERS = {
    "path": {"family": "{up}/evil", "distribution": "debian", "major": "9"},
    "path-after-the-family": {"family": "RedHat", "distribution": "rhel", "major": "/../../{up}/evil"},
    "no-family": {"family": "Suse", "distribution": "sles", "major": "9"},
}


def test_the_system_that_a_host_answers_is_no_file_of_variables(tmp_path):
    up = "/".join([".."] * 20) + str(tmp_path)
    (tmp_path / "evil.yml").write_text(
        f"evil: loaded\n__nvidia_driver_repository: \"{{{{ lookup('pipe', 'touch {tmp_path}/evaluated') }}}}\"\n"
    )
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "gpu_host_info.py").write_text(
        f"#!{sys.executable}\n# WANT_JSON\nimport base64, os\nprint(base64.b64decode(os.environ['ANSWER']).decode())\n"
    )
    hosts = {}
    for host, answer in ANSWERS.items():
        host_values = {name: value.format(up=up) for name, value in answer.items()}
        text = json.dumps({"gpu_host": {**driver_hosts.ANSWER, **host_values}})
        hosts[host] = {"answer": base64.b64encode(text.encode()).decode()}
    role = {"name": str(REPOSITORY / "roles/nvidia_driver"), "tasks_from": "preflight.yml"}
    variables = {"nvidia_driver_state": "absent", "nvidia_driver_signing_certificate": "", "nvidia_driver_version": "1"}
    show = {
        "ansible.builtin.debug": {"msg": "EVIL {{ evil | default('') }} {{ __nvidia_driver_repository | default('') }}"}
    }
    include = {"ansible.builtin.include_role": {**role, "rolespec_validate": False}, "vars": variables}
    tasks = [{"block": [include, {**show, "vars": variables}], "environment": {"ANSWER": "{{ answer }}"}}]
    library = f"{tmp_path}/library:{REPOSITORY}/plugins/modules"
    _code, output = play_tasks(tmp_path, tasks, {"hosts": hosts}, ANSIBLE_LIBRARY=library)
    assert not (tmp_path / "evaluated").exists(), output
    assert output.count("which must be") == len(ANSWERS), output
    assert "EVIL loaded" not in output
