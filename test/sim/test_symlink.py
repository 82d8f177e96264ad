"""Symbolic links over the simulated cluster (swift/middleware/symlink.py)."""

import json
from hashlib import md5

import pytest

from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.middleware.dlo import Dlo, DloSettings
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.telemetry.log import silent_log
from test.support.filters import FilterFixture

DATA = b"target data"
ETAG = md5(DATA).hexdigest()


class Front(FilterFixture):
    """The symlink filter below large objects."""

    def __init__(self, sim, **options):
        self.links = Symlink(sim.app, SymlinkSettings.parse(options))
        inner = Dlo(self.links, DloSettings(), 10000, silent_log())
        super().__init__(sim, Slo(inner, SloSettings(), sim.hasher, TypeGuesser("/none", ()), silent_log()))

    def link(self, path, target, **headers):
        sent = {"x-symlink-target": target, **{name.replace("_", "-"): v for name, v in headers.items()}}
        return self("PUT", path, sent)


@pytest.fixture
def front(sim):
    assert sim("PUT", "/a/t").status == 201
    assert sim("PUT", "/a/t/o", {"content-type": "t/x"}, DATA).status == 201
    return Front(sim)


def test_a_link_reads_as_its_target(front):
    assert front.link("/a/c/l", "t/o").status == 201
    response = front("GET", "/a/c/l")
    assert (response.status, response.body, response.headers["content-type"]) == (200, DATA, "t/x")
    assert response.headers["content-location"] == "/v1/a/t/o"
    itself = front("GET", "/a/c/l?symlink=get")
    assert (itself.body, itself.headers["content-type"]) == (b"", "application/symlink")
    assert itself.headers["x-symlink-target"] == "t/o"


@pytest.mark.parametrize("policy", ["gold", "ec32"])
@pytest.mark.parametrize(
    ("headers", "status", "body"),
    [
        ({"range": "bytes=0-5"}, 206, DATA[:6]),
        ({"range": "bytes=99-"}, 416, None),
        ({"if-match": ETAG}, 200, DATA),
        ({"if-match": "x"}, 412, b""),
        ({"if-none-match": ETAG}, 304, b""),
        ({"if-none-match": md5(b"").hexdigest()}, 200, DATA),
    ],
)
def test_ranges_and_conditions_refer_to_the_target(front, sim, policy, headers, status, body):
    assert sim("PUT", "/a/p", {"x-storage-policy": policy}).status == 201
    front.link("/a/p/l", "t/o")
    response = front("GET", "/a/p/l", headers)
    assert response.status == status
    assert body is None or response.body == body
    assert response.headers["content-location"] == "/v1/a/t/o"


def test_a_static_symlink_resolves_to_one_version_only(front, sim):
    assert front.link("/a/c/l", "t/o", x_symlink_target_etag="x").status == 409
    assert front.link("/a/c/l", "t/none", x_symlink_target_etag=ETAG).status == 409
    assert sim("HEAD", "/a/c/l").status == 404
    assert front.link("/a/c/l", "t/o", x_symlink_target_etag=f'"{ETAG}"').status == 201
    assert front("GET", "/a/c/l").body == DATA
    sim("PUT", "/a/t/o", {}, b"other")
    for headers in ({}, {"if-none-match": "*"}, {"range": "bytes=0-1"}, {"range": "bytes=50-"}):
        assert front("GET", "/a/c/l", headers).status == 409
    assert front("HEAD", "/a/c/l?symlink=get").headers["x-symlink-target-etag"] == ETAG


def test_a_static_link_may_lead_to_a_static_link_of_the_same_etag(front):
    front.link("/a/c/l1", "t/o", x_symlink_target_etag=ETAG)
    assert front.link("/a/c/l2", "c/l1", x_symlink_target_etag=md5(b"").hexdigest()).status == 409
    assert front.link("/a/c/l2", "c/l1", x_symlink_target_etag=ETAG).status == 201
    itself = front("HEAD", "/a/c/l2?symlink=get").headers
    assert (itself["content-type"], itself["x-symlink-target-bytes"]) == ("t/x", str(len(DATA)))
    assert front("GET", "/a/c/l2").body == DATA


def test_an_unreadable_chain_of_symlinks_cannot_be_extended(front):
    front.link("/a/c/l1", "t/o", x_symlink_target_etag=ETAG)
    for n in (2, 3):
        assert front.link(f"/a/c/l{n}", f"c/l{n - 1}", x_symlink_target_etag=ETAG).status == 201
    assert front.link("/a/c/l4", "c/l3", x_symlink_target_etag=ETAG).status == 409
    front.denied.add("/a/t/o")
    assert front.link("/a/c/l5", "c/l1", x_symlink_target_etag=ETAG).status == 403


