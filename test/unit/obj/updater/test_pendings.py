"""Where a kept update goes, and that it does not go in circles (replication.md §6)."""

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.obj.updater.delivery import container_of, redirected
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate, PendingUpdate, UpdateRef

REF = UpdateRef("sda", Policy(0, "gold", is_default=True), "name")


@pytest.fixture
def pending():
    update = AsyncUpdate("PUT", EntityPath("a", "c", "o"), {"x-size": "1"})
    return PendingUpdate(REF, Timestamp("1795000000.00000"), update, successes=(1, 2))


def test_an_update_goes_to_its_container(pending):
    assert container_of(pending) == "a/c"


def test_a_redirected_one_goes_to_the_shard_and_nobody_there_has_it_yet(pending):
    there = redirected(pending, ".shards_a/c-1")
    assert container_of(there) == ".shards_a/c-1"
    assert (there.successes, there.redirects) == ((), (".shards_a/c-1",))
    further = redirected(there, ".shards_a/c-2")
    assert further.redirects == (".shards_a/c-1", ".shards_a/c-2")
    assert (pending.successes, pending.redirects) == ((1, 2), ())


def test_one_that_is_sent_in_a_circle_starts_over_at_its_container(pending):
    there = redirected(redirected(pending, "a/x"), "a/y")
    again = redirected(there, "a/x")
    assert container_of(again) == "a/c"
    assert (again.successes, again.redirects) == ((), ())
