"""The environment: there, complete, active, and with what its stack promises."""

import pytest

from hadoop_dl.data.questions import distribution

pytestmark = pytest.mark.part("environment")
# The stack's part, and the module that it makes importable.
MODULES = {
    "tensorflow": "tensorflow",
    "keras": "keras",
    "tensorflow_io": "tensorflow_io",
    "tensorflowonspark": "tensorflowonspark",
    "kafka": "kafka",
}
VERSIONS = ("tensorflow", "keras", "tensorflow_io", "tensorflowonspark")


def of_the_stack(*names):
    """One parameter for each part; it is left out where the stack does not have the part."""
    return [pytest.param(name, marks=pytest.mark.stack_has(name)) for name in names]


def test_the_environment_is_there(answers):
    assert answers["exists"], f"{answers['environment']} is missing. Run: ansible-playbook site.yml"


def test_the_environment_is_sealed(answers):
    assert answers["seal"], f"{answers['changed']}: the environment was never finished. Run: ansible-playbook site.yml"


def test_nothing_changed_since_the_seal(answers):
    assert answers["changed"] is None, f"{answers['changed']}. Repair it with: ansible-playbook site.yml"


@pytest.mark.part("active")
def test_the_environment_is_the_active_one(expected, answers):
    if expected["environment"].endswith("/current"):
        assert answers["current"], (
            "/opt/deeplearning/current must be a link to an environment. Run: ansible-playbook site.yml"
        )
    else:
        assert answers["current"] == expected["environment"]


def test_the_python_is_the_stacks(expected, inside):
    assert inside("python")["error"] is None
    assert inside("python")["value"] == (expected["python"] or inside("python")["value"])


@pytest.mark.parametrize("part", of_the_stack(*MODULES))
def test_it_can_be_imported(inside, part):
    assert inside(f"import {MODULES[part]}")["error"] is None


@pytest.mark.parametrize("part", of_the_stack(*VERSIONS))
def test_the_version_is_the_stacks(expected, inside, part):
    installed_packages = inside("versions")["value"] or {}
    assert inside("versions")["error"] is None
    name = distribution(expected["stack"], part)
    assert name in installed_packages, (
        f"{name} {expected['stack'].get(part, '')} is not installed. Run: ansible-playbook site.yml"
    )
    assert installed_packages[name] == expected["stack"].get(part, installed_packages[name])


# Where GPUs are promised, gpu-check asks TensorFlow itself, on the CPU too (test_gpus.py).
@pytest.mark.part("no gpu")
def test_tensorflow_multiplies_matrices(inside):
    assert inside("product")["error"] is None
    assert inside("product")["value"] == [[22.0, 28.0], [49.0, 64.0]]


@pytest.mark.part("no gpu")
@pytest.mark.stack_has("keras")
def test_a_keras_model_predicts(inside):
    assert inside("keras model")["error"] is None
    assert inside("keras model")["value"] == [2, 1]