def test_a_static_symlink_to_a_dynamic_one_refers_to_the_symlink(front):
    front.link("/a/c/dynamic", "t/o")
    assert front.link("/a/c/l", "c/dynamic", x_symlink_target_etag=ETAG).status == 409
    assert front.link("/a/c/l", "c/dynamic", x_symlink_target_etag=md5(b"").hexdigest()).status == 201


def test_the_row_of_a_static_symlink_has_the_etag_of_the_large_object(front, sim):
    sim("PUT", "/a/t/seg", {}, b"0000")
    manifest = b'[{"path": "/t/seg"}]'
    assert front("PUT", "/a/t/big?multipart-manifest=put", {}, manifest).status == 201
    etag = front("HEAD", "/a/t/big").headers["x-manifest-etag"]
    assert front.link("/a/c/l", "t/big", x_symlink_target_etag=etag).status == 201
    (row,) = json.loads(front("GET", "/a/c?format=json").body)
    assert row["symlink_etag"] == etag
    assert row["slo_etag"] == f'"{md5(md5(b"0000").hexdigest().encode()).hexdigest()}"'


def test_the_number_of_followed_symlinks_is_limited(front):
    front.link("/a/c/l1", "t/o")
    for n in range(2, 5):
        front.link(f"/a/c/l{n}", f"c/l{n - 1}")
    assert front("GET", "/a/c/l2").body == DATA
    assert front("GET", "/a/c/l3").status == 409
    longer = Front(front.sim, symloop_max="3")
    assert longer("GET", "/a/c/l3").body == DATA
    assert longer("GET", "/a/c/l4").status == 409


def test_a_cycle_of_symlinks_is_an_error(front):
    extend = {"x-object-sysmeta-symloop-extend": "true"}
    front("PUT", "/a/c/x", {"x-symlink-target": "c/y", **extend})
    front("PUT", "/a/c/y", {"x-symlink-target": "c/x", **extend})
    front.sim.transport.requests.clear()
    assert front("GET", "/a/c/x").status == 409
    assert len(front.sim.asked("object")) == 4, "one more than usual"


def test_a_symlink_to_itself_is_refused(front):
    for target in ("c/l", "c%2Fl", "%63/l"):
        assert front.link("/a/c/l", target).body == b"Symlink cannot target itself"
    assert front.link("/a/c/l", "c/l", x_symlink_target_account="a").status == 400
    assert front.link("/a/c/l", "c/l", x_symlink_target_account="b").status == 201


def test_a_target_is_read_with_the_callers_rights(front):
    front.link("/a/c/l", "t/o")
    front.denied.add("/a/t/o")
    assert front("GET", "/a/c/l").status == 403
    assert front("HEAD", "/a/c/l?symlink=get").status == 200
    assert front.link("/a/c/s", "t/o", x_symlink_target_etag=ETAG).status == 403


def test_a_symlink_to_a_reserved_name_is_not_followed(front, sim):
    reserved = {"x-backend-allow-reserved-names": "true"}
    assert sim("PUT", "/a/%00hidden", reserved).status == 201
    assert sim("PUT", "/a/%00hidden/%00o", reserved, b"secret").status == 201
    assert front.link("/a/c/l", "%00hidden/%00o").status == 201
    assert front("GET", "/a/c/l").status == 412
    mark = {"x-object-sysmeta-allow-reserved-names": "true"}
    front("PUT", "/a/c/l", {"x-symlink-target": "%00hidden/%00o", **mark})
    assert front("GET", "/a/c/l").body == b"secret", "unless another filter made it"


def test_a_post_changes_the_symlink_and_returns_307(front, sim):
    front.link("/a/c/l", "t/o")
    response = front("POST", "/a/c/l", {"x-object-meta-a": "1"})
    assert (response.status, response.headers["location"]) == (307, "/v1/a/t/o")
    assert "x-symlink-target-etag" not in response.headers
    front.link("/a/c/static", "t/o", x_symlink_target_etag=ETAG)
    response = front("POST", "/a/c/static", {"x-object-meta-a": "1"})
    assert (response.status, response.headers["x-symlink-target-etag"]) == (307, ETAG)
    assert front("HEAD", "/a/c/l?symlink=get").headers["x-object-meta-a"] == "1"
    assert "x-object-meta-a" not in sim("HEAD", "/a/t/o").headers
    assert front("POST", "/a/t/o", {"x-object-meta-a": "1"}).status == 202


def test_a_link_in_another_account_leads_to_the_segments_there(front, sim):
    assert sim("PUT", "/b/c").status == 201
    manifest = json.dumps([{"path": "/t/o"}]).encode()
    assert front("PUT", "/a/t/slo?multipart-manifest=put", {}, manifest).status == 201
    sim("PUT", "/a/t/dlo", {"x-object-manifest": "t/o"})
    for name in ("slo", "dlo"):
        assert front.link(f"/b/c/{name}", f"t/{name}", x_symlink_target_account="a").status == 201
        assert front("GET", f"/b/c/{name}").body == DATA
        assert front("HEAD", f"/b/c/{name}").headers["content-length"] == str(len(DATA))
        assert front("GET", f"/b/c/{name}", {"range": "bytes=1-2"}).body == DATA[1:3]


