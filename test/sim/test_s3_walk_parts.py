"""The lifecycle daemon removes the parts of one upload and of no other."""

import pytest

from swift.s3.daemons.walk import DaemonObjectClient, remove_parts
from test.support.s3_fixtures import SEGMENTS, LifecycleFixture


@pytest.fixture
def bench(sim, tmp_path):
    made = LifecycleFixture(sim, tmp_path / "rig")
    made.client.create(SEGMENTS)
    return made


def test_parts_of_an_upload_with_a_longer_key_are_kept(bench):
    for name in ("o/id/1", "o/id/2", "o/id/other", "o/id/other/1"):
        bench.client.put(SEGMENTS._replace(obj=name), b"")
    assert remove_parts(bench.client, SEGMENTS, "o", "id", {("b+segments", "o/id/2")}) == [204]
    assert bench.names(SEGMENTS) == ["o/id/2", "o/id/other", "o/id/other/1"]


def test_the_daemon_reads_existing_and_missing_objects(bench):
    objects = DaemonObjectClient(bench.client, "a")
    assert objects.request("PUT", "b+segments", "o", body=b"body").is_success
    assert objects.request("GET", "b+segments", "o").body == b"body"
    assert objects.request("GET", "b+segments", "p").status == 404
