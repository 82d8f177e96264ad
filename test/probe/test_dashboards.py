"""Expressions of dashboards and rules return series from a running cluster, by a real Prometheus."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from test.support.monitoring import (
    PROGRAMS,
    RULES,
    SAMPLES,
    Monitoring,
    await_all,
    daemon_pages,
    observed_cluster,
    put_load,
    server_ports,
)
from tools.generate.expressions import selectors_of

pytestmark = pytest.mark.process

GRAFANA = Path(__file__).parents[2] / "etc/grafana"
#: Metrics that a healthy small cluster lacks → why.
ABSENT = {
    "swift_admission_refused_total": "no filter admission is in the pipeline",
    "swift_device_errors_total": "no device fails",
    "swift_cache_tier_differences_total": "the cache tier does not differ from the disks",
    "swift_cache_tier_dropped_total": "the cache tier is not full",
    "swift_cache_tier_unproven_total": "all entries of the cache tier are proven",
    "swift_cache_tier_rejected_total": "the cache tier keeps all it reads",
    "swift_packed_": "no policy has the packed engine",
    "swift_capacity_full_days": "swift-health --history has not run for days",
    "capacity.prom": "swift-health --history has not run for days",
    "node_filesystem_avail_bytes": "no device is a mount point",
    "node_filesystem_size_bytes": "no device is a mount point",
    'event="quarantines"': "nothing is damaged",
    'event="failures"': "no update fails",
    'event=~".*_failure"': "the sharder does not fail",
    'status=~"5..': "no request fails",
    'status=~"499|5.."': "no request fails",
    'status=~"50[0-6]"': "no request fails",
    'status="507"': "no device is away",
}
_THRESHOLD = re.compile(r"^(.*) (?:==|>|<) [\d.]+$", re.S)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = observed_cluster(tmp_path_factory.mktemp("monitored"))
    cluster.start()
    yield cluster
    cluster.stop()


def expressions():
    """Return all expressions of dashboards and rules, without variables and thresholds, each once."""
    found = {}
    for path in GRAFANA.glob("*.json"):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                text = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".+")
                found[text] = None
    for name in RULES:
        for rule in yaml.safe_load((SAMPLES / name).read_text())["groups"][0]["rules"]:
            threshold = _THRESHOLD.match(rule["expr"])
            assert ("alert" in rule) == bool(threshold)
            found[threshold[1] if threshold else rule["expr"]] = None
    return list(found)


def is_absent(text):
    return any(part in text for part in ABSENT)


def selectors():
    """Return the series in expressions as pairs of name and matchers, without those of recording rules."""
    found = set()
    for expression in expressions():
        for name, _labels in selectors_of(expression):
            matchers = re.findall(rf"(?<![\w:]){name}(?![\w:])(?:\{{([^}}]*)\}})?", expression)
            found |= {(name, each) for each in matchers}
    return {pair for pair in found if ":" not in pair[0]}


def samples_of(cluster):
    """Return the samples of all pages: name, and labels with those of a scrape."""
    pages = [cluster.raw("GET", "/metrics", port=port).body.decode() for port in server_ports(cluster.plan)]
    for node in cluster.plan.node_numbers():
        pages += [path.read_text() for path in daemon_pages(cluster.plan, node)]
    found = {("up", 'instance="a",job="swift"'), ("node_textfile_scrape_error", "")}
    for line in "\n".join(pages).splitlines():
        if line and not line.startswith("#"):
            name, _, labels = line.rpartition(" ")[0].rstrip("}").partition("{")
            found.add((name, f'{labels},instance="a"'))
    return {(name, tuple(re.findall(r'(\w+)="([^"]*)"', labels))) for name, labels in found}


def fits(matchers, labels):
    """Return True if labels satisfy matchers, as in PromQL."""
    have = dict(labels)
    for label, operator, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matchers):
        is_equal = bool(re.fullmatch(value if "~" in operator else re.escape(value), have.get(label, "")))
        if is_equal != operator.startswith("="):
            return False
    return True


@pytest.mark.long
def test_every_series_of_an_expression_is_on_a_page(cluster):
    def is_there(pair):
        return any(name == pair[0] and fits(pair[1], labels) for name, labels in found)

    def between(turn):
        nonlocal found
        put_load(cluster, turn)
        found = samples_of(cluster)

    found = set()
    expected = [pair for pair in selectors() if not is_absent("{".join(pair))]
    assert len(expected) > 40
    assert await_all(is_there, expected, 90, between) == []


def test_the_pages_of_a_node_have_no_sample_twice(cluster):
    cluster.await_true(lambda: len(daemon_pages(cluster.plan, 1)) > 10, "daemons have pages")
    seen = {}
    for path in daemon_pages(cluster.plan, 1):
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                assert seen.setdefault(line.rpartition(" ")[0], path) == path, line


@pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)),
    reason=f"needs {' and '.join(PROGRAMS)} (Debian's packages of these names)",
)
def test_every_expression_returns_series(cluster, tmp_path):
    with Monitoring(cluster, tmp_path) as monitoring:
        expected = [each for each in expressions() if not is_absent(each)]
        assert len(expected) > 60
        without = await_all(monitoring.values, expected, 120, lambda turn: put_load(cluster, turn + 1000))
        assert without == []
        # Those that may be empty are at least valid.
        for expression in filter(is_absent, expressions()):
            monitoring.values(expression)
        assert monitoring.values('up{job=~"swift.*"} == 0') == []
        assert set(monitoring.values("node_textfile_scrape_error")) == {0}
        groups = monitoring.get("rules")["groups"]
        assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
        assert not [each for each in monitoring.get("alerts")["alerts"] if each["state"] == "firing"]
