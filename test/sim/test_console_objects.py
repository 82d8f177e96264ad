"""The console's pages of objects: lists, properties, versions, copies, deletion, sharing, previews."""

import itertools
import json
import re
from html import unescape
from urllib.parse import quote, unquote, urlsplit

import pytest

from swift.console.users.content import attachment
from swift.http.request import Request
from test.support.console import FORM, HOST, HOSTILE, ConsoleWorld, at, get, put, s3, swift


@pytest.fixture
def world(make_sim):
    return ConsoleWorld(make_sim(allow_account_management=True))


@pytest.fixture
def browser(world):
    browser = world.browser("t:owner")
    browser.get("/console")
    browser.post("/console/buckets/make", bucket="photos")
    assert browser.status == 200, browser.page
    return browser


def version_ids(browser, name):
    answer = swift(browser, "GET", "photos", query=f"versions&format=json&prefix={quote(name)}")
    return [row["version_id"] for row in json.loads(answer.body)]


def make_versioned(browser):
    assert swift(browser, "POST", "photos", {"x-versions-enabled": "true"}).status in (202, 204)


# --- lists --------------------------------------------------------------------------------------------


def test_a_bucket_is_shown_folder_by_folder(browser):
    for name in ("top", "a/one", "a/b/two"):
        put(browser, name)
    page = browser.get("/console/browse", bucket="photos")
    assert ">top<" in page and "prefix=a%2F" in page and ">one<" not in page
    page = browser.get("/console/browse", bucket="photos", prefix="a/")
    assert ">one<" in page and "prefix=a%2Fb%2F" in page and ">top<" not in page


def test_pages_of_a_bucket_follow_by_marker(browser, monkeypatch):
    monkeypatch.setattr("swift.console.users.browse.PAGE", 2)
    for name in ("a/1", "a/2", "b", "c/1", "d"):
        put(browser, name)
    seen, address = [], "/console/browse?bucket=photos"
    while address:
        page = browser.get(address)
        rows = page.partition("<tbody>")[2].partition("</tbody>")[0]
        seen.append(re.findall(r"<bdi>(\w+)</bdi>", rows))
        more = re.search(r'href="([^"]*)"[^>]*>Next page', page)
        address = unescape(more[1]) if more else ""
    assert seen == [["a", "b"], ["c", "d"]] and "Back to the beginning" in browser.page


@pytest.mark.parametrize("names", [("/x", "//y", "a//z")])
def test_folders_with_empty_names_are_reachable(browser, names):
    for name in names:
        put(browser, name)
    found, left = set(), ["/console/browse?bucket=photos"]
    while left:
        page = browser.get(left.pop())
        body = page.partition("<tbody>")[2]
        links = [unescape(each) for each in re.findall(r'<td><a href="([^"]*)"', body)]
        left += [each for each in links if "/browse?" in each]
        found |= {unquote(each.partition("name=")[2]) for each in links if "/object?" in each}
    assert found == set(names)


def test_a_bucket_that_is_not_there_is_told(browser):
    assert "no such bucket" in browser.get("/console/browse", bucket="none") and browser.status == 404


def test_a_bucket_that_may_not_be_listed_is_told(browser):
    other = browser.world.browser("t:user")
    assert "not allowed to list" in other.get("/console/browse", bucket="photos") and other.status == 403


@pytest.mark.parametrize("bucket", ["", "photos/a", "photos/"])
def test_a_bucket_name_cannot_lead_to_an_object(browser, bucket):
    put(browser, "a", b'[{"name": "forged", "bytes": 1, "last_modified": "", "content_type": ""}]')
    assert "forged" not in browser.get("/console/browse", bucket=bucket) and browser.status == 400


# --- hostile names ------------------------------------------------------------------------------------


def test_any_name_is_inert_and_works(browser):
    for name in HOSTILE:
        check_name(browser, name)


