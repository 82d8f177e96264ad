"""The smaller filters, each with its rules (middleware.md §15)."""

import pytest

from swift.base.errors import ConfigError
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.cname_lookup import CnameLookup, CnameLookupSettings
from swift.middleware.crossdomain import Crossdomain, CrossdomainSettings
from swift.middleware.domain_remap import DomainRemap, DomainRemapSettings
from swift.middleware.etag_quoter import EtagQuoter, EtagQuoterSettings
from swift.middleware.name_check import NameCheck, NameCheckSettings
from swift.middleware.read_only import ReadOnly, ReadOnlySettings
from swift.middleware.xprofile import Xprofile, XprofileSettings
from test.support.sim import MemoryCache


class App:
    """Accounts and containers with system metadata; remembers the last request."""

    def __init__(self, **answer):
        self.answer = answer
        self.account = {}
        self.container = {}
        self.seen = None

    def handle(self, request):
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            path = request.entity.path
            return Response(
                204, self.account.get(path.account, {}) if path.container is None else self.container
            )
        self.seen = request
        return Response(200, {name.replace("_", "-"): value for name, value in self.answer.items()})


def ask(filter_, method="GET", path="/v1/AUTH_a/c/o", headers=None, **more):
    return filter_.handle(Request(method, path, dict(headers or {}), **more))


# --- crossdomain, xprofile --------------------------------------------------------------------------


def test_the_policy_file_has_what_the_operator_wrote():
    filter_ = Crossdomain(App(), CrossdomainSettings(cross_domain_policy="<allow/>"))
    answer = ask(filter_, path="/crossdomain.xml")
    assert answer.headers["content-type"] == "application/xml"
    assert answer.body.endswith(b"<cross-domain-policy>\n<allow/>\n</cross-domain-policy>")
    for method, path in (("PUT", "/crossdomain.xml"), ("GET", "/crossdomain.xml/"), ("GET", "/v1/a")):
        assert ask(filter_, method, path).body == b""


@pytest.mark.parametrize(
    ("path", "status"), [("/__profile__", 501), ("/__profile__/all", 501), ("/__profile__x", 200)]
)
def test_profiles_are_not_taken_here(path, status):
    assert ask(Xprofile(App(), XprofileSettings()), path=path).status == status


# --- etag_quoter --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("default", "account", "container", "etag"),
    [
        (False, None, None, "abc"),
        (True, None, None, '"abc"'),
        (True, "False", None, "abc"),
        (False, "True", None, '"abc"'),
        (False, "True", "False", "abc"),
        (True, "False", "True", '"abc"'),
        (False, "True", "", '"abc"'),
    ],
)
def test_who_is_nearest_decides_about_quotes(default, account, container, etag):
    app = App(etag="abc")
    if account is not None:
        app.account["AUTH_a"] = {"x-account-sysmeta-rfc-compliant-etags": account}
    if container is not None:
        app.container = {"x-container-sysmeta-rfc-compliant-etags": container}
    filter_ = EtagQuoter(app, EtagQuoterSettings(enable_by_default=default))
    assert ask(filter_).headers["etag"] == etag


@pytest.mark.parametrize("etag", ['"abc"', 'W/"abc"'])
def test_nothing_is_quoted_twice(etag):
    assert ask(EtagQuoter(App(etag=etag), EtagQuoterSettings(enable_by_default=True))).headers["etag"] == etag


@pytest.mark.parametrize(("kind", "path"), [("account", "/v1/AUTH_a"), ("container", "/v1/AUTH_a/c")])
def test_the_wish_is_stored_as_yes_or_no(kind, path):
    stored = f"x-{kind}-sysmeta-rfc-compliant-etags"
    for headers, value in (
        ({f"x-{kind}-rfc-compliant-etags": "yes"}, "True"),
        ({f"x-{kind}-rfc-compliant-etags": "junk"}, "False"),
        ({f"x-{kind}-rfc-compliant-etags": ""}, ""),
        ({f"x-remove-{kind}-rfc-compliant-etags": "x"}, ""),
    ):
        app = App()
        ask(EtagQuoter(app, EtagQuoterSettings()), "POST", path, headers)
        assert app.seen.headers[stored] == value


