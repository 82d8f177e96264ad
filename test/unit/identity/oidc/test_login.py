"""Log-in of people: both ends of the code flow, and what must not get through it."""

import hashlib
from urllib.parse import urlsplit

import pytest

from swift.base.errors import InvalidValue
from swift.http.request import Request
from swift.http.response import Response
from swift.identity.oidc.attempts import LIFETIME_S, Attempts
from swift.identity.oidc.login import LoginResult, PeopleLogin, check_return_to
from swift.identity.oidc.tokens import encode_base64url
from test.support.checks import every
from test.support.oidc import FakeProvider, query_of

KEY = b"k" * 32
PUBLIC = "https://swift.example"


class Browser:
    """A browser with cookies, in front of the log-in and of providers in memory."""

    def __init__(self, *providers, key=KEY, public_url=PUBLIC):
        self.providers = providers or (FakeProvider(),)
        self.verifiers = {each.provider.name: each.verifier() for each in self.providers}
        self.cookies = {}
        self.lines = []
        self.clock = self.providers[0].clock
        self.login = PeopleLogin(
            self.verifiers.get, key, self.clock, log=self.lines.append, public_url=public_url
        )

    def request(self, path, query="", method="GET"):
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return Request(method, path, {"cookie": cookie} if cookie else {}, query=query)

    def keep(self, headers):
        if "set-cookie" in headers:
            pair, _, attributes = headers["set-cookie"].partition("; ")
            name, _, value = pair.partition("=")
            self.cookies[name] = value
            if "Max-Age=0" in attributes:
                del self.cookies[name]

    def begin(self, query="", name="main", method="GET"):
        found = self.login.begin(self.request(f"/auth/oidc/{name}/login", query, method))
        self.keep(found.headers)
        return found

    def finish(self, query, name="main", method="GET"):
        found = self.login.finish(self.request(f"/auth/oidc/{name}/callback", query, method))
        self.keep(found.headers)
        return found

    def sent(self, query="", name="main"):
        """Begin a log-in; return the parameters that the provider gets."""
        return query_of(self.begin(query, name).headers["location"])

    def grant(self, sent, provider=None, **claims):
        """Have a provider give a token for the log-in, which checks what it gets as providers do."""
        provider = provider or self.providers[0]

        def tokens(form):
            digest = encode_base64url(hashlib.sha256(form["code_verifier"].encode()).digest())
            if digest != sent["code_challenge"] or form["redirect_uri"] != sent["redirect_uri"]:
                return 400, {"error": "invalid_grant"}
            return 200, {"id_token": provider.token(**{"nonce": sent["nonce"], **claims})}

        provider.tokens = tokens


def page_of(found, status):
    assert isinstance(found, Response) and found.status == status, found
    assert (
        found.headers["content-type"].startswith("text/html") and found.headers["cache-control"] == "no-store"
    )
    assert "default-src 'none'" in found.headers["content-security-policy"]
    assert found.headers["x-content-type-options"] == "nosniff"
    return found.body.decode()


def test_a_person_logs_in():
    browser = Browser(FakeProvider(client_secret="s3 cret", roles={"devs": ["writer"]}))
    redirect = browser.begin("return_to=/console/%3Fa%3Db")
    sent = query_of(redirect.headers["location"])
    assert redirect.status == 303 and redirect.headers["location"].startswith("https://id.example/authorize?")
    assert (
        redirect.headers["referrer-policy"] == "no-referrer"
        and redirect.headers["cache-control"] == "no-store"
    )
    assert sent["redirect_uri"] == f"{PUBLIC}/auth/oidc/main/callback"
    assert (sent["response_type"], sent["client_id"], sent["scope"]) == (
        "code",
        "swift",
        "openid profile email",
    )
    assert sent["code_challenge_method"] == "S256" and len(sent["code_challenge"]) == 43
    assert len({sent["state"], sent["nonce"], sent["code_challenge"]}) == 3
    browser.grant(sent, groups=["devs"])
    result = browser.finish(f"code=c-1&state={sent['state']}")
    assert isinstance(result, LoginResult)
    assert (result.provider.name, result.claims.subject, result.return_to) == ("main", "u-1", "/console/?a=b")
    assert (result.groups, result.roles) == (("devs",), ("writer",))
    assert browser.cookies == {}
    assert (result.headers["cache-control"], result.headers["referrer-policy"]) == ("no-store", "no-referrer")
    url, form, authorization = browser.providers[0].requests[-1]
    assert url == "https://id.example/token" and form["code"] == "c-1"
    assert (
        authorization == "Basic c3dpZnQ6czMrY3JldA=="
        and "client_secret" not in form
        and "client_id" not in form
    )


