"""Manifests of static large objects are accepted if every segment matches (swift/middleware/slo)."""

import json

from swift.http import fields
from swift.http.request import Request
from test.support.filters import ETAG, PUT
from test.support.sim import Answer


def test_segments_without_read_access_cannot_be_named(slo):
    slo.denied.add(("HEAD", "/a/s/one"))
    response = slo.upload("/a/c/n", [{"path": "/s/one"}])
    assert (response.status, response.body) == (400, b"Errors:\n/s/one, 403 Forbidden\n")


def test_other_accounts_cannot_be_reached_from_a_manifest(slo, sim):
    sim("PUT", "/b/c")
    sim("PUT", "/b/c/o", {}, b"secret")
    for path in ("/../b/c/o", "../b/c/o", "/%2e%2e/b/c/o"):
        assert slo.upload("/a/c/n", [{"path": path}]).body.endswith(b"404 Not Found\n")


def test_each_segment_is_checked_once(slo, sim):
    slo.upload("/a/c/n", [{"path": "/s/one"}, {"path": "s/one", "range": "1-2"}, {"path": "/s/two"}])
    heads = [
        path.rpartition("/")[2]
        for kind, _n, method, path, _h in sim.transport.requests
        if (kind, method) == ("object", "HEAD")
    ]
    assert sorted(heads) == ["one", "two"]


def test_limits_are_enforced(make_slo):
    small = make_slo(max_manifest_segments="2", max_manifest_size="200")
    one = {"path": "/s/one"}
    assert small.upload("/a/c/n", [one, one]).status == 201
    response = small.upload("/a/c/n", [one, one, one])
    assert (response.status, response.body) == (413, b"Number of object-backed segments must be <= 2")
    inline = {"data": "YQ=="}
    assert small.upload("/a/c/n", [one, inline, inline, inline]).status == 201
    response = small.upload("/a/c/n", [one, {"data": "YWFh" * 60}])
    assert (response.status, response.body) == (413, b"Manifest File > 200 bytes")
    unannounced = {"transfer-encoding": "chunked"}
    assert small("PUT", "/a/c/n" + PUT, unannounced, b" " * 300).status == 413


def test_a_manifest_of_the_s3_api_can_exceed_the_size_limit(make_slo):
    small = make_slo(max_manifest_size="20")
    manifest, ours = [{"path": "/s/one"}, {"path": "/s/two"}], {fields.SYSMETA_S3_UPLOAD_ID: "u"}
    assert small.upload("/a/c/n", manifest).status == 413
    assert small.upload("/a/c/n", manifest, ours).status == 201


def test_the_container_row_has_size_and_etag_of_the_whole_object(slo, sim):
    (row,) = json.loads(sim("GET", "/a/c?format=json").body)
    assert (row["bytes"], row["content_type"]) == (15, "v/x")
    assert row["hash"].endswith(f"; slo_etag={ETAG}")
    (row,) = json.loads(slo("GET", "/a/c?format=json").body)
    assert row["slo_etag"] == f'"{ETAG}"'
    assert len(row["hash"]) == 32


def test_row_values_of_other_filters_are_kept(slo, sim):
    override = {"x-object-sysmeta-container-update-override-etag": "; s3_etag=abc"}
    slo.upload("/a/c/o", [{"path": "/s/one"}], override)
    rows = {row["name"]: row["hash"] for row in json.loads(sim("GET", "/a/c?format=json").body)}
    assert rows["o"][32:].startswith("; s3_etag=abc; slo_etag=")


def test_another_filter_can_refuse_a_manifest(slo, sim):
    seen = []

    def hook(entries):
        seen.extend(entries)
        return [("/s/one", "Not good enough")]

    env = {"swift.callback.slo_manifest_hook": hook, "swift.cache": sim.cache}
    body = json.dumps([{"path": "/s/one"}]).encode()
    request = Request(
        "PUT", "/v1/a/c/h", {"content-length": str(len(body))}, body, query="multipart-manifest=put", env=env
    )
    response = Answer(slo.filter.handle(request))
    assert (response.status, response.body) == (400, b"Errors:\n/s/one, Not good enough\n")
    assert [entry["name"] for entry in seen] == ["/s/one"]


def test_a_type_is_guessed_where_none_is_given(slo):
    slo.upload("/a/c/x.txt", [{"path": "/s/one"}], {"x-detect-content-type": "true", "content-type": "a/b"})
    assert slo("HEAD", "/a/c/x.txt").headers["content-type"] in ("text/plain", "application/octet-stream")