# --- name_check ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v1/a/c/o%22", "Object/Container/Account name contains forbidden chars from '\"`<>"),
        ("/v1/a/c/" + "x" * 248, "Object/Container/Account name longer than the allowed maximum 255"),
        ("/v1/a/c/" + "%C3%A9" * 124, "Object/Container/Account name longer than the allowed maximum 255"),
        ("/v1/a/c/%2e%2e/o", "Object/Container/Account name contains a forbidden substring"),
        ("/v1/a/c/..", "Object/Container/Account name contains a forbidden substring"),
    ],
)  # fmt: skip
def test_names_that_are_not_wanted_are_refused(path, text):
    app = App()
    answer = ask(NameCheck(app, NameCheckSettings()), "PUT", path)
    assert answer.status == 400
    assert answer.body.decode().startswith(text)
    assert app.seen is None


@pytest.mark.parametrize(
    "path", ["/v1/a/c/o", "/v1/a/c/" + "x" * 247, "/v1/a/c/.o", "/v1/a/c/..o", "/v1/a/c/%ff"]
)
def test_other_names_pass(path):
    assert ask(NameCheck(App(), NameCheckSettings()), "PUT", path).status == 200


def test_a_pattern_that_is_none_is_an_error_at_the_start():
    with pytest.raises(ConfigError, match="forbidden_regexp"):
        NameCheck(App(), NameCheckSettings(forbidden_regexp="("))


# --- read_only ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("default", "own", "writable"),
    [
        (False, None, True),
        (True, None, False),
        (True, "false", True),
        (False, "true", False),
        (True, "", False),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "COPY"])
def test_an_account_says_itself_whether_it_is_written_to(default, own, writable, method):
    app = App()
    if own is not None:
        app.account["AUTH_a"] = {"x-account-sysmeta-read-only": own}
    filter_ = ReadOnly(app, ReadOnlySettings(read_only=default))
    for path in ("/v1/AUTH_a", "/v1/AUTH_a/c", "/v1/AUTH_a/c/o"):
        app.seen = None
        answer = ask(filter_, method, path)
        assert answer.status == (200 if writable else 405)
        assert (app.seen is not None) == writable
        assert writable or answer.body == b"Writes are disabled for this account."
        assert ask(filter_, "GET", path).status == 200


def test_deletes_can_be_let_through():
    filter_ = ReadOnly(App(), ReadOnlySettings(read_only=True, allow_deletes=True))
    assert [ask(filter_, method).status for method in ("DELETE", "PUT")] == [200, 405]


@pytest.mark.parametrize(("target", "status"), [("AUTH_b", 405), ("AUTH%5Fb", 405), ("AUTH_c", 200)])
def test_a_copy_writes_to_its_destination(target, status):
    app = App()
    app.account = {name: {"x-account-sysmeta-read-only": "true"} for name in ("AUTH_a", "AUTH_b")}
    headers = {"destination-account": target}
    assert ask(ReadOnly(app, ReadOnlySettings()), "COPY", headers=headers).status == status


# --- domain_remap -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "path", "wanted"),
    [
        ("auth-a.example.com", "/", "/v1/AUTH_a/"),
        ("AUTH_a.EXAMPLE.com:80", "/c/o", "/v1/AUTH_a/c/o"),
        ("c.auth-a.example.com", "/o%2Fx", "/v1/AUTH_a/c/o%2Fx"),
        ("c.auth-a-b.example.com", "/o", "/v1/AUTH_a-b/c/o"),
        ("example.com", "/o", "/o"),
        ("other.com", "/o", "/o"),
        ("else.example.com", "/o", "/o"),
        (".example.com", "/o", "/o"),
        ("a..example.com", "/o", "/o"),
        ("evilexample.com", "/o", "/o"),
    ],
)
def test_names_in_the_host_go_into_the_path(host, path, wanted):
    app = App()
    ask(DomainRemap(app, DomainRemapSettings()), path=path, headers={"host": host})
    assert app.seen.raw_path == wanted


