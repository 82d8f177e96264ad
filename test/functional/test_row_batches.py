"""Rows of concurrent uploads reach the container servers together (doc/formats/row-batches.md)."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from swift.aio.make import make_cluster
from test.support.cluster import LiveCluster


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    made = LiveCluster(tmp_path_factory.mktemp("rows") / "data", nodes=3, replicas=3)
    try:
        make_cluster(made.plan)
        made.start()
        yield made
    finally:
        made.stop()


def test_listings_show_every_row_that_was_sent_in_a_batch(live):
    live.request("PUT", "c")
    names = [f"o{number:03}" for number in range(96)]
    deleted = names[::3]
    with ThreadPoolExecutor(16) as clients:
        put = clients.map(lambda name: live.request("PUT", f"c/{name}", body=name.encode()).status, names)
        assert set(put) == {201}
        gone = clients.map(lambda name: live.request("DELETE", f"c/{name}").status, deleted)
        assert set(gone) == {204}
    rows = json.loads(live.request("GET", "c?format=json").body)
    assert [row["name"] for row in rows] == [name for name in names if name not in deleted]
    batches = [line for line in live.log_text().splitlines() if '"BATCH /' in line]
    assert batches, "uploads at the same time"
    assert all('" 200 ' in line and ",tx" in line for line in batches)