def check_name(browser, name):
    put(browser, name, b"text", content_type="text/plain")
    prefix = name[: name.rfind("/") + 1]
    page = browser.get(at("/browse", bucket="photos", prefix=prefix))
    assert at("/object", bucket="photos", name=name).replace("&", "&amp;") in page
    page += browser.get(at("/object", bucket="photos", name=name))
    assert browser.status == 200, browser.page
    # Fields that people change have the very name.
    page = re.sub(r' value="[^"]*"', "", page)
    for bad in ("<script>alert", "<img src=x", "<bdi>49", "\u202e", "\x1b", "\x01", "\u2066"):
        assert bad not in page
    browser.get(at("/download", bucket="photos", name=name))
    assert browser.body == b"text"
    browser.get(at("/object", bucket="photos", name=name))
    stamp = re.search(r'name="stamp" value="([^"]*)"', browser.page)[1]
    form = {"content_type": "text/plain", "meta_key": "note", "meta_value": "<b>é"}
    browser.post(at("/object/metadata", bucket="photos", name=name), stamp=stamp, **form)
    assert browser.status == 200 and "&lt;b&gt;é" in browser.page, browser.page
    browser.post(at("/object/tags", bucket="photos", name=name), tag_key="k", tag_value="v")
    assert browser.status == 200, browser.page
    browser.post(
        at("/object/copy", bucket="photos", name=name), bucket="photos", to_name="copied", action="copy"
    )
    assert browser.status == 200 and get(browser, "copied").body == b"text"
    swift(browser, "DELETE", "photos/copied")
    browser.post(at("/delete/step", bucket="photos"), name=quote(name, safe=""))
    assert "1 deleted, 0 failed" in browser.page and get(browser, name).status == 404


def test_a_link_to_any_name_works(browser):
    browser.post(at("/share/key", bucket="photos"))
    for name, kind in itertools.product(HOSTILE, ("s3", "tempurl")):
        put(browser, name, b"text")
        page = browser.post(at("/share", bucket="photos", name=name), method="GET", life="hour", kind=kind)
        address = urlsplit(unescape(re.search(r'id="address" readonly value="([^"]*)"', page)[1]))
        answer = browser.world.send(Request("GET", address.path, {"host": HOST}, query=address.query))
        assert (answer.status, answer.body) == (200, b"text"), (kind, answer.body)


# --- the page of an object ----------------------------------------------------------------------------


def test_a_change_of_metadata_keeps_the_rest(browser):
    put(
        browser,
        "a",
        content_type="text/plain",
        x_object_meta_one="1",
        cache_control="max-age=5",
        x_robots_tag="none",
    )
    browser.post(at("/object/tags", bucket="photos", name="a"), tag_key="colour", tag_value="red")
    page = browser.get(at("/object", bucket="photos", name="a"))
    stamp = re.search(r'name="stamp" value="([^"]*)"', page)[1]
    keys, values = ["one", "a=5Fb", "zwölf", ""], ["1", "zwei", "é", ""]
    form = {"meta_key": keys, "meta_value": values, "cache_control": "max-age=5"}
    more = {"content_type": "text/plain", "delete_at": "2099-01-02T03:04", "content_disposition": "inline"}
    browser.post(at("/object/metadata", bucket="photos", name="a"), stamp=stamp, **form, **more)
    assert browser.status == 200, browser.page
    headers = swift(browser, "HEAD", "photos/a").headers
    assert headers["x-object-meta-one"] == "1" and headers["x-object-meta-a=5fb"] == "zwei"
    assert headers["x-object-meta-zwölf".encode().decode("latin-1")] == "é".encode().decode("latin-1")
    assert '"zwölf"' in browser.page and '"a=5fb"' in browser.page
    assert headers["content-type"] == "text/plain" and headers["cache-control"] == "max-age=5"
    assert headers["x-delete-at"] == "4071006240" and headers["x-robots-tag"] == "none"
    assert 'value="colour"' in browser.page and 'value="red"' in browser.page


def test_a_change_of_metadata_keeps_a_manifest(browser):
    put(browser, "a", b"", x_object_manifest="photos/seg%20/")
    page = browser.get(at("/object", bucket="photos", name="a"))
    stamp = re.search(r'name="stamp" value="([^"]*)"', page)[1]
    browser.post(at("/object/metadata", bucket="photos", name="a"), stamp=stamp, cache_control="no-cache")
    headers = swift(browser, "HEAD", "photos/a").headers
    assert headers["x-object-manifest"] == "photos/seg%20/" and headers["cache-control"] == "no-cache"


def test_a_change_of_metadata_does_not_overwrite_another(browser):
    put(browser, "a", x_object_meta_one="1")
    page = browser.get(at("/object", bucket="photos", name="a"))
    stamp = re.search(r'name="stamp" value="([^"]*)"', page)[1]
    swift(browser, "POST", "photos/a", {"x-object-meta-one": "2"})
    browser.post(at("/object/metadata", bucket="photos", name="a"), stamp=stamp)
    assert browser.status == 412 and swift(browser, "HEAD", "photos/a").headers["x-object-meta-one"] == "2"


