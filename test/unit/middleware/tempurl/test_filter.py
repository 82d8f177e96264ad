"""A link does what was signed and nothing else (middleware.md §3)."""

import hmac

import pytest

from swift.base.clock import ManualClock
from swift.compose import PROCESS_KEY, Process
from swift.gateway.subrequest import make_subrequest
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.tempurl.filter import FILTER, TempURL, TempURLSettings

NOW = 1_795_232_000
LATER = NOW + 60
PATH = "/v1/AUTH_test/tu/a b/o.txt"
RAW = "/v1/AUTH_test/tu/a%20b/o.txt"


class App:
    """Behind the filter: keys of accounts and containers, and the last request that came through."""

    def __init__(self):
        self.account = {"x-account-meta-temp-url-key": "mykey"}
        self.container = {"x-container-meta-temp-url-key-2": "ckey"}
        self.answer = {"x-object-meta-a": "1", "x-object-meta-public-b": "2"}
        self.status = 200
        self.seen = None

    def handle(self, request):
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            own = self.container if request.entity.path.container else self.account
            return Response(204, dict(own))
        self.seen = request
        return Response(self.status, dict(self.answer))


class Bench:
    def __init__(self, **options):
        self.app = App()
        self.clock = ManualClock(NOW)
        self.filter = TempURL(self.app, TempURLSettings.parse(options), clock=self.clock)

    def ask(self, method, raw, query, headers=None, *, address="10.1.2.3", env=None):
        self.app.seen = None
        request = Request(method, raw, dict(headers or {}), query=query, remote_addr=address, env=env or {})
        return self.filter.handle(request)

    def link(self, method="GET", raw=RAW, path=PATH, *, verb=None, more="", headers=None, **how):
        address = how.pop("address", "10.1.2.3")
        return self.ask(method, raw, signed(verb or method, path, **how) + more, headers, address=address)


def signed(method, path, *, expires=LATER, key="mykey", digest="sha256", ip=None, prefix=None):
    if prefix is not None:
        path = f"prefix:{path}"
    text = f"{method}\n{expires}\n{path}"
    if ip is not None:
        text = f"ip={ip}\n{text}"
    value = hmac.new(key.encode(), text.encode(), digest).hexdigest()
    query = f"temp_url_sig={value}&temp_url_expires={expires}"
    if ip is not None:
        query += f"&temp_url_ip_range={ip}"
    return query if prefix is None else f"{query}&temp_url_prefix={prefix}"


@pytest.fixture
def bench():
    return Bench()


def test_the_worked_example_of_the_specification(bench):
    sig = "3ffc649a9376f176d7b914c54080b9c81c2ff167da8bf9a341f7d0405b2d6d7c"
    query = f"temp_url_sig={sig}&temp_url_expires=1795232865"
    assert bench.ask("GET", RAW, query).status == 200


def test_what_is_no_link_is_left_alone(bench):
    for method, query in (
        ("GET", ""),
        ("GET", "temp_url_prefix=a"),
        ("GET", "a=b"),
        ("OPTIONS", "temp_url_sig=x"),
    ):
        assert bench.ask(method, RAW, query, {"x-timestamp": "1"}).status == 200
        assert bench.app.seen.headers == {"x-timestamp": "1"}
        assert "swift.authorize" not in bench.app.seen.env


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_a_link_is_for_its_method(bench, method):
    assert bench.link(method).status == 200
    others = {"GET", "HEAD", "PUT", "POST", "DELETE", "COPY", "PATCH"} - {method}
    if method in ("GET", "PUT", "POST"):
        assert bench.link("HEAD", verb=method).status == 200
        others.discard("HEAD")
    for other in others:
        assert bench.link(other, verb=method).status == 401, other
        assert bench.app.seen is None


