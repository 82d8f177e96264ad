"""Former objects that clients see, over the simulated cluster (middleware.md §9.1)."""

import json
from types import SimpleNamespace

import pytest

from swift.base.limits import Limits
from swift.compose import Cluster
from swift.http import fields
from swift.http.mediatypes import TypeGuesser
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.telemetry.log import silent_log
from test.support.filters import FilterFixture
from test.support.sim import node_port


class Front(FilterFixture):
    """The filter in its place."""

    def __init__(self, sim, *, enabled=True):
        self.keeper = VersionedWrites(
            Symlink(sim.app, SymlinkSettings()), VersionedWritesSettings(allow_versioned_writes=enabled)
        )
        large = Slo(self.keeper, SloSettings(), sim.hasher, TypeGuesser("/none", ()), silent_log())
        super().__init__(sim, large)

    def kept(self):
        return [row["name"] for row in json.loads(self.sim("GET", "/a/old?format=json").body)]


@pytest.fixture
def front(sim):
    assert sim("PUT", "/a/old").status == 201
    front = Front(sim)
    assert front("PUT", "/a/v", {"x-versions-location": "old"}).status == 201
    return front


def test_a_stack_gives_back_what_was_there_with_all_that_was_said_of_it(front):
    for n in (1, 2, 3):
        headers = {"x-object-meta-n": str(n), "content-type": f"t/{n}", "x-object-sysmeta-s": str(n)}
        assert front("PUT", "/a/v/o", headers, b"%d" % n).status == 201
    assert len(front.kept()) == 2
    for n in (2, 1):
        assert front("DELETE", "/a/v/o").status == 204
        answer = front("GET", "/a/v/o")
        shown = [answer.headers[name] for name in ("x-object-meta-n", "content-type", "x-object-sysmeta-s")]
        assert (answer.body, shown) == (b"%d" % n, [str(n), f"t/{n}", str(n)])
    assert front("DELETE", "/a/v/o").status == 204
    assert front("GET", "/a/v/o").status == 404
    assert front.kept() == []


def test_object_lock_keeps_the_legacy_versions_out_but_lets_go_of_them(front):
    assert front("POST", "/a/v", {fields.SYSMETA_S3_LOCK_RULE: "on"}).status == 204
    for headers in ({"x-history-location": "old"}, {"x-versions-location": "other"}):
        assert front("POST", "/a/v", headers).status == 409
        assert front("PUT", "/a/v", headers).status == 409
    assert front("HEAD", "/a/v").headers["x-versions-location"] == "old"
    # A setting from before the lock can be removed.
    assert front("POST", "/a/v", {"x-remove-versions-location": "x"}).status == 204
    assert "x-versions-location" not in front("HEAD", "/a/v").headers
    assert front("POST", "/a/v", {"x-remove-versions-location": "x"}).status == 409


def test_a_version_is_named_by_its_object_and_its_time(front, sim):
    front("PUT", "/a/v/%C3%A9", {}, b"1")
    stamp = sim("HEAD", "/a/v/%C3%A9").headers["x-timestamp"]
    front("PUT", "/a/v/%C3%A9", {}, b"2")
    assert front.kept() == [f"002é/{stamp}"]


def test_a_history_remembers_deletions(front):
    front("POST", "/a/v", {"x-history-location": "old"})
    front("PUT", "/a/v/o", {}, b"1")
    assert front("DELETE", "/a/v/o").status == 204
    assert front("DELETE", "/a/v/o").status == 404
    assert len(front.kept()) == 3
    front("POST", "/a/v", {"x-versions-location": "old"})
    for status in (404, 200):
        assert front("DELETE", "/a/v/o").status == 204
        assert front("GET", "/a/v/o").status == status
    assert front.kept() == []


def test_nothing_is_kept_for_who_may_not_write(front):
    front("PUT", "/a/v/o", {}, b"1")
    front.denied.add("/a/v/o")
    assert front("PUT", "/a/v/o", {}, b"2").status == 403
    assert front("DELETE", "/a/v/o").status == 403
    assert front.kept() == []


def test_the_container_of_the_versions_needs_no_rights_of_the_caller(front, sim):
    front("PUT", "/a/v/o", {}, b"1")
    stamp = sim("HEAD", "/a/v/o").headers["x-timestamp"]
    front.denied |= {"/a/old", f"/a/old/001o/{stamp}"}
    assert front("PUT", "/a/v/o", {}, b"2").status == 201
    assert len(front.kept()) == 1


def test_an_object_that_cannot_be_kept_is_not_replaced(front, sim):
    front("PUT", "/a/v/o", {}, b"x" * 300_000)
    for n in range(1, 7):
        sim.faults.dies_after[node_port("object", n)] = 1000
    assert front("PUT", "/a/v/o", {}, b"2").status == 503
    sim.faults.dies_after.clear()
    assert front("GET", "/a/v/o").body == b"x" * 300_000
    assert front.kept() == []
    front("POST", "/a/v", {"x-versions-location": "nowhere"})
    assert front("PUT", "/a/v/o", {}, b"2").status == 412
    assert front("GET", "/a/v/o").body == b"x" * 300_000


