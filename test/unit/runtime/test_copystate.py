"""What is left of misplaced and missing copies, and how recon and Prometheus hear of it."""

import pytest

from swift.runtime.copystate import (
    DeviceCopies,
    completed_pass_facts,
    device_copies_facts,
    other_replicas_after,
    running_pass_facts,
)
from swift.runtime.daemon import PassReport
from swift.runtime.sharerun import ShareResult
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry


def counts(copies, *names):
    return [copies.as_json()[name] for name in names]


def test_what_was_found_is_left_until_it_is_done():
    copies = DeviceCopies("digest")
    copies.add_unit(1, is_misplaced=True)
    copies.add_unit(2, lacking=["10.0.0.1/sda", "10.0.0.2/sda"])
    copies.add_unit(3, lacking=["10.0.0.1/sda"])
    copies.mark_failed(3)
    copies.mark_failed(4)
    assert counts(copies, "misplaced", "missing", "failed", "done") == [1, 3, 2, 0]
    assert counts(copies, "missing_on") == [{"10.0.0.1/sda": 2, "10.0.0.2/sda": 1}]
    for unit in (1, 2, 3, 4, 5):
        copies.mark_done(unit)
    assert counts(copies, "misplaced", "missing", "failed", "done") == [0, 0, 0, 3]
    copies.set_missing_count("own", "10.0.0.9/sda", 2)
    assert counts(copies, "missing") == [2]
    copies.set_missing_count("own", "10.0.0.9/sda", 0)
    assert counts(copies, "missing", "missing_on") == [0, {}]


def test_a_pass_over_handoffs_only_says_so():
    assert "handoffs_only" not in DeviceCopies("digest").as_json()
    assert DeviceCopies("digest", is_partial=True).as_json()["handoffs_only"] is True


@pytest.fixture
def passed():
    copies = DeviceCopies("digest")
    copies.add_unit(1, is_misplaced=True)
    facts = device_copies_facts({"object": copies})
    return PassReport({"sda": ShareResult(facts), "sdb": ShareResult({"more": 1})}, 60.0, 1000.0)


def test_a_pass_reports_its_devices_by_ring(passed):
    telemetry = Telemetry(silent_log())
    facts = completed_pass_facts(passed, telemetry)
    state = facts["copy_state"]["object"]
    assert (state["began"], state["ended"], list(state["devices"])) == (940.0, 1000.0, ["sda"])
    assert state["devices"]["sda"]["misplaced"] == 1
    assert facts["copy_progress"] == {"object": {}}, "the end of a pass removes what was told during it"
    page = telemetry.metrics.render()
    assert 'swift_copies_misplaced{device="sda",ring="object"} 1' in page
    assert 'swift_copies_missing{device="sda",ring="object"} 0' in page


def test_a_pass_under_way_leaves_the_last_one_as_it_was(passed):
    facts = running_pass_facts(passed, Telemetry(silent_log()))
    assert list(facts) == ["copy_progress"]
    assert facts["copy_progress"]["object"]["now"] == 1000.0


def test_a_pass_without_rings_reports_nothing():
    nothing = PassReport({}, 1.0, 2.0)
    assert (
        completed_pass_facts(nothing, Telemetry(silent_log()))
        == running_pass_facts(nothing, Telemetry(silent_log()))
        == {}
    )


def test_the_other_replicas_come_in_order_after_this_one():
    assert list(other_replicas_after(2, 4)) == [3, 0, 1]
    assert list(other_replicas_after(0, 1)) == []
