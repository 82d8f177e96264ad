"""Traces of a real cluster, as a collector receives them."""

import http.client
import time

import pytest

from test.support.cluster import LiveCluster
from test.support.collector import Collector, tree

pytestmark = pytest.mark.process

DISKS = 3
OBJECT = "/{device}/{partition}/{account}/{container}/{object}"
CONTAINER = "/{device}/{partition}/{account}/{container}"


@pytest.fixture(scope="module")
def collector():
    with Collector() as made:
        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, collector):
    cluster = LiveCluster(
        tmp_path_factory.mktemp("traced"),
        nodes=1,
        disks=DISKS,
        reads_locally=False,
        rest_s=LiveCluster.AT_REST_S,
        storage_workers=1,
        proxy_workers=1,
        defaults=f"trace_exporter_url = {collector.url}\ntrace_sample_ratio = 1",
    )
    cluster.start()
    assert cluster.request("PUT", "c").status == 201
    yield cluster
    cluster.stop()


def spans_of(collector, answer, count):
    """Wait for all spans of a transaction and return them."""
    txid = answer.headers["x-trans-id"]

    def find(spans):
        trace = {span.trace for span in spans if span.attributes.get("swift.transaction_id") == txid}
        assert len(trace) <= 1
        found = [span for span in spans if span.trace in trace]
        has_root = any(not span.parent for span in found)
        return found if has_root and len(found) >= count else None

    return collector.wait(find)


def test_the_trace_of_an_upload_is_a_tree_down_to_the_container_rows(cluster, collector):
    # Account and container info is in the cache afterwards.
    cluster.request("PUT", "c/first", body=b"x")
    response = cluster.request("PUT", "c/o", body=b"x" * 100_000)
    assert response.status == 201
    spans = spans_of(collector, response, 1 + DISKS * 4)
    update = ("object-server", "client", f"PUT {OBJECT}", [
        ("container-server", "server", f"PUT {OBJECT}", []),
    ])  # fmt: skip
    put = ("proxy-server", "client", f"PUT {OBJECT}", [
        ("object-server", "server", f"PUT {OBJECT}", [update]),
    ])  # fmt: skip
    assert tree(spans) == [
        ("proxy-server", "server", "PUT /{version}/{account}/{container}/{object}", [put] * DISKS)
    ]
    by_id = {span.id: span for span in spans}
    for span in spans:
        if span.parent:
            assert by_id[span.parent].start <= span.start
        assert not span.failed
        assert span.attributes["swift.transaction_id"] == response.headers["x-trans-id"]
    assert (
        len({span.attributes["swift.device"] for span in spans if span.service == "swift-object-server"})
        == DISKS
    )
    [root] = [span for span in spans if not span.parent]
    assert root.attributes["http.request.body.size"] == 100_000


def test_traces_contain_no_tokens_signatures_or_object_names(cluster, collector):
    refused = cluster.raw("GET", "/v1/AUTH_test/c/private?temp_url_sig=signature&temp_url_expires=9999999999")
    assert refused.status == 401
    spans_of(collector, cluster.request("PUT", "c/private", body=b"x"), 1 + DISKS * 4)
    spans_of(collector, refused, 1)
    sent = b"".join(collector.received)
    for secret in (cluster.token(), "signature", "private"):
        assert secret.encode() not in sent


@pytest.mark.long
def test_a_span_of_a_download_lasts_until_its_body_is_read(cluster, collector):
    cluster.request("PUT", "c/large", body=bytes(48 << 20))
    connection = http.client.HTTPConnection(cluster.host, timeout=60)
    connection.request("GET", "/v1/AUTH_test/c/large", headers={"X-Auth-Token": cluster.token()})
    response = connection.getresponse()
    response.read(1)
    pause_s = 0.5
    time.sleep(pause_s)
    response.read()
    connection.close()
    spans = spans_of(collector, response, 3)
    assert [span.failed for span in spans] == [False] * 3
    # Kernel buffers may hold the rest of the object server's response.
    proxy = [span for span in spans if span.service == "swift-proxy-server"]
    assert [span.kind for span in proxy if span.end - span.start >= pause_s * 1e9] == ["client", "server"]


def test_an_upload_that_the_client_aborts_is_an_error_in_its_trace(cluster, collector):
    connection = http.client.HTTPConnection(cluster.host, timeout=60)
    connection.putrequest("PUT", "/v1/AUTH_test/c/aborted")
    connection.putheader("X-Auth-Token", cluster.token())
    connection.putheader("Content-Length", str(1 << 20))
    connection.endheaders()
    connection.send(bytes(1 << 19))
    connection.close()

    def is_aborted(span):
        return span.attributes.get("http.response.status_code") == 499 and span.failed

    def find(spans):
        roots = [span for span in spans if not span.parent and is_aborted(span)]
        return [span for span in spans if roots and span.trace == roots[0].trace and is_aborted(span)][DISKS:]

    assert collector.wait(find)


def test_a_client_cannot_choose_the_trace_id_or_force_a_trace(cluster, collector):
    trace = "0af7651916cd43dd8448eb211c80319c"
    response = cluster.request("HEAD", "c", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-00"})
    spans = spans_of(collector, response, 3)
    assert trace not in {span.trace for span in spans}


@pytest.mark.long
def test_a_stopping_server_sends_its_last_spans(cluster, collector):
    response = cluster.request("HEAD", "c")
    cluster.kill("proxy", 15)
    try:
        assert spans_of(collector, response, 2)
    finally:
        cluster.restart("proxy")
