"""The page of metrics has every metric of the code; one that cannot be read is an error."""

import re
from pathlib import Path

import pytest

from tools.generate.metrics import Metric, MetricError, all_metrics, metrics_of

ROOT = Path(__file__).parents[3]


def found_in(tmp_path, text):
    path = tmp_path / "module.py"
    path.write_text(f"# metrics\n{text}")
    return list(metrics_of(path, "module.py"))


def test_a_metric_is_found_with_its_labels(tmp_path):
    call = 'metrics.gauge("swift_heat", "Degrees.", device=device, unit="C").set(1)'
    assert found_in(tmp_path, call) == [Metric("swift_heat", "gauge", ("device", "unit"), "Degrees.")]


def test_constants_and_dicts_of_labels_are_followed(tmp_path):
    text = (
        'NAME = "swift_a"\nABOUT = "One."\nx, labels = 1, {"daemon": d}\n'
        "metrics.counter(NAME, ABOUT, **labels)"
    )
    assert found_in(tmp_path, text) == [Metric("swift_a", "counter", ("daemon",), "One.")]


@pytest.mark.parametrize("call", ['counter(made_up(), "x")', 'counter("swift_x", made_up())'])
def test_what_cannot_be_read_is_an_error(tmp_path, call):
    with pytest.raises(MetricError):
        found_in(tmp_path, f"metrics.{call}")


def test_every_name_in_the_code_is_on_the_page_and_has_a_sentence():
    page = (ROOT / "doc/reference/metrics.md").read_text()
    metrics = all_metrics(ROOT)
    for metric in metrics:
        assert f"| `{metric.name}` |" in page
        assert metric.about.endswith("."), metric
    text = "\n".join(path.read_text() for path in (ROOT / "swift").rglob("*.py"))
    written = set(re.findall(r'"(swift_[a-z_]+(?:_total|_seconds|_connections))"', text))
    assert written <= {metric.name for metric in metrics}
