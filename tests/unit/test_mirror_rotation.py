"""The mirror gets another certificate authority, or another address: a bundle with both authorities is valid during the change, and no host is installed again."""

import hashlib
import io
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import downloads
from ansible_programs import LOCAL, play
from certificates import authority
from mirror_process import CONTENT, WHEEL, running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A mirror with the old certificate on one port and with the new one on another, and the bundles of the hosts."""
    directory = tmp_path_factory.mktemp("tls")
    old_ca, new_ca = authority(directory, "old"), authority(directory, "new")
    (directory / "both.ca").write_bytes(old_ca.read_bytes() + new_ca.read_bytes())
    root = directory / "mirror"
    (root / "wheels").mkdir(parents=True)
    (root / "wheels" / WHEEL).write_bytes(CONTENT)
    (root / "manifest.json").write_text("{}")
    with ExitStack() as mirrors:
        for name in ("old", "new"):
            options = (f"--certificate={directory / name}.crt", f"--key={directory / name}.key")
            mirror = mirrors.enter_context(running(sys.executable, root, *options))
            (directory / f"{name}.url").write_text(f"https://127.0.0.1:{mirror.port}/wheels/{WHEEL}")
        yield directory


@pytest.mark.parametrize(
    ("bundle", "certificate", "accepted"),
    [
        ("old", "old", True),
        ("old", "new", False),
        ("both", "old", True),
        ("both", "new", True),
        ("new", "new", True),
        ("new", "old", False),
    ],
)
def test_a_bundle_with_both_authorities_is_valid_through_the_change(site, bundle, certificate, accepted):
    url, sink = (site / f"{certificate}.url").read_text(), io.BytesIO()
    refusal = pytest.raises(downloads.DownloadError, match="(?i)certificate")
    with nullcontext() if accepted else refusal:
        downloads.receive(url, sink, len(CONTENT), time.monotonic() + 20, str(site / f"{bundle}.ca"))
        assert sink.getvalue() == CONTENT


def test_a_file_of_the_site_comes_from_the_mirror_with_its_authority_and_without_the_hosts_proxy(site):
    """The action verified_file, as the roles of the GPU layer use it; verified_archive fetches by the same lines."""
    address, _, path = (site / "old.url").read_text().partition("/wheels/")
    target = site / "by_the_action"
    file = {"path": str(target), "sha256": hashlib.sha256(CONTENT).hexdigest(), "title": "The file", "remedy": "None."}
    task = {"verified_file": {"source": f"{address}/wheels/{path}", **file}}
    variables = {**LOCAL, "address": address, "mirror_url": "{{ address }}/"}
    for ca, expected in (("new", 2), ("old", 0)):
        variables["mirror_ca"] = str(site / f"{ca}.ca")
        (site / "play.yml").write_text(
            json.dumps([{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": [task]}])
        )
        status, output = play("-i", "localhost,", site / "play.yml", https_proxy="http://127.0.0.1:9", no_proxy="")
        assert status == expected, output
    assert target.read_bytes() == CONTENT
