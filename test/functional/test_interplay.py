"""Properties of every kind of object, for every way of access and every reader.

Cases are pairwise ones; ``SWIFT_INTERPLAY=whole`` tries all of them.
"""

import json

import pytest

from test.functional.interplay import (
    DATA,
    FORMS,
    KINDS,
    NONSENSE,
    POLICIES,
    RANGES,
    TYPE,
    World,
    may_read,
    reading_cases,
)
from test.support.checks import chosen


@pytest.fixture(scope="module")
def world(cluster):
    return World(cluster)


@pytest.fixture(scope="module")
def etags():
    """Return (kind, form, policy) → the ETag that the owner got."""
    return {}


def named(case):
    return "-".join(map(str, case))


@pytest.mark.parametrize("case", chosen(reading_cases()), ids=named)
def test_every_kind_of_object_is_read_correctly_by_every_reader(world, etags, case):
    kind, form, policy, asker, reading = case
    where = world.objects[kind, form, policy]
    if not may_read(form, asker):
        # A link passes no version-id.
        refusals = (400,) if asker.endswith("tempurl") else (401, 403)
        assert world.read(asker, where).status in refusals
        return
    etag = etags.get(case[:3])
    if etag is None:
        etag = etags[case[:3]] = world.read("owner", where, "HEAD").headers["etag"]
    READERS[reading](world, asker, where, etag, reading)


def whole(world, asker, where, etag, _reading):
    got = world.read(asker, where)
    assert (got.status, got.body) == (200, DATA), got
    assert got.headers["content-length"] == str(len(DATA))
    assert got.headers["content-type"] == TYPE
    assert got.headers["etag"] == etag


def head(world, asker, where, etag, _reading):
    got = world.read(asker, where, "HEAD")
    assert (got.status, got.body) == (200, b"")
    assert got.headers["content-length"] == str(len(DATA))
    assert got.headers["etag"] == etag
    assert not any("sysmeta" in name or "backend" in name for name in got.headers)
    assert "%00" not in str(got.headers)


def ranged(world, asker, where, _etag, reading):
    value, expected = RANGES[reading]
    got = world.read(asker, where, headers={"Range": value})
    if expected == 416:
        assert got.status == 416, got
        assert got.headers["content-range"] == f"bytes */{len(DATA)}"
        return
    assert (got.status, got.body) == (206, expected), got
    first = DATA.index(expected)
    assert got.headers["content-range"] == f"bytes {first}-{first + len(expected) - 1}/{len(DATA)}"


def multiple(world, asker, where, _etag, _reading):
    got = world.read(asker, where, headers={"Range": "bytes=1-2,29-32"})
    if got.status == 200:
        # As the peer: several ranges of a dynamic large object are not served.
        assert got.body == DATA
        return
    assert got.status == 206, got
    assert got.headers["content-type"].startswith("multipart/byteranges")
    for first, last in ((1, 2), (29, 32)):
        part = f"Content-Range: bytes {first}-{last}/{len(DATA)}\r\n\r\n".encode() + DATA[first : last + 1]
        assert part in got.body


def same(world, asker, where, etag, _reading):
    got = world.read(asker, where, headers={"If-Match": etag})
    assert (got.status, got.body) == (200, DATA), got


def other(world, asker, where, _etag, _reading):
    got = world.read(asker, where, headers={"If-Match": "d41d8cd98f00b204e9800998ecf8427e"})
    assert (got.status, got.body) == (412, b"") or got.status == 412, got


def unless_same(world, asker, where, etag, _reading):
    got = world.read(asker, where, headers={"If-None-Match": etag})
    assert (got.status, got.body) == (304, b""), got


READERS = {
    "whole": whole,
    "head": head,
    **dict.fromkeys(RANGES, ranged),
    "multiple": multiple,
    "same": same,
    "other": other,
    "unless-same": unless_same,
}

# --- copies -------------------------------------------------------------------------------------------

OBJECTS = [(k, f, p) for k in KINDS for f in FORMS if (k, f) not in NONSENSE for p in POLICIES]
MANIFESTS = [what for what in OBJECTS if what[0] not in ("plain", "dlo")]
TARGETS = ("plain-gold", "plain-ec", "versions-gold", "history-ec", "stack-gold")
LINKS = ("dynamic", "static", "chain", "linked-version", "copied-link")


def copy(world, where, target, more=""):
    path, query = where
    query = "&".join(filter(None, (query, more)))
    got = world.owner("COPY", path, {"Destination": target}, query=query)
    assert got.status == 201, got
    return world.read("owner", (target, "")), world.read("owner", (target, "symlink=get"), "HEAD")


def into_targets(objects):
    """The objects, with destination containers for copies."""
    return chosen([(*what, target) for what in objects for target in TARGETS])


@pytest.mark.parametrize("case", into_targets([w for w in OBJECTS if w[2] == "gold"]), ids=named)
def test_a_copy_has_the_bytes_and_type_but_is_no_symlink_or_manifest(world, case):
    what, target = case[:-1], case[-1]
    got, itself = copy(world, world.objects[what], f"{target}/copies-{named(what)}")
    assert (got.status, got.body, got.headers["content-type"]) == (200, DATA, TYPE)
    assert "x-static-large-object" not in got.headers and "x-object-manifest" not in got.headers
    assert target == "versions-gold" or "x-symlink-target" not in itself.headers


@pytest.mark.parametrize("case", into_targets([w for w in OBJECTS if w[1] in LINKS]), ids=named)
def test_copying_a_symlink_itself_creates_a_symlink(world, case):
    what, target = case[:-1], case[-1]
    got, itself = copy(world, world.objects[what], f"{target}/links-{named(what)}", "symlink=get")
    assert (got.status, got.body) == (200, DATA)
    source = world.read("owner", (world.objects[what][0], "symlink=get"), "HEAD")
    if target != "versions-gold":
        for name in ("x-symlink-target", "x-symlink-target-etag"):
            assert itself.headers.get(name) == source.headers.get(name)


