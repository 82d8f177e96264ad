"""The page of metrics has every metric and event that the code declares."""

import re
from pathlib import Path

from swift.telemetry.events import Event, LabelledEvent
from tools.generate.metrics import all_metrics, declared, metrics_text

ROOT = Path(__file__).parents[3]


def test_every_name_in_the_code_is_on_the_page_and_has_a_sentence():
    page = (ROOT / "doc/reference/metrics.md").read_text()
    metrics = all_metrics(ROOT)
    for metric in metrics:
        assert f"| `{metric.name}` |" in page
        assert metric.about.endswith("."), metric
    text = "\n".join(path.read_text() for path in (ROOT / "swift").rglob("*.py"))
    written = set(re.findall(r'"(swift_[a-z_]+(?:_total|_seconds|_connections))"', text))
    assert written <= {metric.name for metric in metrics}


def test_every_event_is_on_the_page_and_has_a_sentence():
    page = metrics_text(ROOT)
    events = [event for kind in (Event, LabelledEvent) for _module, event in declared(ROOT, kind)]
    assert len(events) > 20
    for event in events:
        assert f"| `{event.name}` |" in page and event.about.endswith("."), event
    sent = "\n".join(path.read_text() for path in (ROOT / "swift").rglob("*.py") if path.name != "events.py")
    direct = re.findall(r"statsd\.(?:increment|timing)\w*\([^)]*", sent)
    assert all("event" in call or "name" in call for call in direct), direct
