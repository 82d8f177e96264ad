"""The console's endpoints of uploads: whole objects and parts, going on after a break, and giving up."""

import pytest

from swift.console.users import uploads
from test.support.console import FORM, HOSTILE, ConsoleWorld, at, get, put


@pytest.fixture
def browser(make_sim):
    browser = ConsoleWorld(make_sim(allow_account_management=True)).browser("t:owner")
    browser.get("/console")
    browser.post("/console/buckets/make", bucket="photos")
    return browser


def begin(browser, name, size, kind=""):
    body = f"size={size}&type={kind}".encode()
    return browser.send("POST", at("/upload/begin", bucket="photos", name=name), FORM, body)


def part(browser, name, upload, number, body):
    return browser.send(
        "PUT", at("/upload/part", bucket="photos", name=name, upload=upload, part=str(number)), body=body
    )


def complete(browser, name, upload, size):
    address = at("/upload/complete", bucket="photos", name=name, upload=upload)
    return browser.send("POST", address, FORM, f"size={size}".encode())


def test_a_file_of_any_name_is_stored_whole(browser):
    for name in HOSTILE:
        address = at("/upload/whole", bucket="photos", name=name)
        browser.send("PUT", address, {"content-type": "text/plain"}, b"abc")
        assert browser.status == 201, (name, browser.page)
        assert get(browser, name).body == b"abc"
    browser.send("PUT", at("/upload/whole", bucket="photos", name="empty"), body=b"")
    assert browser.status == 201 and get(browser, "empty").body == b""


def test_a_large_file_of_any_name_is_stored_in_parts(browser):
    for name in [name for name in HOSTILE if len(name) < 900]:
        upload = begin(browser, name, 6, "text/plain")["upload"]
        for number, body in ((2, b"def"), (1, b"abc")):
            part(browser, name, upload, number, body)
            assert browser.status == 200, (name, browser.page)
        found = browser.send("GET", at("/upload/parts", bucket="photos", name=name, upload=upload))
        assert found == {"parts": [{"number": 1, "size": 3}, {"number": 2, "size": 3}]}
        complete(browser, name, upload, 6)
        assert browser.status == 201, (name, browser.page)
        answer = get(browser, name)
        assert answer.body == b"abcdef" and answer.headers["content-type"] == "text/plain"
        # The response of a completion may be lost.
        complete(browser, name, upload, 6)
        assert browser.status == 201


def test_a_file_with_missing_parts_is_not_completed(browser):
    upload = begin(browser, "a", 6)["upload"]
    part(browser, "a", upload, 1, b"abc")
    assert "missing" in complete(browser, "a", upload, 6)["error"]
    part(browser, "a", upload, 3, b"def")
    assert "missing" in complete(browser, "a", upload, 6)["error"] and get(browser, "a").status == 404
    part(browser, "a", upload, 2, b"def")
    complete(browser, "a", upload, 6)
    assert browser.status == 409


def test_begun_uploads_are_listed_and_given_up(browser):
    name = '<b>"\n'
    upload = begin(browser, name, 6)["upload"]
    part(browser, name, upload, 1, b"abc")
    page = browser.get(at("/uploads", bucket="photos"))
    assert "&lt;b&gt;" in page and "<b>&" not in page
    browser.post(at("/upload/abort", bucket="photos", name=name, upload=upload))
    assert "no begun uploads" in browser.page
    browser.send("GET", at("/upload/parts", bucket="photos", name=name, upload=upload))
    assert browser.status == 404


def test_what_s3_cannot_name_is_sent_whole(browser):
    assert begin(browser, "x" * 1000, 6) == {"whole": True}
    body = b"size=6&type="
    address = at("/upload/begin", bucket="a b", name="x")
    assert browser.send("POST", address, FORM, body) == {"whole": True}


@pytest.mark.parametrize(
    ("size", "parts_max", "expected"),
    [(1, 1000, 16), (16000, 1000, 16), (16001, 1000, 17), (16001, 10_000, 16), (1_000_000, 10_000, 100)],
)
def test_parts_grow_with_the_file(size, parts_max, expected, monkeypatch):
    class Api:
        def anonymous(self, _method, _path):
            class Found:
                is_success = True

                def read_body(self):
                    return b'{"s3api": {"max_upload_part_num": %d}}' % parts_max

            return Found()

    class Visit:
        api = Api()

    assert uploads._part_bytes(Visit(), size << 20) == expected << 20


def test_existing_names_are_told(browser):
    put(browser, "a")
    assert browser.send("GET", at("/upload/exists", bucket="photos", name="a")) == {"exists": True}
    assert browser.send("GET", at("/upload/exists", bucket="photos", name="b")) == {"exists": False}


def test_an_upload_needs_the_pages_token(browser):
    for path in ("/upload/whole", "/upload/part"):
        browser.send(
            "PUT", at(path, bucket="photos", name="a", upload="x", part="1"), {"x-csrf-token": "x"}, b"abc"
        )
        assert browser.status == 403
        browser.send("PUT", at(path, bucket="photos", name="a"), {"origin": "https://evil.example"}, b"abc")
        assert browser.status == 403
    assert get(browser, "a").status == 404


def test_an_upload_goes_on_after_a_new_log_in(browser):
    upload = begin(browser, "a", 6)["upload"]
    part(browser, "a", upload, 1, b"abc")
    browser.post("/console/logout")
    found = part(browser, "a", upload, 2, b"def")
    assert browser.status == 401 and found["log_in"] == "/console/login"
    assert browser.send("GET", "/console/session")["log_in"] == "/console/login"
    browser.post("/console/login", user="t:owner", key="owner-password")
    session = browser.send("GET", "/console/session")
    assert session["user"] == "t:owner" and session["csrf"] == browser.csrf
    part(browser, "a", upload, 2, b"def")
    complete(browser, "a", upload, 6)
    assert browser.status == 201 and get(browser, "a").body == b"abcdef"


def test_others_upload_nothing(browser):
    other = browser.world.browser("t:user")
    other.get("/console")
    other.send("PUT", at("/upload/whole", bucket="photos", name="a"), body=b"abc")
    assert other.status == 403
    begin(other, "a", 6)
    assert other.status == 403 and get(browser, "a").status == 404
