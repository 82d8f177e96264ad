"""Rules in the metadata of a container: they come back, fit into headers, and what is broken is no rule."""

import random
import string

import pytest

from swift.s3.auth.session import sysmeta_of
from swift.s3.config.codec import DamagedConfiguration
from swift.s3.config.lifecycle import rules_of, stored_rules
from swift.s3.config.lifecyclerules import LifecycleRule, Transition
from swift.s3.errors import S3Error

SOME = (
    LifecycleRule("a", days=1),
    LifecycleRule(
        "ü/&", is_enabled=False, prefix="p", tags=(("k", "v"),), greater=1, less=5, form="and", date=86400
    ),
    LifecycleRule("moves", transitions=(Transition("A", 0), Transition("B", date=86400))),
    LifecycleRule("former", noncurrent_transitions=(Transition("A", 3, newer=2),)),
    LifecycleRule("c", ends_markers=True, noncurrent_days=3, newer_versions=4, abort_days=5, form="none"),
)


def test_rules_come_back_as_they_were():
    headers = stored_rules(SOME)
    assert rules_of(sysmeta_of(headers)) == SOME


def test_a_thousand_rules_fit_and_shorter_ones_leave_nothing_of_longer_ones():
    rules = tuple(
        LifecycleRule(f"rule number {n}", prefix=f"folder/{n}/", days=n + 1, form="filter")
        for n in range(1000)
    )
    headers = stored_rules(rules)
    assert rules_of(sysmeta_of(headers)) == rules
    assert all(len(text) <= 4000 for text in headers.values())
    assert stored_rules(SOME).keys() == headers.keys() == stored_rules(()).keys()
    assert set(stored_rules(()).values()) == {""}


def test_what_has_no_room_is_refused():
    rng = random.Random(1)
    rules = [LifecycleRule("".join(rng.choices(string.printable[:90], k=255)), days=1) for _ in range(1000)]
    with pytest.raises(S3Error):
        stored_rules(rules)


@pytest.mark.parametrize("text", ["!", "AAAA", "eJyLBgAAXgBe"])
def test_rules_that_cannot_be_read_are_an_error(text):
    with pytest.raises(DamagedConfiguration, match="lifecycle configuration is damaged"):
        rules_of({"s3api-lifecycle-0": text})


def test_without_a_first_piece_there_are_no_rules():
    assert rules_of({"s3api-lifecycle-0": "", "s3api-lifecycle-7": "AAAA"}) == ()


def test_damaged_rules_hide_no_object_and_are_replaced_by_new_ones(s3):
    assert s3("PUT", "/bucket/key", {}, b"x").status == 200
    damage = {"x-container-sysmeta-s3api-lifecycle-0": "AAAA"}
    assert s3.sim("POST", "/AUTH_test/bucket", damage).status == 204
    s3.sim.cache.values.clear()
    answer = s3("GET", "/bucket?lifecycle")
    assert answer.status == 500 and b"lifecycle configuration is damaged" in answer.body
    assert s3("GET", "/bucket/key").body == b"x"
    assert s3("DELETE", "/bucket?lifecycle").status == 204
    assert s3("GET", "/bucket?lifecycle").code == "NoSuchLifecycleConfiguration"
