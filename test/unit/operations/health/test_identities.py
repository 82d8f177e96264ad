"""swift-health reports damaged records of users and keys where a cluster has them."""

import pytest

from swift.identity.admin.damage import RecordCheck
from swift.operations.health.evaluate import ClusterSnapshot, Severity, evaluate
from swift.operations.health.identities import RECHECK_S, IdentityState, IdentityWatch


def health_of(state):
    return evaluate((), {}, ClusterSnapshot(identities=state), 0.0)


def test_damaged_records_are_a_warning_that_names_them():
    health = health_of(IdentityState(RecordCheck(("users/t:bob: no JSON",), 9, 9)))
    (problem,) = health.problems
    assert problem.level is Severity.WARNING
    assert problem.text == "1 record of users and keys damaged: users/t:bob: no JSON"
    assert health.facts["damaged_identities"] == ["users/t:bob: no JSON"]
    (problem,) = health_of(IdentityState(RecordCheck(("a", "b"), 9, 12))).problems
    assert problem.text == "2 records of users and keys damaged of 9 that were read: a, b"


def test_records_that_are_in_order_or_not_there_are_no_problem():
    for state in (None, IdentityState(RecordCheck((), 9, 12))):
        health = health_of(state)
        assert (health.problems, health.facts["damaged_identities"]) == ([], [])


def test_records_that_cannot_be_read_leave_the_health_unknown():
    health = health_of(IdentityState(RecordCheck((), 0, 0), "cannot list users"))
    assert health.level is Severity.UNKNOWN


@pytest.mark.parametrize("names", [(), ("internal-client.conf",), ("swiftauth.key",)])
def test_a_node_without_the_key_or_a_pipeline_has_no_records(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("")
    assert IdentityWatch(str(tmp_path)).look() is None


def test_a_look_is_not_repeated_at_once(tmp_path):
    for name in ("internal-client.conf", "swiftauth.key"):
        (tmp_path / name).write_text("")
    times = [0.0]
    watch = IdentityWatch(str(tmp_path), lambda: times[0])
    first = watch.look()
    assert "swiftauth.key" in first.error
    assert watch.look() is first
    times[0] += RECHECK_S + 1
    assert watch.look() is not first
