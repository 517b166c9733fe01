"""What Prometheus gets of a report, and the alerts: judged by promtool where it is installed."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import report_reader
import yaml

from hadoop_dl.hosts import report_metrics
from hadoop_dl_dev import report_sample

IDLE = [f"application_1795350000000_{number}" for number in ("0007", "0009")]
ALERTS = Path(__file__).resolve().parents[2] / "examples" / "prometheus" / "alerts.yml"


@pytest.fixture(scope="module")
def site() -> dict[str, Any]:
    report = report_sample.sample(60)
    (silent_host,) = [entry for entry in report["hosts"] if entry["host"] == "data0030"]
    silent_host["gpu_check"] = {"problem": "gpu-check gave no answer", "passed": [], "failed": {}, "skipped": {}}
    (off_host,) = [entry for entry in report["hosts"] if entry["host"] == "data0031"]
    off_host["gpu_check"]["failed"]["persistence"] = "Persistence must be on"
    report["problems"] = ["CDSW requires the same make and model of GPU"]
    return report


@pytest.fixture(scope="module")
def metrics(site: dict[str, Any]) -> list[str]:
    return [line for line in report_metrics.text(site).splitlines() if not line.startswith("#")]


def values(metrics: list[str], name: str) -> dict[str, str]:
    return {match[1]: match[2] for line in metrics if (match := re.match(rf"{name}(\{{.*\}})? (\d+)$", line))}


def test_every_host_has_its_samples_and_an_unreachable_one_only_that(metrics):
    samples = values(metrics, "deeplearning_host_up")
    assert (len(samples), samples['{host="data0005"}'], samples['{host="data0002"}']) == (60, "0", "1")
    assert [line for line in metrics if 'host="data0005"' in line] == ['deeplearning_host_up{host="data0005"} 0']


@pytest.mark.parametrize(
    ("sample", "value"),
    [
        ('deeplearning_gpu_check{host="data0007",check="ecc_errors"}', "0"),
        ('deeplearning_gpu_check{host="data0002",check="ecc_errors"}', "1"),
        ('deeplearning_gpus{host="data0012"}', "1"),
        ('deeplearning_gpus_required{host="data0012"}', "2"),
        ('deeplearning_host_drift{host="data0009"}', "1"),
        ('deeplearning_host_drift{host="data0012"}', "1"),  # gpu_count stands in the way of a plan
        (f'deeplearning_gpu_idle_seconds{{application="{IDLE[0]}",user="anna",queue="vision"}}', "10800"),
        (f'deeplearning_gpu_idle_seconds{{application="{IDLE[1]}",user="bob",queue="default"}}', "0"),
        ('deeplearning_environment_intact{host="data0015"}', "0"),
        ('deeplearning_gpu_check_answered{host="data0030"}', "0"),
        ('deeplearning_hosts{state="unreachable"}', "1"),
        ("deeplearning_site_problems", "1"),
        ("deeplearning_report_time_seconds", str(report_sample.NOW)),
    ],
)
def test_a_sample(sample, value, metrics):
    assert f"{sample} {value}" in metrics


def test_an_application_that_computes_has_no_idle_seconds_and_names_are_escaped(site):
    row = {**site["applications"][0], "user": 'a"\\b', "queue": "root.größe"}
    text = report_metrics.text({**site, "applications": [row, site["applications"][2]]})
    lines = [line for line in text.splitlines() if line.startswith("deeplearning_gpu_idle_seconds")]
    (line,) = lines
    assert 'user="a\\"\\\\b",queue="root.größe"} 10800' in line


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def test_alerts_ask_for_metrics_and_questions_that_are_written(metrics):
    metric_names = {re.split(r"[{ ]", line)[0] for line in metrics}
    assert metric_names == set(report_metrics.METRICS)
    for rule in rules():
        assert set(re.findall(r"deeplearning_\w+", rule["expr"])) <= metric_names
        for names in re.findall(r'check[=!]~?"([^"]*)"', rule["expr"]):
            questions = {"driver_runs", *report_reader.ALWAYS, *report_reader.WITH_DRIVER}
            assert set(names.split("|")) <= questions


def promtool(*arguments: str, text: str = "") -> str:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian: the package prometheus)")
    process = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout + process.stderr


def test_promtool_accepts_the_metrics(site):
    promtool("check", "metrics", text=report_metrics.text(site))


def test_promtool_accepts_the_alerts():
    assert f"{len(rules())} rules found" in promtool("check", "rules", str(ALERTS))


EXPECTED = {
    "DeepLearningHostUnreachable": [{"host": "data0005"}],
    "DeepLearningGpuLost": [{"host": "data0012"}],
    "DeepLearningGpuMemory": [{"host": "data0007", "check": "ecc_errors"}, {"host": "data0048", "check": "ecc_errors"}],
    "DeepLearningGpuXid": [{"host": "data0012", "check": "xid"}],
    "DeepLearningGpuCheckFailed": [{"host": "data0031", "check": "persistence"}],
    "DeepLearningGpuCheckSilent": [{"host": "data0030"}],
    "DeepLearningGpuIdle": [{"application": IDLE[0], "user": "anna", "queue": "vision"}],
    "DeepLearningEnvironmentDamaged": [{"host": "data0015"}],
    "DeepLearningDrift": [{"host": f"data00{number}"} for number in ("09", "12", "15", "32", "55")],
    "DeepLearningSiteProblem": [{}],
    "DeepLearningReportOld": [],
}


def test_promtool_raises_each_alert_for_its_hosts_and_no_others(metrics, tmp_path):
    """Two hours of the metrics of a site; the report's time is that of the clock of promtool, which begins at 0."""
    assert set(EXPECTED) == {rule["alert"] for rule in rules()}
    rules_file = {"groups": [{"name": "x", "rules": [{**rule, "annotations": {}} for rule in rules()]}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules_file), encoding="utf-8")
    series = [
        {"series": sample, "values": f"{'0' if 'report_time' in sample else value}x120"}
        for sample, _, value in (line.rpartition(" ") for line in metrics)
    ]
    severities = {rule["alert"]: rule["labels"] for rule in rules()}

    def alert(time: str, name: str, hosts: list[dict[str, str]]) -> dict[str, Any]:
        expected = [{"exp_labels": {**labels, **severities[name]}} for labels in hosts]
        return {"eval_time": time, "alertname": name, "exp_alerts": expected}

    alerts = [alert("2h", name, hosts) for name, hosts in EXPECTED.items()]
    alerts.append(alert("49h", "DeepLearningReportOld", [{}]))
    series[0]["values"] = series[0]["values"].replace("x120", "x3000")
    tests = [{"interval": "1m", "input_series": series, "alert_rule_test": alerts}]
    test = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yml"))
