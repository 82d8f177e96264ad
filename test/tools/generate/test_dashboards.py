"""Dashboards and rules use declared metrics only, and say what they mean and what to do."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from swift.telemetry.metrics import GaugeMetric, HistogramMetric
from tools.generate.dashboards import document
from tools.generate.expressions import (
    ExpressionError,
    check_expression,
    groupings_of,
    selectors_of,
    series_of,
)
from tools.generate.metrics import all_metrics
from tools.generate.panels import DASHBOARDS

ROOT = Path(__file__).parents[3]
RULES = ROOT / "etc/prometheus"
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool of the package prometheus"
)


def rules(name):
    (group,) = yaml.safe_load((RULES / name).read_text())["groups"]
    return group["rules"]


def recorded():
    """Return the names of recording rules with the labels that their names begin with."""
    names = [rule["record"] for rule in rules("swift-recording.yaml")]
    return {name: tuple(name.partition(":")[0].split("_")) for name in names}


# --- names in expressions ---------------------------------------------------------------------------


def test_names_and_matchers_of_an_expression_are_found():
    expression = (
        'sum by (le, a) (rate(x_total{b=~"c{d}",e!="f"}[5m])) / on (a) y > 0.5 or z:w:rate5m unless v'
    )
    assert list(selectors_of(expression)) == [
        ("x_total", ("b", "e")),
        ("y", ()),
        ("z:w:rate5m", ()),
        ("v", ()),
    ]
    assert groupings_of(expression) == {"le", "a"}


@pytest.mark.parametrize(
    "expression",
    [
        "sum(swift_heats)",
        "rate(swift_heat_bucket[5m])",
        'swift_heat{colour="red"}',
        "sum by (colour) (swift_heat)",
        'swift_time_bucket{status="1"}',
        "swift_heat + swift_time",
    ],
)
def test_an_unknown_metric_or_label_is_an_error(expression):
    series = series_of(
        [
            GaugeMetric("swift_heat", "Degrees.", ("device",)),
            HistogramMetric("swift_time", "Seconds.", ("call",)),
        ]
    )
    good = 'sum by (device, instance) (swift_heat{device="x"}) + sum(swift_time_bucket{le="1",call="y"})'
    check_expression(good, series)
    with pytest.raises(ExpressionError):
        check_expression(expression, series)


def test_every_rule_uses_declared_metrics():
    series = series_of(all_metrics(ROOT))
    for name in ("swift-recording.yaml", "swift-alerts.yaml"):
        for rule in rules(name):
            check_expression(rule["expr"], series, recorded())


# --- dashboards -------------------------------------------------------------------------------------


def test_every_dashboard_is_complete():
    names = {path.stem for path in (ROOT / "etc/grafana").iterdir()}
    assert names == {"overview", "proxy", "storage-node", "replication", "databases", "s3", "cache-tier"}
    assert len({dashboard.title for dashboard in DASHBOARDS}) == len(names)
    for name in names:
        made = json.loads((ROOT / f"etc/grafana/{name}.json").read_text())
        assert made["schemaVersion"] >= 36
        assert made["uid"] == f"swift-{name}"
        variables = {each["name"] for each in made["templating"]["list"]}
        used = set(re.findall(r"\$\{?(datasource|instance)\b", json.dumps(made["panels"])))
        assert variables == used
        for panel in made["panels"]:
            assert panel["description"].endswith("."), panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert all(target["expr"] for target in panel["targets"]), panel["title"]
        titles = [panel["title"] for panel in made["panels"]]
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.name)
def test_panels_do_not_overlap_and_stay_in_the_grid(dashboard):
    cells = set()
    for panel in document(dashboard)["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells, panel["title"]
        cells |= own


# --- alerts -----------------------------------------------------------------------------------------


def test_every_alert_says_what_happened_and_what_to_do():
    for rule in rules("swift-alerts.yaml"):
        notes = rule["annotations"]
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        assert notes["summary"] and notes["description"].count(". ") >= 1, rule["alert"]
        page, _, anchor = notes["runbook"].partition("#")
        assert page.startswith("doc/howto/")
        assert notes["description"].endswith(f"See {page}.")
        text = (ROOT / page).read_text()
        assert not anchor or f"## {anchor.replace('-', ' ').capitalize()}\n" in text


def test_every_alert_is_on_the_page_and_no_other():
    page = (ROOT / "doc/howto/monitoring.md").read_text()
    alerts = {rule["alert"] for rule in rules("swift-alerts.yaml")}
    assert set(re.findall(r"\bSwift[A-Z]\w+", page)) == alerts


def test_the_sample_names_the_files_of_rules():
    sample = yaml.safe_load((RULES / "prometheus.yaml").read_text())
    assert sorted(sample["rule_files"]) == ["swift-alerts.yaml", "swift-recording.yaml"]
    assert all((RULES / name).exists() for name in sample["rule_files"])
    assert all(job["job_name"].startswith("swift") for job in sample["scrape_configs"])


def promtool(*words, cwd):
    done = subprocess.run(["promtool", *words], cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@needs_promtool
@pytest.mark.process
def test_promtool_accepts_the_rules_and_the_sample():
    for words in (("rules", "swift-alerts.yaml", "swift-recording.yaml"), ("config", "prometheus.yaml")):
        code, output = promtool("check", *words, cwd=RULES)
        assert code == 0, output


def alert_case(name, after, labels):
    """Return a case of promtool that expects one alert with these labels, or none."""
    severity = next(r["labels"]["severity"] for r in rules("swift-alerts.yaml") if r["alert"] == name)
    expected = [] if labels is None else [{"exp_labels": {"severity": severity, **labels}}]
    return {"alertname": name, "eval_time": after, "exp_alerts": expected}


PASS = 'daemon="object-replicator",instance="n1"'
PROXY = 'api="swift",method="GET",type="object"'
#: Series, their values, and at which time which alert fires.
CASES = [
    # The first event of a series, which increase() does not see.
    ('swift_device_errors_total{device="sdb",error="EIO",instance="n1"}', "_x5 1x200",
     "SwiftDeviceErrors", "10m", {"device": "sdb", "instance": "n1"}),
    ('swift_device_errors_total{device="sdb",error="EIO",instance="n1"}', "1x200",
     "SwiftDeviceErrors", "90m", None),
    ('swift_daemon_events_total{daemon="object-auditor",event="quarantines",instance="n1"}', "_x5 1x9",
     "SwiftQuarantine", "10m", {"daemon": "object-auditor", "instance": "n1"}),
    ('swift_clock_offset_seconds{instance="p1"}', "-3x20", "SwiftClockDiffers", "10m", {"instance": "p1"}),
    ('swift_clock_offset_seconds{instance="p1"}', "1x20", "SwiftClockDiffers", "10m", None),
    ('swift_copies_missing{device="sdb",instance="n1",ring="object"}', "4x500",
     "SwiftCopiesMissing", "7h", {"ring": "object"}),
    ('swift_copies_missing{device="sdb",instance="n1",ring="object"}', "4x200 0x300",
     "SwiftCopiesMissing", "7h", None),
    # The least of several nodes' forecasts counts; a zone that does not grow has none.
    ('swift_capacity_full_days{instance="n1",policy="gold",zone="r1z1"}', "29x500",
     "SwiftCapacityShort", "7h", {"policy": "gold", "zone": "r1z1"}),
    ('swift_capacity_full_days{instance="n1",policy="gold",zone="r1z1"}', "31x500",
     "SwiftCapacityShort", "7h", None),
    ('swift_capacity_full_days{instance="n1",policy="gold",zone="r1z1"}', "29x30 31x470",
     "SwiftCapacityShort", "7h", None),
    ('node_textfile_mtime_seconds{file="/var/cache/swift/capacity.prom",instance="n1"}', "0x500",
     "SwiftForecastStopped", "7h", {"file": "/var/cache/swift/capacity.prom", "instance": "n1"}),
    ('node_textfile_mtime_seconds{file="/var/cache/swift/object-updater.prom",instance="n1"}', "0x500",
     "SwiftForecastStopped", "7h", None),
    ('up{instance="n1",job="swift"}', "1x5 0x20",
     "SwiftServerDown", "15m", {"instance": "n1", "job": "swift"}),
    ('up{instance="n1",job="other"}', "0x20", "SwiftServerDown", "15m", None),
]  # fmt: skip


@needs_promtool
@pytest.mark.process
def test_alerts_fire_when_they_should_and_not_otherwise(tmp_path):
    groups = [
        {
            "interval": "1m",
            "input_series": [{"series": series, "values": values}],
            "alert_rule_test": [alert_case(name, after, labels)],
        }
        for series, values, name, after, labels in CASES
    ]
    # A daemon whose last pass took 100 s, 3 h ago; proxies of which every tenth request fails.
    seconds = {"swift_daemon_pass_seconds": "100x200", "swift_daemon_pass_end_seconds": "0x200"}
    stopped = {"daemon": "object-replicator", "instance": "n1"}
    groups.append(
        {
            "interval": "1m",
            "input_series": [{"series": f"{n}{{{PASS}}}", "values": v} for n, v in seconds.items()],
            "alert_rule_test": [
                alert_case("SwiftReplicationStopped", "60m", None),
                alert_case("SwiftReplicationStopped", "180m", stopped),
                alert_case("SwiftDaemonStopped", "180m", None),
            ],
        }
    )
    count = "swift_proxy_request_seconds_count"
    groups.append(
        {
            "interval": "1m",
            "input_series": [
                {"series": f'{count}{{{PROXY},status="200"}}', "values": "0+90x30"},
                {"series": f'{count}{{{PROXY},status="503"}}', "values": "0x14 0+10x15"},
            ],
            "alert_rule_test": [
                alert_case("SwiftProxyErrors", "14m", None),
                alert_case("SwiftProxyErrors", "29m", {}),
            ],
        }
    )
    # Only labels are compared: the notes of what fires are in the rules.
    files = []
    for name in ("swift-alerts.yaml", "swift-recording.yaml"):
        text = yaml.safe_load((RULES / name).read_text())
        for rule in text["groups"][0]["rules"]:
            rule.pop("annotations", None)
        (tmp_path / name).write_text(yaml.safe_dump(text))
        files.append(name)
    # Recording rules come first: alerts use what they record.
    case = {"rule_files": files, "evaluation_interval": "1m", "tests": groups,
            "group_eval_order": ["swift-recording", "swift-alerts"]}  # fmt: skip
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case))
    code, output = promtool("test", "rules", "case.yaml", cwd=tmp_path)
    assert code == 0, output