def test_methods_can_be_taken_away():
    bench = Bench(methods="GET")
    assert bench.link("GET").status == 200
    assert bench.link("PUT").status == 401


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (RAW + "x", PATH),
        ("/v1/AUTH_test/tu/a%20b/o.tx", PATH),
        ("/v1/AUTH_test/tu2/a%20b/o.txt", PATH),
        ("/v1/AUTH_test2/tu/a%20b/o.txt", PATH),
        ("/v1.0/AUTH_test/tu/a%20b/o.txt", PATH),
        ("/v1.0/AUTH_test/tu/a%20b/o.txt", PATH.replace("v1", "v1.0")),
        ("/v2/AUTH_test/tu/a%20b/o.txt", PATH),
        ("/v1/AUTH_test/tu/a%2520b/o.txt", PATH),
        ("/v1/AUTH_test/tu/x/../a%20b/o.txt", PATH),
        ("/v1/AUTH_test/tu//a%20b/o.txt", PATH),
        ("/v1/AUTH_test/tu", "/v1/AUTH_test/tu"),
        ("/v1/AUTH_test/tu/", "/v1/AUTH_test/tu/"),
        ("/v1/AUTH_test", "/v1/AUTH_test"),
        ("/v1/AUTH_test/tu/%ff", "/v1/AUTH_test/tu/\xff"),
        ("/info", "/info"),
        ("/", "/"),
    ],
)
def test_a_link_is_for_its_path(bench, raw, path):
    assert bench.link(raw=raw, path=path).status == 401
    assert bench.app.seen is None


@pytest.mark.parametrize("raw", [RAW, "/v1/AUTH_test/tu/a%20b%2Fo.txt", "/v1/AUTH_test%2Ftu/a%20%62/o.txt"])
def test_a_path_means_the_same_however_it_is_written(bench, raw):
    # %2F separates as a slash does, here as in every server behind.
    assert bench.link(raw=raw).status == 200
    assert str(bench.app.seen.entity.path) == PATH[3:]


def test_a_link_ends(bench):
    assert bench.link().status == 200
    bench.clock.advance(61)
    assert bench.link().status == 401
    assert bench.link(expires=10**20).status == 401


def test_time_and_path_cannot_be_exchanged(bench):
    query = signed("GET", PATH).replace(str(LATER), str(LATER + 1))
    assert bench.ask("GET", RAW, query).status == 401


@pytest.mark.parametrize("digest", ["sha1", "sha256", "sha512"])
def test_a_digest_that_was_taken_away_signs_nothing(digest):
    assert Bench().link(digest=digest).status == 200
    left = " ".join({"sha1", "sha256", "sha512"} - {digest})
    assert Bench(allowed_digests=left).link(digest=digest).status == 401


@pytest.mark.parametrize(
    ("range_", "address", "status"),
    [
        ("10.1.2.3", "10.1.2.3", 200),
        ("10.1.2.3", "10.1.2.4", 401),
        ("10.1.0.0/16", "10.1.2.4", 200),
        ("10.1.0.0/16", "10.2.2.4", 401),
        ("10.1.2.3/16", "10.1.2.3", 401),
        ("::/0", "10.1.2.3", 401),
        ("fe80::/10", "fe80::1", 200),
        ("10.1.0.0/16", "::ffff:10.1.2.4", 200),
        ("10.1.0.0/16", "::ffff:10.2.2.4", 401),
        ("x", "10.1.2.3", 401),
        ("", "10.1.2.3", 401),
        ("10.1.2.3", "", 401),
    ],
)
def test_a_link_may_be_for_some_addresses(bench, range_, address, status):
    assert bench.link(ip=range_, address=address).status == status


def test_the_range_of_addresses_is_part_of_what_is_signed(bench):
    plain = signed("GET", PATH)
    assert bench.ask("GET", RAW, plain + "&temp_url_ip_range=").status == 200, "an empty range is none"
    assert bench.ask("GET", RAW, plain + "&temp_url_ip_range=10.0.0.0/8").status == 401
    bound = signed("GET", PATH, ip="10.0.0.0/8").partition("&temp_url_ip_range")[0]
    assert bench.ask("GET", RAW, bound).status == 401
    forwarded = {"x-forwarded-for": "11.1.1.1", "x-cluster-client-ip": "11.1.1.1"}
    assert bench.link(ip="11.1.1.1", headers=forwarded).status == 401, "a client does not choose its address"