def test_secrets_are_sent_as_the_provider_takes_them():
    provider = FakeProvider(client_secret="s3cret")
    provider.discovery["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    browser = Browser(provider)
    sent = browser.sent()
    browser.grant(sent)
    assert isinstance(browser.finish(f"code=c&state={sent['state']}"), LoginResult)
    _url, form, authorization = provider.requests[-1]
    assert (form["client_id"], form["client_secret"], authorization) == ("swift", "s3cret", "")


def test_a_public_client_has_pkce_alone():
    browser = Browser()
    sent = browser.sent()
    browser.grant(sent)
    browser.finish(f"code=c&state={sent['state']}")
    _url, form, authorization = browser.providers[0].requests[-1]
    assert form["client_id"] == "swift" and "client_secret" not in form and authorization == ""


def test_the_cookie_is_for_this_host_and_for_the_server_alone():
    cookie = Browser().begin().headers["set-cookie"]
    name, _, rest = cookie.partition("=")
    assert name.startswith("__Host-swift-oidc-")
    assert rest.partition("; ")[2] == f"Path=/; Max-Age={LIFETIME_S}; HttpOnly; SameSite=Lax; Secure"
    assert len(cookie) < 1100


def test_without_tls_the_cookie_is_an_ordinary_one():
    browser = Browser(public_url="http://127.0.0.1:8080")
    sent = browser.sent()
    (name,) = browser.cookies
    assert name.startswith("swift-oidc-")
    browser.grant(sent)
    assert isinstance(browser.finish(f"code=c&state={sent['state']}"), LoginResult)


def test_a_browser_does_not_get_the_values_of_its_log_in():
    browser = Browser()
    sent = browser.sent()
    ((_name, cookie),) = browser.cookies.items()
    assert not [value for value in (sent["state"], sent["nonce"], sent["code_challenge"]) if value in cookie]


def test_the_redirect_uri_may_be_that_of_the_provider():
    uri = "https://console.example/back"
    browser = Browser(FakeProvider(redirect_uri=uri), public_url="")
    assert browser.sent()["redirect_uri"] == uri
    page = page_of(Browser(public_url="").begin(), 503)
    assert "no redirect URI" in page


def test_the_host_header_decides_nothing():
    browser = Browser()
    request = browser.request("/auth/oidc/main/login")
    request.headers.update({"host": "evil.example", "x-forwarded-host": "evil.example"})
    assert "evil" not in str(browser.login.begin(request).headers)


def test_tabs_of_a_browser_log_in_at_once():
    browser = Browser()
    slots = {}
    for _ in range(40):
        before = dict(browser.cookies)
        sent = browser.sent()
        (changed,) = [name for name in browser.cookies if browser.cookies[name] != before.get(name)]
        slots[changed] = sent
    assert len(slots) == len(browser.cookies) == 4
    for sent in slots.values():
        browser.grant(sent)
        assert isinstance(browser.finish(f"code=c&state={sent['state']}"), LoginResult)
    assert browser.cookies == {}


def test_a_log_in_ends_at_any_server_with_the_key():
    one, other = Browser(), Browser()
    sent = one.sent()
    other.cookies = one.cookies
    other.grant(sent)
    assert isinstance(other.finish(f"code=c&state={sent['state']}"), LoginResult)


# --- attacks ----------------------------------------------------------------------------------------


def test_a_callback_that_another_browser_began_is_refused():
    attacker, victim = Browser(), Browser()
    sent = attacker.sent()
    victim.grant(sent)
    page = page_of(victim.finish(f"code=of-the-attacker&state={sent['state']}"), 400)
    assert "not begun in this browser" in page
    own = victim.sent()
    assert own["state"] != sent["state"]
    page_of(victim.finish(f"code=of-the-attacker&state={sent['state']}"), 400)
    assert victim.providers[0].fetches_of("/token") == 0


def test_a_cookie_that_another_key_signed_is_refused():
    attacker, victim = Browser(key=b"x" * 32), Browser()
    sent = attacker.sent()
    victim.cookies = attacker.cookies
    page_of(victim.finish(f"code=c&state={sent['state']}"), 400)


def test_a_changed_cookie_is_refused():
    browser = Browser()
    sent = browser.sent()
    ((name, cookie),) = browser.cookies.items()
    text, _, signature = cookie.partition(".")
    changed = encode_base64url(b'["main","/","' + b"A" * 43 + b'",99999999999]')
    for wrong in (
        "",
        ".",
        text,
        f"{text}.",
        f".{signature}",
        f"{changed}.{signature}",
        f"{text}.{signature}=",
        f"{text}A.{signature}",
        "x" * 5000,
        f"{text}.{signature}é",
        f"{text}.{signature}.{signature}",
    ):
        browser.cookies = {name: wrong}
        page_of(browser.finish(f"code=c&state={sent['state']}"), 400)
    assert browser.providers[0].fetches_of("/token") == 0


def test_a_second_cookie_of_the_same_name_is_refused():
    browser = Browser(public_url="http://127.0.0.1:8080")
    sent = browser.sent()
    ((name, cookie),) = browser.cookies.items()
    request = browser.request("/auth/oidc/main/callback", f"code=c&state={sent['state']}")
    request.headers["cookie"] = f"{name}={cookie}; {name}={cookie}"
    page_of(browser.login.finish(request), 400)


@every(
    "query",
    [
        "",
        "code=c",
        "code=c&state=",
        "code=c&state=x",
        "code=c&state=%C3%A9",
        "code=c&state=%FF",
        "state=x&error=e",
        "&".join(f"a{n}=" for n in range(30)),
    ],
)
def test_a_callback_without_its_state_is_refused(query):
    browser = Browser()
    browser.sent()
    page_of(browser.finish(query), 400)
    assert len(browser.cookies) == 1, "a foreign callback does not end a log-in"


def test_a_log_in_takes_ten_minutes_at_most():
    browser = Browser()
    sent = browser.sent()
    browser.grant(sent)
    browser.clock.advance(LIFETIME_S)
    page_of(browser.finish(f"code=c&state={sent['state']}"), 400)


def test_a_code_is_used_once():
    browser = Browser()
    sent = browser.sent()
    browser.grant(sent)
    cookies = dict(browser.cookies)
    assert isinstance(browser.finish(f"code=c&state={sent['state']}"), LoginResult)
    browser.cookies = cookies
    page = page_of(browser.finish(f"code=c&state={sent['state']}"), 400)
    assert "ended already" in page and browser.providers[0].fetches_of("/token") == 1


def test_a_code_is_used_once_also_if_the_first_use_fails():
    browser = Browser()
    sent = browser.sent()
    browser.providers[0].tokens = lambda form: (400, {"error": "invalid_grant"})
    cookies = dict(browser.cookies)
    page_of(browser.finish(f"code=c&state={sent['state']}"), 403)
    assert browser.cookies == {}
    browser.cookies = cookies
    page_of(browser.finish(f"code=c&state={sent['state']}"), 400)


def test_ended_log_ins_take_a_bounded_memory():
    clock = FakeProvider().clock
    attempts = Attempts(KEY, clock, ended_max=3)
    begun = [attempts.begin("main", "/") for _ in range(5)]
    assert all(map(attempts.use, begun)) and not attempts.use(begun[-1]) and len(attempts._ended) == 3
    clock.advance(LIFETIME_S)
    attempts.use(attempts.begin("main", "/"))
    assert len(attempts._ended) == 1


def test_a_short_key_is_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        Attempts(b"k" * 31, FakeProvider().clock)


@every(
    "claims",
    [
        {"nonce": "of another log-in"},
        {"nonce": None},
        {"aud": "other"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"azp": "other"},
        {"sub": None},
        {"header": {"typ": "at+jwt"}},
        {"kid": "unknown"},
    ],
)
def test_a_wrong_id_token_is_refused(claims):
    browser = Browser()
    sent = browser.sent()
    browser.grant(sent, **claims)
    page_of(browser.finish(f"code=c&state={sent['state']}"), 403)
    assert browser.cookies == {} and len(browser.lines) == 1


def test_a_code_that_came_with_other_pkce_values_is_refused():
    browser = Browser()
    sent, other = browser.sent(), Browser().sent()
    browser.grant({**sent, "code_challenge": other["code_challenge"]})
    assert "invalid_grant" in page_of(browser.finish(f"code=c&state={sent['state']}"), 403)


@every(
    "given",
    [
        (404, {}),
        (302, {}),
        (500, {"error": "x"}),
        (200, {}),
        (200, {"id_token": 1}),
        (200, []),
        (200, {"id_token": "a.b.c"}),
        (400, {"error": "<script>\r\nX: y" * 100}),
        (400, {"error": {"a": 1}}),
        (400, None),
    ],
)
def test_odd_responses_of_the_token_endpoint_are_refused(given):
    browser = Browser()
    sent = browser.sent()
    browser.providers[0].tokens = lambda form: given
    found = browser.finish(f"code=c&state={sent['state']}")
    page = page_of(found, found.status)
    assert found.status in (403, 503) and "<script" not in page and "\r" not in page


@pytest.mark.parametrize("code", ["", "code=&", f"code={'c' * 4097}&"])
def test_a_callback_without_a_code_is_refused(code):
    browser = Browser()
    sent = browser.sent()
    assert "no code" in page_of(browser.finish(f"{code}state={sent['state']}"), 400)
    assert browser.providers[0].fetches_of("/token") == 0


def test_errors_of_the_provider_are_shown_inert():
    browser = Browser()
    sent = browser.sent()
    description = "%22%3E%3Cimg%20src=x%3E%0D%0ASet-Cookie:%20a"
    query = f"error=%3Cscript%3Ealert(1)%3C/script%3E&error_description={description}"
    page = page_of(browser.finish(f"{query}&state={sent['state']}"), 403)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: &quot;&gt;&lt;img src=x&gt;??Set-Cookie: a" in page
    assert "<script" not in page and "<img" not in page
    assert all(line.isprintable() and len(line) < 400 for line in browser.lines)


def test_errors_of_a_page_that_is_no_provider_are_not_shown():
    assert "Send money" not in page_of(Browser().finish("error=Send+money&state=x"), 400)


@every(
    "url",
    [
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "https:evil.example",
        "http://evil.example:80/",
        "javascript:alert(1)",
        "data:text/html,x",
        "evil.example",
        "",
        "/\t/evil.example",
        "/\r\nSet-Cookie: a=b",
        "/\x00",
        "/a b",
        "/é",
        "/" + "x" * 512,
        "http://127.0.0.1/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:80@evil.example/",
        "http://127.0.0.1:80#@evil.example/",
        "http://127.0.0.1:80\\@evil.example/",
        "http://127.0.0.1.evil.example:80/",
        "http://127.0.0.1%2eevil.example:80/",
        "http://localhost:8080/",
        "http://127.0.0.1:8080[::1]:80/",
        "http://evil.example[::1]:80/",
        "http://[::1]evil.example:80/",
        "http://[::1%25eth0]:80/",
        "http://127.0.0.1:8080^/",
        "http://0.0.0.0:8080/",
        "http://2130706433:8080/",
        "http://127.1:8080/",
        "http://[::]:8080/",
        "https://127.0.0.1:8080/",
        "ftp://127.0.0.1:8080/",
        "http://10.0.0.1:8080/",
    ],
)
def test_a_log_in_leads_nowhere_else(url):
    with pytest.raises(InvalidValue):
        check_return_to(url)


@pytest.mark.parametrize(
    "url", ["/", "/a/b?c=d&e=%2F%2F#f", "/v1/AUTH_a", "http://127.0.0.1:1/", "http://[::1]:65535/cb?state=x"]
)
def test_a_log_in_leads_to_own_paths_and_to_commands(url):
    check_return_to(url)


def test_a_wrong_return_is_refused_before_the_log_in():
    browser = Browser()
    assert "return_to" in page_of(browser.begin("return_to=//evil.example"), 400)
    page_of(browser.begin("return_to=/&return_to=//evil.example"), 400)
    page_of(browser.begin("return_to=%FF"), 400)
    assert browser.cookies == {} and browser.providers[0].requests == []


def test_a_response_of_another_provider_is_refused():
    evil = FakeProvider(name="evil", issuer="https://evil.example")
    browser = Browser(FakeProvider(), evil)
    sent = browser.sent()
    page_of(browser.finish(f"code=c&state={sent['state']}", name="evil"), 400)
    sent = browser.sent()
    page = page_of(browser.finish(f"code=c&state={sent['state']}&iss=https://evil.example"), 400)
    assert "another provider" in page
    assert evil.fetches_of("/token") == browser.providers[0].fetches_of("/token") == 0


def test_a_provider_that_names_itself_must_do_so():
    provider = FakeProvider()
    provider.discovery["authorization_response_iss_parameter_supported"] = True
    browser = Browser(provider)
    sent = browser.sent()
    browser.grant(sent)
    page_of(browser.finish(f"code=c&state={sent['state']}"), 400)
    sent = browser.sent()
    browser.grant(sent)
    assert isinstance(
        browser.finish(f"code=c&state={sent['state']}&iss={provider.provider.issuer}"), LoginResult
    )


@every("name", ["other", "", "main/x", "..", "MAIN", "main%00", "m\r\nX: y"])
def test_unknown_providers_are_not_found(name):
    browser = Browser()
    page_of(browser.begin(name=name), 404)
    page_of(browser.finish("code=c&state=s", name=name), 404)
    assert all(line.isprintable() for line in browser.lines)


def test_only_names_of_providers_are_looked_up():
    found = []
    login = PeopleLogin(found.append, KEY, FakeProvider().clock, log=found.append)
    for name in ("..", "a/b", "%2e%2e", "a%2Fb", "x" * 65, "A"):
        page_of(login.begin(Request("GET", f"/auth/oidc/{name}/login")), 404)
    assert all("refused" in line for line in found)


def test_other_methods_are_refused():
    browser = Browser()
    for method in ("POST", "HEAD", "PUT"):
        found = browser.begin(method=method)
        page_of(found, 405)
        assert found.headers["allow"] == "GET"
        page_of(browser.finish("code=c&state=s", method=method), 405)


@every(
    "change",
    [
        {"authorization_endpoint": "urn:kubernetes:x"},
        {"authorization_endpoint": "http://id.example/"},
        {"authorization_endpoint": "http://127.0.0.1:8080/"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"code_challenge_methods_supported": ["plain"]},
    ],
)
def test_a_provider_that_cannot_log_people_in_is_named(change):
    provider = FakeProvider()
    provider.discovery.update(change)
    assert "provider main" in page_of(Browser(provider).begin(), 503)


def test_a_provider_that_is_away_is_a_matter_of_time():
    provider = FakeProvider()
    browser = Browser(provider)
    sent = browser.sent()
    provider.go_away()
    assert "connection refused" in page_of(browser.finish(f"code=c&state={sent['state']}"), 503)


def test_a_query_of_the_endpoint_is_kept():
    provider = FakeProvider()
    provider.discovery["authorization_endpoint"] = "https://id.example/authorize?policy=p1"
    location = Browser(provider).begin().headers["location"]
    assert query_of(location)["policy"] == "p1" and urlsplit(location).query.count("?") == 0


def test_codes_and_secrets_are_in_no_log_line():
    browser = Browser(FakeProvider(client_secret="s3cret"))
    sent = browser.sent()
    browser.providers[0].tokens = lambda form: (400, {"error": "invalid_grant"})
    browser.finish(f"code=secret-code&state={sent['state']}")
    (line,) = browser.lines
    assert (
        line
        == "OIDC log-in refused at /auth/oidc/main/callback: the provider refused the code: invalid_grant"
    )
