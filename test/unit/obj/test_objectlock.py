"""What an object server refuses for a lock's sake, and what it takes from other nodes."""

import time

import pytest

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.http.headers import title_case
from swift.http.objectlock import COMPLIANCE, MAY_WITHDRAW, ObjectLock
from swift.http.response import HTTPError
from swift.obj.request import check_change, check_end, check_removal, guard_of
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectState
from swift.wire import reservation

NAME = title_case(fields.TRANSIENT_S3_LOCK)
NOW = time.time()
LOCK = ObjectLock(COMPLIANCE, int(NOW) + 3600)
STORED = Timestamp(NOW - 10)


def state(kind=LIVE, lock=LOCK):
    metadata = {} if lock is None else {NAME: str(lock)}
    return ObjectState(kind=kind, metadata=metadata, timestamp=STORED, data_timestamp=STORED)


def guard(at_s=NOW, **headers):
    return guard_of({name.replace("_", "-"): value for name, value in headers.items()}, Timestamp(at_s))


@pytest.mark.parametrize("kind", [LIVE, EXPIRED])
def test_what_is_locked_is_not_removed_expired_or_not(kind):
    with pytest.raises(HTTPError) as caught:
        check_removal(state(kind), guard())
    assert caught.value.response.status == 403


@pytest.mark.parametrize(("kind", "lock"), [(LIVE, None), (ABSENT, None), (DELETED, LOCK)])
def test_nothing_else_is_held_up(kind, lock):
    check_removal(state(kind, lock), guard())


def test_a_sender_cannot_say_that_it_is_later_than_it_is():
    with pytest.raises(HTTPError):
        check_removal(state(), guard(NOW + 10**6))
    check_removal(state(lock=ObjectLock(COMPLIANCE, int(NOW) - 1)), guard())


def test_what_other_nodes_have_decided_is_taken():
    check_removal(state(), guard(x_backend_replication="true"))
    check_change(state(), {}, guard(x_backend_replication="true"))


def test_what_was_never_acknowledged_may_be_withdrawn():
    check_removal(state(), guard(x_backend_object_lock=MAY_WITHDRAW))


def test_metadata_without_the_lock_does_not_take_its_place():
    with pytest.raises(HTTPError):
        check_change(state(), {"X-Object-Meta-A": "1"}, guard())
    check_change(state(), {NAME: str(LOCK)}, guard())
    check_change(state(lock=None), {}, guard())


def test_a_writer_who_asks_for_promises_hears_by_which_version_it_was_judged():
    with pytest.raises(HTTPError) as caught:
        check_removal(state(), guard(**{reservation.OFFER.replace("-", "_"): "yes"}))
    assert reservation.parse_predecessor(caught.value.response.headers) == STORED


def test_what_is_locked_does_not_expire():
    with pytest.raises(HTTPError) as caught:
        check_end({NAME: str(LOCK)}, int(NOW) + 10, guard())
    assert caught.value.response.status == 400
    check_end({NAME: str(LOCK)}, None, guard())
    check_end({}, int(NOW) + 10, guard())
    check_end({NAME: str(ObjectLock())}, int(NOW) + 10, guard())
