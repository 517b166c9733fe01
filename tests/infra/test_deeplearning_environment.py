"""The environment: there, whole, active, and what its stack says."""

import pytest

pytestmark = pytest.mark.part("environment")
MODULES = ("tensorflow", "keras", "tensorflowonspark", "kafka")


def test_the_environment_is_there(answers):
    assert answers["exists"], f"{answers['environment']} should be there, and is not. Run: ansible-playbook site.yml"


def test_the_environment_is_sealed(answers):
    assert answers["seal"], f"{answers['changed']}: the environment was never finished. Run: ansible-playbook site.yml"


def test_nothing_changed_since_the_seal(answers):
    assert answers["changed"] is None, f"{answers['changed']}. Repair it with: ansible-playbook site.yml"


def test_the_environment_is_the_active_one(expected, answers):
    if expected["environment"].endswith("/current"):
        assert answers["current"], "/opt/deeplearning/current should be a link to an environment"
    else:
        assert answers["current"] == expected["environment"]


def test_the_python_is_the_stacks(expected, inside):
    assert inside("python")["error"] is None
    assert inside("python")["value"] == (expected["python"] or inside("python")["value"])


@pytest.mark.parametrize("module", MODULES)
def test_it_can_be_imported(inside, module):
    assert inside(f"import {module}")["error"] is None


def test_tensorflow_io_can_be_imported_where_the_stack_has_it(expected, inside):
    if "tensorflow_io" in expected["stack"]:
        assert inside("import tensorflow_io")["error"] is None


@pytest.mark.parametrize("package", ["tensorflow", "keras", "tensorflowonspark"])
def test_the_version_is_the_stacks(expected, inside, package):
    found = (inside("versions")["value"] or {}).get(package)
    assert found is not None, f"{package} is not installed: {inside('versions')['error']}"
    assert found == expected["stack"].get(package, found)