@pytest.mark.parametrize(
    ("prefix", "raw", "method", "status"),
    [
        ("a b/", RAW, "GET", 200),
        ("a", RAW, "GET", 200),
        ("", RAW, "GET", 200),
        ("a b/o.txt", RAW, "PUT", 200),
        ("a b/o.txtx", RAW, "GET", 401),
        ("b", RAW, "GET", 401),
        ("", "/v1/AUTH_test/tu", "GET", 200),
        ("", "/v1/AUTH_test/tu/", "HEAD", 200),
        ("", "/v1/AUTH_test/tu", "PUT", 401),
        ("", "/v1/AUTH_test/tu", "DELETE", 401),
        ("a", "/v1/AUTH_test/tu", "GET", 401),
        ("", "/v1/AUTH_test", "GET", 401),
        ("", "/v1/AUTH_test/tu2/a", "GET", 401),
        ("a", "/v1/AUTH_test/tu2/a", "GET", 401),
    ],
)
def test_a_prefix_is_for_what_begins_with_it(bench, prefix, raw, method, status):
    answer = bench.link(method, raw=raw, path=f"/v1/AUTH_test/tu/{prefix}", prefix=prefix)
    assert answer.status == status


def test_a_prefix_and_a_path_are_signed_differently(bench):
    as_prefix = signed("GET", "/v1/AUTH_test/tu/a", prefix="a").partition("&temp_url_prefix")[0]
    assert bench.ask("GET", "/v1/AUTH_test/tu/a", as_prefix).status == 401
    assert (
        bench.ask(
            "GET", "/v1/AUTH_test/tu/a", signed("GET", "/v1/AUTH_test/tu/a") + "&temp_url_prefix=a"
        ).status
        == 401
    )
    wider = signed("GET", "/v1/AUTH_test/tu/a b/", prefix="a b/").replace(
        "temp_url_prefix=a b/", "temp_url_prefix=a"
    )
    assert bench.ask("GET", RAW, wider).status == 401


def test_keys_that_are_not_there_sign_nothing(bench):
    bench.app.account = bench.app.container = {}
    for key in ("mykey", "ckey", ""):
        assert bench.link(key=key).status == 401
    bench.app.account = {"x-account-meta-temp-url-key": "", "x-account-meta-temp-url-key-3": "other"}
    for key in ("", "other"):
        assert bench.link(key=key).status == 401


@pytest.mark.parametrize("kind", ["account", "container"])
@pytest.mark.parametrize("name", ["temp-url-key", "temp-url-key-2"])
def test_accounts_and_containers_have_two_keys_each(bench, kind, name):
    setattr(bench.app, kind, {f"x-{kind}-meta-{name}": "k\xc3\xa9y"})
    assert bench.link(key="k\xe9y").status == 200


# --- what a valid link may do -------------------------------------------------------------------------


def verdict(bench, method, path, source=None):
    sub = make_subrequest(bench.app.seen, method, path, source=source)
    denial = sub.env["swift.authorize"](sub)
    return None if denial is None else denial.status


@pytest.mark.parametrize(("key", "same_account"), [("mykey", None), ("ckey", 401)])
def test_segments_are_read_where_the_key_governs(bench, key, same_account):
    bench.link(key=key)
    assert verdict(bench, "GET", "/v1/AUTH_test/tu/other", "SLO") is None
    assert verdict(bench, "GET", "/v1/AUTH_test/else/o", "SLO") == same_account
    assert verdict(bench, "GET", "/v1/AUTH_other/tu/o", "SLO") == 401


