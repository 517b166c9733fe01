"""The wheels of TensorFlow that a node has published, and a Python with one of them."""

import json

PUBLISHED = "/var/lib/deeplearning-build/published"
PYTHON = "/opt/deeplearning/envs/scenario-0123456789ab/bin/python"


def provenance_of(host, version):
    """The provenance of the one wheel of this version."""
    keys = host.check_output(f"ls {PUBLISHED}").split()
    entries = [json.loads(host.file(f"{PUBLISHED}/{key}/provenance.json").content_string) for key in keys]
    assert sorted(entry["key"] for entry in entries) == sorted(keys)
    [provenance] = [entry for entry in entries if entry["version"] == version]
    return provenance


def install(host, provenance):
    """The command that starts Python with only this wheel and the packages of the lock."""
    wheel = f"{PUBLISHED}/{provenance['key']}/{provenance['wheel']['name']}"
    target = f"/srv/installed-{provenance['version']}"
    host.check_output(f"rm -rf {target} && {PYTHON} -m pip install --no-deps --no-index --target {target} {wheel}")
    return f"PYTHONPATH={target} {PYTHON}"