@pytest.mark.parametrize(
    "field",
    [{"cache_control": "a\r\nx-evil: 1"}, {"meta_key": "a b", "meta_value": "1"}, {"delete_at": "soon"}],
)
def test_bad_metadata_changes_nothing(browser, field):
    put(browser, "a", x_object_meta_one="1")
    page = browser.get(at("/object", bucket="photos", name="a"))
    stamp = re.search(r'name="stamp" value="([^"]*)"', page)[1]
    browser.post(at("/object/metadata", bucket="photos", name="a"), stamp=stamp, **field)
    assert browser.status == 400 and swift(browser, "HEAD", "photos/a").headers["x-object-meta-one"] == "1"


@pytest.mark.parametrize("bucket", ["Photos_A", "a b", "AUTH_t:photos"])
def test_buckets_that_s3_cannot_name_work(browser, bucket):
    browser.post("/console/buckets/make", bucket=bucket)
    put(browser, "a", b"text", bucket=quote(bucket))
    page = browser.get(at("/object", bucket=bucket, name="a"))
    assert "Save tags" not in page
    stamp = re.search(r'name="stamp" value="([^"]*)"', page)[1]
    browser.post(at("/object/metadata", bucket=bucket, name="a"), stamp=stamp, cache_control="no-cache")
    assert get(browser, "a", bucket=quote(bucket)).headers["cache-control"] == "no-cache"
    assert browser.send("POST", at("/upload/begin", bucket=bucket, name="b"), FORM, b"size=9") == {
        "whole": True
    }
    assert "no begun uploads" in browser.get(at("/uploads", bucket=bucket))
    browser.post(at("/share/key", bucket=bucket, name="a"))
    page = browser.post(at("/share", bucket=bucket, name="a"), method="GET", life="hour", kind="tempurl")
    assert 'value="s3"' not in page
    address = urlsplit(unescape(re.search(r'id="address" readonly value="([^"]*)"', page)[1]))
    answer = browser.world.send(Request("GET", address.path, {"host": HOST}, query=address.query))
    assert answer.body == b"text"


def test_versions_are_shown_restored_and_deleted(browser):
    make_versioned(browser)
    put(browser, "a", b"one")
    put(browser, "a", b"second")
    first = version_ids(browser, "a")[-1]
    page = browser.get(at("/object", bucket="photos", name="a"))
    assert page.count('<button class="danger">Delete this version') == 2
    browser.get(at("/download", bucket="photos", name="a", version=first))
    assert browser.body == b"one"
    browser.post(at("/object/restore", bucket="photos", name="a", version=first))
    assert browser.status == 200 and get(browser, "a").body == b"one"
    browser.post(at("/object/delete", bucket="photos", name="a"))
    assert get(browser, "a").status == 404
    page = browser.get(at("/object", bucket="photos", name="a"))
    assert "This object is deleted" in page and "Delete marker" in page
    assert "Delete marker" in browser.get("/console/browse?bucket=photos&versions=1")
    browser.post(at("/object/restore", bucket="photos", name="a", version=first))
    assert get(browser, "a").body == b"one"
    browser.post(at("/object/delete-version", bucket="photos", name="a", version=first))
    assert browser.status == 200 and first not in version_ids(browser, "a")


def test_a_lock_is_shown_and_enforced(browser):
    s3(browser, "PUT", "locked", headers={"x-amz-bucket-object-lock-enabled": "true"})
    lock = {"mode": "GOVERNANCE", "retain-until-date": "2099-01-02T03:04:05Z", "legal-hold": "ON"}
    headers = {f"x-amz-object-lock-{name}": value for name, value in lock.items()}
    s3(browser, "PUT", "locked", "a", headers={**headers, "content-length": "4"}, body=b"text")
    page = browser.get(at("/object", bucket="locked", name="a"))
    assert "GOVERNANCE until 2099-01-02" in page and "<dd>ON</dd>" in page
    version = re.search(r"delete-version\?[^\"]*version=([\d.]+)", page)[1]
    browser.post(at("/object/delete-version", bucket="locked", name="a", version=version))
    assert browser.status == 403 and "object lock" in browser.page
    browser.post(at("/object/delete", bucket="locked", name="a"))
    assert browser.status == 200
    assert get(browser, "a", bucket="locked", query=f"version-id={version}").body == b"text"


def test_a_move_leaves_no_source(browser):
    put(browser, "a", b"text", x_object_meta_one="1")
    browser.post(at("/object/copy", bucket="photos", name="a"), bucket="photos", to_name="b/c", action="move")
    assert browser.status == 200 and get(browser, "a").status == 404
    answer = get(browser, "b/c")
    assert answer.body == b"text" and answer.headers["x-object-meta-one"] == "1"