def test_sub_requests_stay_in_what_was_signed(bench):
    bench.link()
    assert verdict(bench, "GET", RAW) is None
    assert verdict(bench, "GET", "/v1/AUTH_test/tu/other") == 401
    bench.link(path="/v1/AUTH_test/tu/a ", prefix="a ")
    assert verdict(bench, "GET", "/v1/AUTH_test/tu/a%20other") is None
    assert verdict(bench, "GET", "/v1/AUTH_test/tu/b") == 401
    assert verdict(bench, "GET", "/v1/AUTH_test/tu", "SW") == 401
    assert verdict(bench, "GET", "/v1/AUTH_test/tu") == 401
    assert verdict(bench, "GET", "/nothing") == 401


def test_a_link_for_reading_never_writes(bench):
    bench.link("GET")
    for method in ("PUT", "POST", "DELETE", "COPY", "UPDATE"):
        assert verdict(bench, method, RAW) == 401
    bench.link("PUT")
    assert verdict(bench, "PUT", RAW) is None


def test_nobody_becomes_an_owner_by_a_link(bench):
    bench.filter.handle(Request("GET", RAW, {}, query=signed("GET", PATH), env={"swift_owner": True}))
    env = bench.app.seen.env
    assert (env["swift_owner"], env["REMOTE_USER"]) == (False, ".wsgi.tempurl")
    assert env["swift.authorize_override"] is True
    env["swift_owner"] = True
    assert env["swift.authorize"](bench.app.seen) is None
    assert env["swift_owner"] is False


@pytest.mark.parametrize("name", ["x-object-manifest", "x-symlink-target", "x-copy-from"])
@pytest.mark.parametrize("value", ["", "a/b"])
def test_what_is_written_by_a_link_points_to_nothing_else(bench, name, value):
    for method in ("PUT", "POST", "DELETE"):
        answer = bench.link(method, headers={name: value})
        assert answer.status == 400
        assert answer.body.decode() == f"The header '{name.title()}' is not allowed in this tempurl"
    assert bench.link("GET", headers={name: value}).status == 200


def test_headers_that_are_not_the_clients_are_dropped(bench):
    sent = {"x-timestamp": "1", "x-open-expired": "true", "x-object-meta-k": "v"}
    bench.link("PUT", headers=sent)
    assert bench.app.seen.headers == {"x-object-meta-k": "v", "user-agent": "TempURL"}
    other = Bench(incoming_remove_headers="x-object-* x-y", incoming_allow_headers="x-object-meta-ok-* X-Y")
    other.link(
        "PUT", headers={"x-object-meta-no": "1", "x-object-meta-ok-a": "2", "x-y": "3", "user-agent": "curl"}
    )
    kept = {"x-object-meta-ok-a": "2", "x-y": "3", "user-agent": "curl TempURL"}
    assert other.app.seen.headers == kept


def test_the_links_own_parameters_go_no_further(bench):
    bench.link(more="&inline&filename=x&temp%5Furl%5Fip%5Frange2=1&a=%26temp_url_sig&prefix=&format=json")
    assert bench.app.seen.query == ""
    bench.ask("GET", RAW, signed("GET", PATH).replace("temp_url_sig", "%74emp_url_sig"))
    assert bench.app.seen.query == ""


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize(
    "parameter",
    [
        *("multipart-manifest=put", "multipart%2Dmanifest=delete", "multipart-manifest=get&part-number=1"),
        *("version-id=1", "versions", "symlink=get", "extract-archive=tar", "bulk-delete"),
    ],
)
def test_no_parameter_makes_another_request_of_a_link(bench, method, parameter):
    answer = bench.link(method, more=f"&{parameter}")
    assert (answer.status, bench.app.seen) == (400, None)
    assert b"is not allowed in this tempurl" in answer.read_body()


@pytest.mark.parametrize(
    ("method", "query"), [("GET", "part-number=2"), ("HEAD", "part-number=2"), ("PUT", "")]
)
def test_a_part_may_be_read(bench, method, query):
    bench.link(method, more="&part-number=2")
    assert bench.app.seen.query == query