def test_manifests_and_links_come_back_as_such_even_when_what_they_name_is_gone(front, sim):
    sim("PUT", "/a/c/piece", {}, b"piece")
    manifest = json.dumps([{"path": "/c/piece"}]).encode()
    front("PUT", "/a/v/slo?multipart-manifest=put", {"content-type": "v/x"}, manifest)
    etag = sim("HEAD", "/a/c/piece").headers["etag"].strip('"')
    front("PUT", "/a/v/link", {"x-symlink-target": "c/piece", "x-symlink-target-etag": etag})
    before = {row["name"]: row for row in json.loads(sim("GET", "/a/v?format=json").body)}
    for name in ("slo", "link"):
        front("PUT", f"/a/v/{name}", {}, b"plain")
    sim("DELETE", "/a/c/piece")
    for name in ("slo", "link"):
        assert front("DELETE", f"/a/v/{name}").status == 204
    after = {row["name"]: row for row in json.loads(sim("GET", "/a/v?format=json").body)}
    for name in ("slo", "link"):
        assert [after[name][key] for key in ("hash", "bytes", "content_type")] == [
            before[name][key] for key in ("hash", "bytes", "content_type")
        ]
    assert front("HEAD", "/a/v/slo").headers["x-static-large-object"] == "True"
    assert front("HEAD", "/a/v/link?symlink=get").headers["x-symlink-target-etag"] == etag


def test_a_request_of_no_time_keeps_nothing(front):
    front("PUT", "/a/v/o", {}, b"1")
    for setting in ("x-versions-location", "x-history-location"):
        front("POST", "/a/v", {setting: "old"})
        for method, body in (("PUT", b"2"), ("DELETE", b"")):
            answer = front(method, "/a/v/o", {"x-timestamp": "junk"}, body)
            assert (answer.status, b"X-Timestamp" in answer.body) == (400, True)
    assert front.kept() == []
    assert front("GET", "/a/v/o").body == b"1"


def test_what_replication_brings_is_stored_as_it_comes(front):
    front("PUT", "/a/v/o", {}, b"1")
    assert front("PUT", "/a/v/o", {"x-backend-replication": "true"}, b"2").status == 201
    assert front.kept() == []


def test_both_settings_at_once_and_slashes_are_refused(front):
    both = {"x-versions-location": "old", "x-history-location": "old"}
    assert front("POST", "/a/v", both).status == 400
    assert front("POST", "/a/v", {"x-versions-location": "a/b"}).status == 412
    assert front("HEAD", "/a/v").headers["x-versions-location"] == "old"


@pytest.mark.parametrize("value", ["%00x", "a%00b", ".hidden", "..", ".", "%2e%2e", "%ff"])
@pytest.mark.parametrize("name", ["x-versions-location", "x-history-location"])
def test_a_location_that_names_no_container_is_refused(front, name, value):
    assert front("POST", "/a/v", {name: value}).status == 400
    assert front("HEAD", "/a/v").headers["x-versions-location"] == "old"


def test_where_it_is_switched_off_settings_are_refused_and_removing_them_is_not(front, sim):
    front("PUT", "/a/v/o", {}, b"1")
    off = Front(sim, enabled=False)
    assert off("POST", "/a/v", {"x-versions-location": "c"}).body == b"Versioned Writes is disabled"
    assert off("PUT", "/a/v/o", {}, b"2").status == 201
    assert off.kept() == []
    assert off("POST", "/a/v", {"x-remove-versions-location": "x"}).status == 204
    assert "x-versions-location" not in front("HEAD", "/a/v").headers


class FrontOfAll(FilterFixture):
    """The filter with all three modes."""

    def __init__(self, sim):
        made = Cluster(SimpleNamespace(limits=Limits()), sim.policies), TypeGuesser("/none", ())
        settings = VersionedWritesSettings(allow_versioned_writes=True, allow_object_versioning=True)
        super().__init__(sim, VersionedWrites(Symlink(sim.app, SymlinkSettings()), settings, made))


@pytest.mark.parametrize(
    ("header", "found", "kept"), [("x-versions-location", b"1", 0), ("x-history-location", b"", 3)]
)
def test_a_deletion_of_the_null_version_is_that_of_the_object(sim, header, found, kept):
    assert sim("PUT", "/a/old").status == 201
    front = FrontOfAll(sim)
    assert front("PUT", "/a/v", {header: "old"}).status == 201
    for body in (b"1", b"2"):
        assert front("PUT", "/a/v/o", {}, body).status == 201
    assert front("DELETE", "/a/v/o?version-id=null").status == 204
    answer = front("GET", "/a/v/o")
    assert (answer.status, answer.body if found else b"") == (200 if found else 404, found)
    assert len(json.loads(sim("GET", "/a/old?format=json").body)) == kept
    assert front("PUT", "/a/plain").status == 201
    assert front("PUT", "/a/plain/o").status == 201
    assert front("DELETE", "/a/plain/o?version-id=null").status == 204
    assert front("GET", "/a/plain/o").status == 404