def test_a_copy_overwrites_only_what_it_may(browser):
    put(browser, "a", b"new")
    put(browser, "b", b"old")
    address, form = at("/object/copy", bucket="photos", name="a"), {"bucket": "photos", "to_name": "b"}
    browser.post(address, action="move", **form)
    assert browser.status == 409 and get(browser, "b").body == b"old" and get(browser, "a").status == 200
    browser.post(address, action="copy", overwrite="1", **form)
    assert get(browser, "b").body == b"new"
    browser.post(address, action="move", bucket="photos", to_name="a", overwrite="1")
    assert browser.status == 400 and get(browser, "a").body == b"new"


def make_large(browser):
    swift(browser, "PUT", "parts")
    put(browser, "s1", b"one", bucket="parts")
    manifest = json.dumps([{"path": "/parts/s1"}]).encode()
    answer = swift(browser, "PUT", "photos/large", {}, manifest, "multipart-manifest=put")
    assert answer.status == 201, answer.body


@pytest.mark.parametrize(("form", "left"), [({"segments": "1"}, 404), ({}, 200)])
def test_a_large_object_is_deleted_with_its_segments_if_wanted(browser, form, left):
    make_large(browser)
    page = browser.get(at("/object", bucket="photos", name="large"))
    assert "/parts/s1" in page and "with its segments" in page
    browser.post(at("/object/delete", bucket="photos", name="large"), **form)
    assert get(browser, "large").status == 404 and get(browser, "s1", bucket="parts").status == left


def test_segments_of_versions_that_stay_are_not_deleted(browser):
    make_versioned(browser)
    make_large(browser)
    browser.post(at("/object/delete", bucket="photos", name="large"), segments="1")
    assert get(browser, "s1", bucket="parts").status == 200
    browser.post(at("/delete/step", bucket="photos"), name="large", segments="1")
    assert get(browser, "s1", bucket="parts").status == 200


# --- previews and downloads ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("text/html", "text/plain; charset=utf-8"),
        ("text/javascript", "text/plain; charset=utf-8"),
        ("application/xhtml+xml", "text/plain; charset=utf-8"),
        ("image/svg+xml", "image/svg+xml"),
        ("image/PNG; x=y", "image/png"),
        ("video/mp4", "video/mp4"),
    ],
)
def test_previews_are_inert(browser, kind, shown):
    put(browser, "a", b"<script>alert(1)</script>", content_type=kind)
    browser.get(at("/content", bucket="photos", name="a"))
    headers = browser.headers
    assert browser.status == 200 and headers["content-type"] == shown
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert (
        headers["x-content-type-options"] == "nosniff"
        and "frame-ancestors 'self'" in headers["content-security-policy"]
    )


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/x-unknown", "application/zip", "a b"])
def test_other_types_have_no_preview(browser, kind):
    put(browser, "a", content_type=kind)
    browser.get(at("/content", bucket="photos", name="a"))
    assert browser.status == 415


def test_the_preview_of_a_text_is_its_beginning(browser):
    put(browser, "a", b"x" * 300_000, content_type="text/plain")
    browser.get(at("/content", bucket="photos", name="a"))
    assert (browser.status, len(browser.body)) == (200, 100_000) and "content-range" not in browser.headers
    put(browser, "empty", b"", content_type="text/plain")
    browser.get(at("/content", bucket="photos", name="empty"))
    assert (browser.status, browser.body) == (200, b"")


def test_a_download_is_a_file_and_has_ranges(browser):
    put(browser, "d/é.html", b"0123456789", content_type="text/html")
    browser.get(at("/download", bucket="photos", name="d/é.html"), {"range": "bytes=2-4"})
    assert (browser.status, browser.body) == (206, b"234") and browser.headers[
        "content-range"
    ] == "bytes 2-4/10"
    assert (
        browser.headers["content-disposition"]
        == "attachment; filename=\"_.html\"; filename*=UTF-8''%C3%A9.html"
    )
    browser.get(at("/download", bucket="photos", name="d/é.html"), {"range": "bytes=20-"})
    assert browser.status == 416


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_the_header_of_a_download(name):
    assert re.fullmatch(
        r"""attachment; filename="[^"\\%/\x00-\x1f\x7f-\xff]+"; filename\*=UTF-8''[\w.~%-]+""",
        attachment(name),
    )


def test_others_reach_no_content(browser):
    put(browser, "a", b"secret", content_type="text/plain")
    other = browser.world.browser("t:user")
    for path in ("/download", "/content", "/object", "/share", "/upload/exists"):
        other.get(at(path, bucket="photos", name="a"))
        assert b"secret" not in other.body
        assert other.status == (200 if path == "/share" else 403), path