def test_a_link_for_a_prefix_is_handed_on_to_pages(bench):
    bench.link(path="/v1/AUTH_test/tu/a ", prefix="a ", ip="10.0.0.0/8", more="&filename=x&inline")
    query, prefix = bench.app.seen.env["swift.tempurl.link"]
    again = bench.ask("GET", "/v1/AUTH_test/tu/a%20x", query)
    assert (again.status, prefix, "filename" in query) == (200, "a ", False)
    assert query.startswith("temp_url_prefix=a%20&temp_url_expires=")
    assert query.endswith("&temp_url_ip_range=10.0.0.0/8&inline")
    bench.link()
    assert "swift.tempurl.link" not in bench.app.seen.env


@pytest.mark.parametrize(
    ("more", "own", "wanted"),
    [
        ("", None, "attachment; filename=\"o.txt\"; filename*=UTF-8''o.txt"),
        ("", "inline; x=y", "inline; x=y"),
        ("&inline", "attachment", "inline"),
        ("&inline=1&filename=x", None, "inline; filename=\"x\"; filename*=UTF-8''x"),
        ("&filename=", "own", "own"),
        (
            "&filename=na%C3%AFve%20%22q%22.txt",
            "own",
            "attachment; filename=\"na%C3%AFve %22q%22.txt\"; filename*=UTF-8''na%C3%AFve%20%22q%22.txt",
        ),
        ("&filename=x%0d%0aY:", None, "attachment; filename=\"x%0D%0AY%3A\"; filename*=UTF-8''x%0D%0AY%3A"),
        ("&filename=%ff", None, "attachment; filename=\"%EF%BF%BD\"; filename*=UTF-8''%EF%BF%BD"),
    ],
)  # fmt: skip
def test_a_browser_is_told_what_to_do_with_it(bench, more, own, wanted):
    if own is not None:
        bench.app.answer["content-disposition"] = own
    headers = bench.link(more=more).headers
    assert headers["content-disposition"] == wanted
    assert headers["expires"] == "Sat, 21 Nov 2026 03:34:20 GMT"


def test_metadata_is_hidden_from_readers_but_for_what_is_public(bench):
    headers = bench.link().headers
    assert "x-object-meta-a" not in headers
    assert headers["x-object-meta-public-b"] == "2"


@pytest.mark.parametrize("status", [304, 404, 416, 503])
def test_errors_have_no_disposition(bench, status):
    bench.app.status = status
    headers = bench.link().headers
    assert "content-disposition" not in headers
    assert "expires" not in headers


def test_info_tells_what_is_allowed():
    process = Process()
    FILTER.build(App(), {PROCESS_KEY: process, "methods": "GET PUT"})
    assert process.info.public()["tempurl"] == {
        "methods": ["GET", "PUT"],
        "incoming_remove_headers": ["x-timestamp", "x-open-expired"],
        "incoming_allow_headers": [],
        "outgoing_remove_headers": ["x-object-meta-*"],
        "outgoing_allow_headers": ["x-object-meta-public-*"],
        "allowed_digests": ["sha1", "sha256", "sha512"],
        "deprecated_digests": ["sha1"],
    }


# --- browsers -----------------------------------------------------------------------------------------

ORIGIN = {"origin": "http://a.example"}


@pytest.mark.parametrize(
    ("allowed", "shown"),
    [
        ("http://b.example http://a.example", "http://a.example"),
        ("*", "*"),
        ("http://b.example", None),
        ("", None),
    ],
)
def test_a_refused_link_can_be_read_by_the_scripts_of_the_containers_origins(bench, allowed, shown):
    bench.app.container["x-container-meta-access-control-allow-origin"] = allowed
    for answer in (
        bench.link(expires=NOW - 1, headers=ORIGIN),
        bench.link(key="other", headers=ORIGIN),
        bench.link(more="&version-id=1", headers=ORIGIN),
    ):
        assert answer.status in (400, 401)
        assert answer.headers.get("access-control-allow-origin") == shown
        assert ("vary" in answer.headers) == (shown == ORIGIN["origin"])
    assert "access-control-allow-origin" not in bench.link(key="other").headers