def test_too_many_names_are_refused():
    answer = ask(DomainRemap(App(), DomainRemapSettings()), headers={"host": "x.c.auth-a.example.com"})
    assert (answer.status, answer.body) == (400, b"Bad domain in host header")


def test_an_unknown_account_may_get_a_prefix():
    app = App()
    ask(
        DomainRemap(app, DomainRemapSettings(default_reseller_prefix="SRV")),
        path="/o",
        headers={"host": "x-y.example.com"},
    )
    assert app.seen.raw_path == "/v1/SRV_x-y/o"


def test_the_clients_own_root_can_be_left_out():
    app = App()
    filter_ = DomainRemap(app, DomainRemapSettings(mangle_client_paths=True))
    for path, wanted in (("/v1/o", "/v1/AUTH_a/o"), ("/v1", "/v1/AUTH_a/"), ("/v10/o", "/v1/AUTH_a/v10/o")):
        ask(filter_, path=path, headers={"host": "auth-a.example.com"})
        assert app.seen.raw_path == wanted


def test_clients_are_sent_to_places_they_know():
    app = App(location="http://c.auth-a.example.com/v1/AUTH_a/c/dir/")
    answer = ask(
        DomainRemap(app, DomainRemapSettings()), path="/dir", headers={"host": "c.auth-a.example.com"}
    )
    assert answer.headers["location"] == "http://c.auth-a.example.com/dir/"


# --- cname_lookup -------------------------------------------------------------------------------------


ALIASES = {
    "files.customer.org": "c.auth-a.example.com",
    "two.customer.org": "files.customer.org",
    "loop.org": "loop.org",
}


def cname(app, asked, **options):
    def lookup(name):
        asked.append(name)
        return 60.0, ALIASES.get(name)

    return CnameLookup(app, CnameLookupSettings.parse(options), lookup)


@pytest.mark.parametrize(
    ("host", "depth", "wanted"),
    [
        ("files.customer.org", "1", "c.auth-a.example.com"),
        ("FILES.customer.org:8080", "1", "c.auth-a.example.com:8080"),
        ("two.customer.org", "2", "c.auth-a.example.com"),
        ("c.example.com", "1", "c.example.com"),
        ("example.com", "1", "example.com"),
        ("10.0.0.1:80", "1", "10.0.0.1:80"),
        ("[::1]:80", "1", "[::1]:80"),
        ("", "1", ""),
    ],
)
def test_an_alias_of_ours_becomes_ours(host, depth, wanted):
    app = App()
    assert ask(cname(app, [], lookup_depth=depth), headers={"host": host}).status == 200
    assert app.seen.headers["host"] == wanted


@pytest.mark.parametrize(
    ("host", "depth", "text"),
    [
        ("two.customer.org", "1", b"CNAME lookup failed after 1 tries"),
        ("loop.org", "5", b"CNAME lookup failed after 5 tries"),
        ("nobody.org", "3", b"CNAME lookup failed to resolve to a valid domain"),
    ],
)
def test_others_are_refused(host, depth, text):
    answer = ask(cname(App(), [], lookup_depth=depth), headers={"host": host})
    assert (answer.status, answer.body) == (400, text)


def test_answers_of_name_servers_are_remembered():
    asked, env = [], {"swift.cache": MemoryCache()}
    filter_ = cname(App(), asked)
    for host in ("files.customer.org", "nobody.org") * 3:
        ask(filter_, headers={"host": host}, env=dict(env))
    assert asked == ["files.customer.org", "nobody.org"]
    assert env["swift.cache"].values["cname-files.customer.org"] == "c.auth-a.example.com"


def test_redirects_keep_the_name_that_the_client_knows():
    app = App(location="http://c.auth-a.example.com/dir/")
    answer = ask(cname(app, []), headers={"host": "files.customer.org"})
    assert answer.headers["location"] == "http://files.customer.org/dir/"