# --- deletion of many ---------------------------------------------------------------------------------


def test_all_below_a_prefix_is_deleted_in_steps(browser, monkeypatch):
    monkeypatch.setattr("swift.console.users.deletion.STEP", 2)
    for name in ("p/1", "p/2", "p/3", "p/\n4", "q"):
        put(browser, name)
    page = browser.get(at("/delete", bucket="photos", prefix="p/"))
    assert "p/" in page and get(browser, "p/1").status == 200
    steps = 0
    fields = {"folder": quote("p/", safe="")}
    while True:
        found = browser.send(
            "POST",
            at("/delete/step", bucket="photos"),
            FORM,
            "&".join(f"{n}={quote(str(v), safe='')}" for n, v in fields.items()).encode(),
        )
        steps += 1
        if found["done"]:
            break
        left = found["left"]
        fields = {
            "folder": quote(left["folder"][0], safe=""),
            "marker": quote(left["marker"], safe=""),
            "deleted": found["deleted"],
        }
    assert steps == 3 and found["deleted"] == 4 and get(browser, "q").status == 200
    assert json.loads(swift(browser, "GET", "photos", query="format=json").body)[0]["name"] == "q"


def test_without_scripts_a_deletion_goes_on_by_forms(browser, monkeypatch):
    monkeypatch.setattr("swift.console.users.deletion.STEP", 2)
    for name in ("1", "2", "3"):
        put(browser, name)
    page = browser.post(at("/delete", bucket="photos"), name=["1", "2", "3"])
    assert all(get(browser, name).status == 200 for name in "123")
    fields = [unescape(each) for each in re.findall(r'name="name" value="([^"]*)"', page)]
    page = browser.post(at("/delete/step", bucket="photos"), name=fields)
    assert "2 deleted" in page and "Go on" in page
    page = browser.post(at("/delete/step", bucket="photos"), name="3", deleted="2")
    assert "3 deleted" in page and "has ended" in page


@pytest.mark.parametrize("fields", [{}, {"name": ""}])
def test_a_deletion_of_nothing_deletes_nothing(browser, fields):
    browser.post(at("/delete/step", bucket="photos"), **fields)
    assert browser.status == 400 and "Nothing was checked" in browser.page
    assert swift(browser, "HEAD", "photos").status == 204


def test_errors_of_a_deletion_are_listed(browser):
    put(browser, "<b>")
    other = browser.world.browser("t:user")
    other.get("/console")
    page = other.post(at("/delete/step", bucket="photos"), name=quote("<b>"))
    assert "0 deleted, 1 failed" in page and "&lt;b&gt;" in page and get(browser, "<b>").status == 200


def test_a_versioned_bucket_keeps_what_is_deleted(browser):
    make_versioned(browser)
    put(browser, "a/1", b"one")
    browser.post(at("/delete/step", bucket="photos"), folder=quote("a/", safe=""), segments="1")
    assert "1 deleted" in browser.page and get(browser, "a/1").status == 404
    assert len(version_ids(browser, "a/1")) == 2


# --- sharing ------------------------------------------------------------------------------------------


def test_a_link_for_an_upload_stores_one_object(browser):
    page = browser.post(
        at("/share", bucket="photos", prefix="in/"), name="in/new", method="PUT", life="hour", kind="s3"
    )
    address = urlsplit(unescape(re.search(r'id="address" readonly value="([^"]*)"', page)[1]))
    answer = browser.world.send(
        Request("PUT", address.path, {"host": HOST, "content-length": "3"}, b"abc", query=address.query)
    )
    assert answer.status == 200 and get(browser, "in/new").body == b"abc"


def test_a_presigned_link_ends_with_the_session(browser):
    put(browser, "a")
    page = browser.post(at("/share", bucket="photos", name="a"), method="GET", life="day", kind="s3")
    assert "It ends with your session at the latest" in page
    address = urlsplit(unescape(re.search(r'id="address" readonly value="([^"]*)"', page)[1]))
    browser.post("/console/logout")
    answer = browser.world.send(Request("GET", address.path, {"host": HOST}, query=address.query))
    assert answer.status == 403


def test_those_who_may_not_make_a_key_get_none(browser):
    other = browser.world.browser("t:user")
    other.get("/console")
    other.post(at("/share/key", bucket="photos", name="a"))
    assert other.status == 403
    other.post(at("/share", bucket="photos", name="a"), method="GET", life="hour", kind="tempurl")
    assert other.status == 409