def test_manifests_behind_symlinks_are_resolved_in_their_account(front, sim):
    assert sim("PUT", "/b/t").status == 201
    assert sim("PUT", "/b/t/o", {}, b"of the same name").status == 201
    manifest = json.dumps([{"path": "/t/o"}]).encode()
    assert front("PUT", "/a/t/slo?multipart-manifest=put", {}, manifest).status == 201
    assert front.link("/b/t/l", "t/slo", x_symlink_target_account="a").status == 201
    outer = json.dumps([{"path": "/t/l"}]).encode()
    assert front("PUT", "/b/t/outer?multipart-manifest=put", {}, outer).status == 201
    assert front("GET", "/b/t/outer").body == DATA
    front.denied.add("/a/t/o")
    for query in ("multipart-manifest=delete", "multipart-manifest=delete&async=on"):
        front("DELETE", f"/b/t/l?{query}")
    front.denied.clear()
    assert sim("GET", "/b/t/o").body == b"of the same name"
    assert sim("GET", "/a/t/o").body == DATA


def test_listings_show_the_targets_of_symlinks(front, sim):
    front.link("/a/c/d", "t/%C3%A9%20x")
    front.link("/a/c/s", "t/o", x_symlink_target_etag=ETAG, x_symlink_target_account="a")
    rows = json.loads(front("GET", "/a/c?format=json").body)
    assert [(row["bytes"], row["hash"]) for row in rows] == [(0, md5(b"").hexdigest())] * 2
    assert rows[0]["symlink_path"] == "/v1/a/t/%C3%A9%20x"
    assert (rows[1]["symlink_path"], rows[1]["symlink_etag"], rows[1]["symlink_bytes"]) == (
        "/v1/a/t/o",
        ETAG,
        len(DATA),
    )


@pytest.mark.parametrize("target", ["", "t", "/t/o", "t/", "//", "t/%ff", "%c3/o"])
def test_a_malformed_target_is_412_and_creates_nothing(front, sim, target):
    assert front.link("/a/c/l", target).status == 412
    assert sim("HEAD", "/a/c/l").status == 404


def test_a_link_has_no_bytes_of_its_own(front, sim):
    assert front("PUT", "/a/c/l", {"x-symlink-target": "t/o"}, b"x").status == 400
    chunked = {"x-symlink-target": "t/o", "transfer-encoding": "chunked"}
    assert front("PUT", "/a/c/l", chunked, b"x").status == 400
    assert sim("HEAD", "/a/c/l").status == 404


class Synced(Front):
    """Requests with the rights that container sync's filter grants."""

    def open(self, method, path, headers=None, body=b""):
        target, _, query = path.partition("?")
        sent = {"content-length": str(len(body)), **(headers or {})}
        env = {"swift.cache": self.sim.cache, "swift.symlink_override": True}
        return self.filter.handle(Request(method, f"/v1{target}", sent, body, query=query, env=env))


@pytest.mark.parametrize("static", [False, True])
def test_container_sync_creates_a_symlink_without_checking_its_target(front, sim, static):
    sent = {"x-symlink-target": "t/none%20yet", "x-symlink-target-account": "b", "content-type": "t/l"}
    if static:
        sent |= {"x-symlink-target-etag": ETAG, "x-symlink-target-bytes": "11"}
    synced = Synced(sim)
    assert synced("PUT", "/a/c/l", sent).status == 201
    for asked in (front, synced):
        itself = asked("HEAD", "/a/c/l?symlink=get").headers
        assert {name: itself[name] for name in sent} == sent
    (row,) = json.loads(front("GET", "/a/c?format=json").body)
    assert row["symlink_path"] == "/v1/b/t/none%20yet"
    assert row.get("symlink_bytes") == (11 if static else None)
    # A copy of the symlink itself does not follow it.
    assert synced("HEAD", "/a/c/l").status == 200
    assert front("HEAD", "/a/c/l").status == 404


@pytest.mark.parametrize("size", [None, "", "-1", "x"])
def test_a_static_link_without_a_size_is_stored_without(front, sim, size):
    sent = {"x-symlink-target": "t/o", "x-symlink-target-etag": ETAG}
    if size is not None:
        sent["x-symlink-target-bytes"] = size
    assert Synced(sim)("PUT", "/a/c/l", sent).status == 201
    assert "x-symlink-target-bytes" not in front("HEAD", "/a/c/l?symlink=get").headers
    assert front("GET", "/a/c/l").body == DATA


def test_container_sync_refuses_an_invalid_symlink(front, sim):
    for target in ("t", "/t/o", "c/l"):
        assert Synced(sim)("PUT", "/a/c/l", {"x-symlink-target": target}).status in (400, 412)
    assert front("HEAD", "/a/c/l?symlink=get").status == 404
