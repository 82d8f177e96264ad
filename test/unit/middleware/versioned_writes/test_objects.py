"""What becomes of uploads and deletions when something between the version and its link goes wrong."""

import pytest

from swift.base.limits import Limits
from swift.base.timestamp import Timestamp
from swift.compose import Cluster
from swift.gateway.info import container_key
from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings

LINK = "/v1/a/c/o"
HIDDEN = "/v1/a/%00versions%00c/%00o%00"


class Config:
    limits = Limits(container_listing_limit=10, account_listing_limit=10)


class Guesser:
    def guess(self, name):
        return f"type/of-{name}"


class App:
    """Answers by method and path; remembers what it was asked."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def handle(self, request):
        where = "hidden" if "%00" in request.raw_path else "link"
        request.body.read()
        self.asked.append((request.method, where, dict(request.headers), request))
        answer = self.answers.get(f"{request.method}_{where}", 404)
        return answer() if callable(answer) else error_response(answer, headers={"etag": "e"})

    def __call__(self, environ, start_response):
        raise NotImplementedError

    def methods(self):
        return [f"{method} {where}" for method, where, _headers, _request in self.asked]


def versioned(app, method="PUT", headers=None, *, query="", enabled="True", authorise=None, more=None):
    filter = VersionedWrites(
        app, VersionedWritesSettings(allow_object_versioning=True), (Cluster(Config, ()), Guesser())
    )
    filter.forward = app.handle
    filter._objects._forward = filter._containers._forward = app.handle
    sysmeta = {"versions-container": "%00versions%00c", "versions-enabled": enabled, **(more or {})}
    env = {environkeys.INFOCACHE: {container_key("a", "c"): {"status": 204, "sysmeta": sysmeta}}}
    if authorise:
        env[environkeys.AUTHORIZE] = authorise
    return filter.handle(Request(method, LINK, headers or {}, b"body", query=query, env=env))


def link_to(seconds, changed):
    target = f"%00versions%00c/%00o%00{Timestamp(seconds).inverted().normal}"
    headers = {
        fields.SYSMETA_SYMLINK_TARGET: target,
        fields.SYSMETA_VERSIONS_SYMLINK: "true",
        fields.BACKEND_TIMESTAMP: changed,
    }
    return lambda: Response(200, headers)


def test_an_upload_stores_a_version_and_then_the_link_a_moment_later():
    app = App(PUT_hidden=201, PUT_link=201)
    answer = versioned(app, headers={"x-object-meta-a": "1", "x-delete-at": "9999999999", "etag": "e"})
    assert answer.status == 201
    assert app.methods() == ["GET link", "PUT hidden", "PUT link"]
    version, link = app.asked[1][2], app.asked[2][2]
    assert answer.headers["x-object-version-id"] == version["x-timestamp"]
    assert link["x-timestamp"] == f"{version['x-timestamp']}_0000000000000001"
    assert "x-delete-at" in link and "x-delete-at" not in version
    assert "etag" in version and "etag" not in link
    assert version["content-type"] == link["content-type"] == "type/of-o"
    assert link[fields.SYSMETA_SYMLINK_TARGET_BYTES] == "4"


def test_two_uploads_of_one_moment_do_not_mix():
    app = App(PUT_hidden=202, PUT_link=201)
    assert versioned(app).status == 503
    assert "PUT link" not in app.methods()


@pytest.mark.parametrize("status, removes", ((412, True), (400, True), (503, False)))
def test_a_version_without_a_link_is_removed_if_the_link_is_surely_not_there(status, removes):
    app = App(PUT_hidden=201, PUT_link=status, DELETE_hidden=204)
    answer = versioned(app)
    assert answer.status == status and "x-object-version-id" not in answer.headers
    assert ("DELETE hidden" in app.methods()) is removes


def test_a_version_that_cannot_be_stored_leaves_the_object_alone():
    for status, told in ((422, 422), (503, 503), (404, 500)):
        app = App(PUT_hidden=status)
        try:
            answer = versioned(app)
        except Exception as error:
            answer = error.response
        assert answer.status == told
        assert "PUT link" not in app.methods()


def test_nothing_is_stored_for_who_may_not_write():
    app = App(PUT_hidden=201, PUT_link=201)
    for method, query in (("PUT", ""), ("DELETE", ""), ("PUT", "version-id=1"), ("DELETE", "version-id=1")):
        request_body = {"content-length": "0"} if query else {}
        try:
            answer = versioned(
                app, method, request_body, query=query, authorise=lambda _: error_response(403)
            )
        except Exception as error:
            answer = error.response
        assert answer.status in (400, 403)
    assert app.asked == []


def test_what_filters_ask_elsewhere_for_a_version_is_asked_with_the_callers_rights():
    asked = []

    def authorise(request):
        asked.append(request.raw_path)
        return

    app = App(PUT_hidden=201, PUT_link=201)
    versioned(app, authorise=authorise)
    sub = app.asked[1][3]
    del asked[:]
    allowed = sub.env[environkeys.AUTHORIZE]
    assert allowed(Request("PUT", f"{HIDDEN}8204770570.71501")) is None
    assert allowed(Request("HEAD", "/v1/other/c/o")) is None
    assert allowed(Request("PUT", "/v1/other/%00versions%00c/%00o%001")) is None
    assert asked == ["/v1/other/c/o", "/v1/other/%00versions%00c/%00o%001"]


def test_a_removed_version_takes_the_link_that_led_to_it_but_no_newer_one():
    changed = "0000000007.00000_0000000000000001"
    app = App(HEAD_link=link_to(5, changed), DELETE_hidden=204, DELETE_link=204)
    answer = versioned(app, "DELETE", query="version-id=5")
    assert answer.status == 204
    assert answer.headers["x-object-current-version-id"] == "null"
    assert app.methods() == ["HEAD link", "DELETE hidden", "HEAD link", "DELETE link"]
    # Not that of another request that removes the link: only one of them would reach each container server.
    stamp = Timestamp(app.asked[-1][2]["x-timestamp"])
    assert stamp.raw == Timestamp(7).raw and 1 < stamp.offset < 1 << 28
    versioned(app, "DELETE", query="version-id=5")
    assert app.asked[-1][2]["x-timestamp"] != stamp.internal


def test_a_removed_version_leaves_a_link_to_another_one():
    app = App(HEAD_link=link_to(6, "0000000006.00000"), DELETE_hidden=204)
    answer = versioned(app, "DELETE", query="version-id=5")
    assert answer.headers["x-object-current-version-id"] == "0000000006.00000"
    assert app.methods() == ["HEAD link", "DELETE hidden", "HEAD link"]


@pytest.mark.parametrize(
    ("status", "headers", "told"),
    [
        (404, {}, 404),
        (409, {}, 204),
        (412, {"if-match": "x"}, 412),
        (404, {"if-match": "x"}, 404),
        (409, {"if-match": "x"}, 409),
        (501, {"if-match": "x"}, 501),
        (503, {}, 503),
    ],
)
def test_a_refused_deletion_leaves_no_delete_marker(status, headers, told):
    """Only after an error of the cluster it is unknown whether the object was deleted."""
    app = App(PUT_hidden=201, DELETE_link=status, HEAD_link=link_to(6, "0000000006.00000"), DELETE_hidden=204)
    answer = versioned(app, "DELETE", dict(headers))
    assert answer.status == told
    is_done = (status, headers) in [(404, {}), (409, {})]
    assert ("x-object-version-id" in answer.headers) is is_done
    assert ("DELETE hidden" in app.methods()) is (not is_done and status != 503)


def test_a_suspended_container_stores_objects_as_they_come():
    app = App(PUT_link=201)
    assert "x-object-version-id" not in versioned(app, enabled="False").headers
    assert app.methods() == ["PUT link"]


LOCKED = {fields.SYSMETA_S3_LOCK_RULE.removeprefix(fields.CONTAINER_SYSMETA): "on"}


def version_with(lock):
    return lambda: Response(200, {fields.TRANSIENT_S3_LOCK: lock})


@pytest.mark.parametrize(
    "headers", [{"x-delete-after": "3"}, {"x-delete-at": "9999999999"}, {"x-object-meta-a": "b"}]
)
@pytest.mark.parametrize("lock", ["COMPLIANCE 9999999999 OFF", "GOVERNANCE 9999999999 OFF", "- 0 ON", "?"])
def test_a_refused_change_of_a_locked_version_does_not_change_the_link(headers, lock):
    app = App(HEAD_link=link_to(1000, "1000.00000"), HEAD_hidden=version_with(lock), POST_link=202)
    assert versioned(app, "POST", headers, more=LOCKED).status == 403
    assert app.methods() == ["HEAD link", "HEAD hidden"]


def test_the_lock_is_not_looked_up_for_callers_who_may_not_write():
    app = App(HEAD_link=link_to(1000, "1000.00000"))
    found = versioned(app, "POST", {}, more=LOCKED, authorise=lambda request: error_response(401))
    assert found.status == 401
    assert app.methods() == []


@pytest.mark.parametrize("lock", ["COMPLIANCE 1 OFF", "- 0 OFF"])
def test_metadata_changes_when_the_lock_is_over(lock):
    app = App(HEAD_link=link_to(1000, "1000.00000"), HEAD_hidden=version_with(lock), POST_link=202)
    assert versioned(app, "POST", {"x-object-meta-a": "b"}, more=LOCKED).status == 202


def test_a_version_that_cannot_be_read_is_not_taken_for_unlocked():
    app = App(HEAD_link=link_to(1000, "1000.00000"), HEAD_hidden=503, POST_link=202)
    with pytest.raises(HTTPError) as error:
        versioned(app, "POST", {"x-delete-after": "3"}, more=LOCKED)
    assert error.value.response.status == 503
    assert "POST link" not in app.methods()


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_the_access_lines_of_all_requests_of_the_filter_name_object_versioning(method):
    app = App(GET_link=404, PUT_hidden=201, PUT_link=201, DELETE_link=204)
    versioned(app, method)
    assert len(app.asked) > 1
    own = [request for *_, request in app.asked if request.env.get(environkeys.SOURCE)]
    assert own
    assert {request.env[environkeys.SOURCE] for request in own} == {"OV"}
