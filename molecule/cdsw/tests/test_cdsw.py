import pytest

CONF = "/etc/cdsw/config/cdsw.conf"
LEDGER, RECORD = "/opt/deeplearning/state/cdsw.json", "/opt/deeplearning/etc/cdsw.json"


@pytest.fixture(scope="module")
def kind(host):
    return "rpm" if host.file(CONF).exists else "parcel"


def test_cdsw_is_ready_and_has_detected_the_gpus_that_its_settings_give(host, kind):
    answer = host.run("cdsw status")
    assert answer.rc == 0
    row = next(line for line in answer.stdout.splitlines() if "True" in line)
    assert f"| {2 if kind == 'rpm' else 0} |" in row


def test_only_the_two_keys_of_cdsw_conf_changed(host, kind):
    if kind == "parcel":
        assert not host.file(CONF).exists, "Cloudera Manager's installation has no cdsw.conf"
        return
    difference = host.run(f"diff /srv/demo-cdsw/cdsw.conf {CONF}").stdout.splitlines()
    assert [line for line in difference if line[0] in "<>"] == [
        "< NVIDIA_GPU_ENABLE=false",
        '< NVIDIA_LIBRARY_PATH=""',
        '> NVIDIA_GPU_ENABLE="true"',
        '> NVIDIA_LIBRARY_PATH="/var/lib/nvidia-docker/volumes/nvidia_driver/418.67"',
    ]
    assert host.file(CONF).mode == 0o640


def test_it_was_restarted_once_and_not_again_by_the_second_run(host, kind):
    calls = host.file("/srv/cdsw/calls").content_string.split()
    assert calls.count("restart") == (2 if kind == "rpm" else 0)  # the first is the installation's


def test_the_ledger_is_for_root_only_and_has_nothing_else_of_cdsw_conf(host, kind):
    ledger = host.file(LEDGER)
    assert ledger.exists is (kind == "rpm")
    if ledger.exists:
        assert ledger.mode == 0o600
        assert "a-secret" not in ledger.content_string


def test_a_parcel_is_not_recorded_before_cloudera_manager_enables_gpus(host, kind):
    assert not host.file(RECORD).exists