@pytest.mark.parametrize(
    "case", into_targets([w for w in OBJECTS if w[0] not in ("plain", "dlo")]), ids=named
)
def test_copying_a_manifest_itself_creates_a_manifest(world, case):
    what, target = case[:-1], case[-1]
    got, _itself = copy(
        world, world.objects[what], f"{target}/manifests-{named(what)}", "multipart-manifest=get"
    )
    assert (got.status, got.body) == (200, DATA)
    source = world.read("owner", world.objects[what], "HEAD")
    assert got.headers.get("x-static-large-object") == source.headers.get("x-static-large-object")
    assert got.headers["etag"] == source.headers["etag"]


# --- versions -----------------------------------------------------------------------------------------

MODES = ("versions-ec", "stack-ec", "history-gold")
PAIRS = chosen([(former, later, mode) for former in KINDS for later in (*KINDS, "link") for mode in MODES])


def put(world, kind, path):
    if kind == "link":
        return world.must("PUT", path, {"X-Symlink-Target": "plain-gold/%C3%A9%20slo"}, b"")
    return world.make(kind, path)


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_overwritten_and_deleted_versions_are_unchanged(world, pair):
    former, later, mode = pair
    path = f"{mode}/pair {former}-{later}"
    first = put(world, former, path).headers.get("x-object-version-id")
    put(world, later, path)
    assert world.read("owner", (path, "")).body == DATA
    deleted = world.owner("DELETE", path)
    assert deleted.status == 204
    got = world.read("owner", (path, ""))
    if mode.startswith("stack"):
        assert (got.status, got.body) == (200, DATA)
        return
    assert got.status == 404
    if mode.startswith("versions"):
        got = world.read("owner", (path, f"version-id={first}"))
        assert (got.status, got.body) == (200, DATA)
        marker = deleted.headers["x-object-version-id"]
        assert world.read("owner", (path, f"version-id={marker}")).status == 404
        world.must("PUT", path, body=b"", query=f"version-id={first}")
        assert world.read("reader", (path, "")).body == DATA


@pytest.mark.parametrize("policy", POLICIES)
def test_a_listing_shows_the_size_of_the_readable_content(world, policy):
    rows = world.must("GET", f"versions-{policy}", query="format=json").json()
    assert len(rows) > len(KINDS)
    # Rows of links are about the links.
    for row in [row for row in rows if "link" not in row["name"]]:
        got = world.read("owner", (f"versions-{policy}/{row['name']}", "multipart-manifest=get"), "HEAD")
        large = "slo_etag" in row
        assert row["hash"] == got.headers["etag"].strip('"')
        assert large or row["bytes"] == int(got.headers["content-length"])
        assert not large or row["bytes"] == len(DATA)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_container_counts_all_its_versions(world, policy):
    told = world.must("HEAD", f"versions-{policy}").headers
    versions = world.must("GET", f"versions-{policy}", query="versions&format=json").json()
    objects = world.must("GET", f"versions-{policy}", query="format=json").json()
    assert int(told["x-container-object-count"]) == len(objects)
    for row in objects:
        latest = [v for v in versions if v["name"] == row["name"] and v["is_latest"]]
        assert len(latest) == 1
        assert row["symlink_path"].endswith(f"?version-id={latest[0]['version_id']}")
    assert {row["name"] for row in objects} <= {row["name"] for row in versions}


# --- limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("versioned", (False, True))
def test_a_quota_holds_for_every_kind_of_upload(world, kind, versioned):
    name = f"full-{kind}-{versioned}"
    world.container(name, X_Versions_Enabled=str(versioned), X_Container_Meta_Quota_Bytes="5")
    path, query = world.objects[kind, "itself", "gold"]
    assert world.owner("PUT", f"{name}/o", body=DATA).status == 413
    got = world.owner("COPY", path, {"Destination": f"{name}/o"}, query=query)
    assert got.status == (413 if kind == "plain" else got.status)
    assert world.extract(f"{name}/o", DATA)["Number Files Created"] == 0
    assert world.owner("PUT", f"{name}/o", body=b"12345").status == 201
    world.must("HEAD", name)
    assert world.owner("PUT", f"{name}/o", body=b"x").status == 413


@pytest.mark.parametrize("what", [w for w in OBJECTS if w[1] == "expiring"], ids=named)
def test_an_expired_object_removes_the_symlink_to_its_version(world, what):
    path, _query = world.objects[what]
    assert world.read("owner", (path, "symlink=get"), "HEAD").headers["x-delete-at"] == "9999999999"


@pytest.mark.parametrize("what", [w for w in OBJECTS if w[1] in ("versioned", "itself")], ids=named)
def test_bulk_deletion_deletes_the_object_but_not_its_target(world, what):
    path = f"{'versions' if what[1] == 'versioned' else 'plain'}-{what[2]}/bulk-{what[0]}"
    world.make(what[0], path, segments=f"segments-{what[2]}")
    headers = {"Content-Type": "text/plain", "Accept": "application/json"}
    got = world.must("POST", "", headers, path.encode(), query="bulk-delete").json()
    assert got["Number Deleted"] == 1
    assert world.read("owner", (path, "")).status == 404
    assert world.read("owner", world.objects[what]).body == DATA


def test_the_logs_contain_no_error(world):
    assert "Traceback" not in world._cluster.log_text()
    assert json.loads(world.must("GET", "", query="format=json").body)
