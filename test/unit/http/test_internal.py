"""Which headers stay inside the cluster."""

import pytest

from swift.http.internal import is_internal


@pytest.mark.parametrize(
    "name",
    [
        "x-backend-storage-policy-index",
        "x-backend-anything-new",
        "x-object-sysmeta-slo-etag",
        "x-container-sysmeta-x",
        "x-account-sysmeta-x",
        "x-object-transient-sysmeta-x",
    ],
)
def test_what_servers_tell_each_other_stays_inside(name):
    assert is_internal(name)


@pytest.mark.parametrize("name", ["content-length", "x-object-meta-x", "x-trans-id", "x-back-end", "sysmeta"])
def test_what_clients_send_does_not(name):
    assert not is_internal(name)


def test_names_that_clients_choose_are_not_remembered():
    before = len(is_internal.__self__)
    for number in range(1000):
        is_internal(f"x-object-meta-{number}")
    assert len(is_internal.__self__) == before
