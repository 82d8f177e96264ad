"""Requests of other clusters come in with a realm's signature only (middleware.md §14)."""

import pytest

from swift.cluster.syncrealms import Realm, Realms
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.container_sync import ContainerSyncFilter, ContainerSyncFilterSettings

#: The worked example of account-container.md §17.
PATH, STAMP, NONCE = "/v1/AUTH_b/c2/obj%20x", "1402436408.91203", "00112233445566778899aabbccddeeff"
GOOD = "b1ca6fb16c03c2ad2c576c72203f9545afe1d161"
REALMS = Realms({"R": Realm("realm1key", "other"), "S": Realm("x", "realm1key"), "NONE": Realm("", "")})


class App:
    sync_key = "userkey"

    def handle(self, request):
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            return Response(
                204, {"x-container-sync-key": self.sync_key} if request.entity.path.container else {}
            )
        self.seen = request
        return Response(201)


def ask(auth, *, method="PUT", path=PATH, stamp=STAMP, app=None, **headers):
    app = app or App()
    app.seen = None
    sent = {"x-container-sync-auth": auth, "x-backend-inbound-x-timestamp": stamp, **headers}
    request = Request(method, path, sent)
    answer = ContainerSyncFilter(app, ContainerSyncFilterSettings(), REALMS).handle(request)
    return answer, app.seen, ",".join(request.env.get("swift.log_info", []))


@pytest.mark.parametrize("realm", ["R", "r", "S"])
def test_a_good_signature_lets_in_what_is_stored_as_it_comes(realm):
    answer, seen, info = ask(f"{realm} {NONCE} {GOOD}")
    assert (answer.status, info) == (201, "cs:valid")
    assert seen.headers["x-timestamp"] == STAMP
    for name in ("swift.authorize_override", "swift.slo_override", "swift.symlink_override"):
        assert seen.env[name] is True


@pytest.mark.parametrize(
    ("auth", "changes", "info"),
    [
        (f"R {NONCE} {GOOD[:-1]}0", {}, "cs:invalid-sig"),
        (f"R {NONCE}0 {GOOD}", {}, "cs:invalid-sig"),
        (f"R {NONCE} {GOOD}", {"method": "DELETE"}, "cs:invalid-sig"),
        (f"R {NONCE} {GOOD}", {"path": "/v1/AUTH_b/c2/obj"}, "cs:invalid-sig"),
        (f"R {NONCE} {GOOD}", {"stamp": "1402436408.91204"}, "cs:invalid-sig"),
        (f"X {NONCE} {GOOD}", {}, "cs:no-local-realm-key"),
        (f"NONE {NONCE} {GOOD}", {}, "cs:no-local-realm-key"),
        (f"R {GOOD}", {}, "cs:not-3-args"),
        (f"R {NONCE} {GOOD} x", {}, "cs:not-3-args"),
        (f"R {NONCE} \xff", {}, "cs:invalid-sig"),
    ],
)
def test_anything_else_is_refused(auth, changes, info):
    answer, seen, told = ask(auth, **changes)
    assert (answer.status, seen, told) == (401, None, info)
    assert answer.headers["www-authenticate"] == 'SwiftContainerSync realm="AUTH_b"'


def test_a_container_without_a_key_takes_nothing():
    app = App()
    app.sync_key = ""
    assert ask(f"R {NONCE} {GOOD}", app=app)[2] == "cs:no-local-user-key"


@pytest.mark.parametrize(("value", "status"), [("http://x/y", 400), ("//r/c/a/c", 201), ("", 201)])
def test_full_urls_can_be_forbidden(value, status):
    for method in ("PUT", "POST"):
        filter_ = ContainerSyncFilter(App(), ContainerSyncFilterSettings(allow_full_urls=False), REALMS)
        answer = filter_.handle(Request(method, "/v1/a/c", {"x-container-sync-to": value}))
        assert answer.status == status


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("http://x/v1/a/c", 201),
        ("http://x/sda/77/AUTH_other/c", 400),
        ("http://x/v1/a", 400),
        ("http://u@x/v1/a/c", 400),
        ("ftp://x/v1/a/c", 400),
    ],
)
def test_a_full_url_is_one_of_a_container(value, status):
    filter_ = ContainerSyncFilter(App(), ContainerSyncFilterSettings(), REALMS)
    for method in ("PUT", "POST"):
        assert filter_.handle(Request(method, "/v1/a/c", {"x-container-sync-to": value})).status == status
