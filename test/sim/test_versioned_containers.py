"""Containers with versioning: creation, counters, suspension and deletion."""

import json
import time
from types import SimpleNamespace

import pytest

from swift.base.limits import Limits
from swift.compose import Cluster
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import error_response
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from test.support.filters import FilterFixture

ON, OFF = {"x-versions-enabled": "true"}, {"x-versions-enabled": "false"}


class Front(FilterFixture):
    """The filter; who is ``stranger`` may nothing. What is cached is forgotten before each request."""

    def __init__(self, sim):
        self.stranger = False
        made = Cluster(SimpleNamespace(limits=Limits()), sim.policies), TypeGuesser("/none", ())
        settings = VersionedWritesSettings(allow_object_versioning=True)
        super().__init__(sim, VersionedWrites(Symlink(sim.app, SymlinkSettings()), settings, made))

    def open(self, *args, **kwargs):
        self.sim.cache.values.clear()
        return super().open(*args, **kwargs)

    def authorise(self, request):
        return error_response(403) if self.stranger else None


@pytest.fixture
def front(sim):
    made = Front(sim)
    assert made("PUT", "/a/v", ON).status == 201
    return made


def listed(front, path):
    return [row["name"] for row in json.loads(front("GET", f"{path}?format=json").body)]


def test_a_container_reports_whether_versioning_is_enabled(front):
    assert front("HEAD", "/a/v").headers["x-versions-enabled"] == "True"
    assert front("POST", "/a/v", OFF).status == 204
    assert front("HEAD", "/a/v").headers["x-versions-enabled"] == "False"
    assert "x-versions-enabled" not in front("HEAD", "/a/c").headers


def test_versions_count_for_the_container_and_hidden_ones_are_not_shown(front):
    for body in (b"one", b"three"):
        front("PUT", "/a/v/o", {}, body)
    head = front("HEAD", "/a/v").headers
    assert (head["x-container-bytes-used"], head["x-container-object-count"]) == ("8", "1")
    assert listed(front, "/a/v") == ["o"]
    assert listed(front, "/a") == ["c", "v"]


def test_suspended_versioning_keeps_versions_and_adds_none(front):
    front("PUT", "/a/v/o", {}, b"1")
    front("POST", "/a/v", OFF)
    front("PUT", "/a/v/o", {}, b"2")
    rows = json.loads(front("GET", "/a/v?versions&format=json").body)
    front("PUT", "/a/v/o", {}, b"3")
    assert len(json.loads(front("GET", "/a/v?versions&format=json").body)) == len(rows) == 2


def test_a_container_can_be_deleted_when_no_version_is_left(front):
    version = front("PUT", "/a/v/o", {}, b"1").headers["x-object-version-id"]
    marker = front("DELETE", "/a/v/o").headers["x-object-version-id"]
    response = front("DELETE", "/a/v")
    assert response.status == 409
    for name in (version, marker):
        assert front("DELETE", f"/a/v/o?version-id={name}").status == 204
    assert front("DELETE", "/a/v").status == 204
    assert front("HEAD", "/a/v").status == 404


def test_versions_survive_the_deletion_and_recreation_of_a_container(front, sim):
    version = front("PUT", "/a/v/o", {}, b"1").headers["x-object-version-id"]
    marker = front("DELETE", "/a/v/o").headers["x-object-version-id"]
    assert sim("DELETE", "/a/v").status == 204
    assert front("PUT", "/a/v").status == 201
    rows = json.loads(front("GET", "/a/v?versions&format=json").body)
    assert [row["version_id"] for row in rows] == [marker, version]


def test_a_symlink_has_the_id_of_its_version(front):
    version = front("PUT", "/a/v/o", {}, b"1").headers["x-object-version-id"]
    front("PUT", "/a/v/l", {"x-symlink-target": "v/o"})
    response = front("GET", "/a/v/l")
    assert (response.body, response.headers["x-object-version-id"]) == (b"1", version)
    assert response.headers["content-location"] == f"/v1/a/v/o?version-id={version}"
    assert front("GET", "/a/v/l?version-id=null").status == 404, "the link is a version itself"
    assert front("PUT", "/a/w", ON).status == 201
    front("PUT", "/a/w/l", {"x-symlink-target": "v/o"})
    assert front("GET", "/a/w/l").headers["x-object-version-id"] == "null", "it is of another container"
    front("PUT", "/a/v/plain", {"x-symlink-target": "c/plain"})
    front("PUT", "/a/c/plain", {}, b"1")
    assert front("GET", "/a/v/plain").headers["x-object-version-id"] == "null"


def test_versioning_is_refused_for_synchronised_containers(front):
    assert front("POST", "/a/v", {"x-container-sync-to": "http://h/v1/a/c"}).status == 400
    assert front("HEAD", "/a/v").headers["x-versions-enabled"] == "True"


def test_a_refused_setting_creates_no_hidden_container(front, sim):
    front.stranger = True
    assert front("POST", "/a/c", ON).status == 403
    front.stranger = False
    assert "x-versions-enabled" not in front("HEAD", "/a/c").headers


def test_container_sync_stores_symlinks_as_versions(front, sim):
    """A static link's target may come later, so it is not looked at."""
    sent = {
        "x-symlink-target": "t/later",
        "x-symlink-target-etag": "e" * 32,
        "x-symlink-target-bytes": "7",
        "content-length": "0",
        "x-timestamp": "1700000000.00000",
    }
    env = {"swift.cache": sim.cache, "swift.symlink_override": True}
    assert front.filter.handle(Request("PUT", "/v1/a/v/l", sent, env=env)).status == 201
    response = front("GET", "/a/v/l")
    assert (response.status, response.headers["content-location"]) == (404, "/v1/a/t/later")


END = "4000000000"


@pytest.mark.parametrize("change", [{"x-delete-at": END}, {"x-delete-after": "1000"}])
def test_the_object_expires_but_never_its_version(front, change):
    version = front("PUT", "/a/v/o", {}, b"data").headers["x-object-version-id"]
    assert front("POST", "/a/v/o", {**change, "x-object-meta-a": "1"}).status == 202
    link = front("HEAD", "/a/v/o?symlink=get").headers
    assert int(link["x-delete-at"]) > time.time() + 900
    kept = front("HEAD", f"/a/v/o?version-id={version}").headers
    assert "x-delete-at" not in kept and kept["x-object-meta-a"] == "1"
    assert front("POST", "/a/v/o", {"x-remove-delete-at": "x"}).status == 202
    assert "x-delete-at" not in front("HEAD", "/a/v/o?symlink=get").headers
    assert front("POST", "/a/v/o", {"x-delete-at": "nonsense"}).status == 400
