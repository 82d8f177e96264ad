"""The console over a simulated cluster with identities, and a browser without scripts."""

import json
import re
from types import SimpleNamespace
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

from swift.base.limits import Limits
from swift.compose import Cluster
from swift.console.core.api import Api
from swift.console.core.cluster import ClusterWatch
from swift.console.core.session import COOKIE
from swift.console.filter import Console, ConsoleSettings
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.identity.passwords import LoginBrake
from swift.middleware.audit_log.filter import AuditLog
from swift.middleware.bulk.filter import Bulk, BulkSettings
from swift.middleware.copy import Copy, CopySettings
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.swiftauth.filter import Swiftauth
from swift.middleware.swiftauth.people import People
from swift.middleware.swiftauth.service import IdentityService
from swift.middleware.swiftauth.settings import SwiftauthSettings
from swift.middleware.swiftauth.webidentity import WebIdentities
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.tempurl.filter import FILTER as TEMPURL
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.runtime.wsgi import response_or_error
from swift.s3.core.call import Features
from swift.s3.core.settings import S3Settings
from swift.s3.filter import S3Api
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.identities import KEYS, make_identities
from test.support.sim import Answer

HOST = "console.example"
#: Headers of a form that a script sends.
FORM = {"content-type": "application/x-www-form-urlencoded"}
#: Names that break careless pages and paths.
HOSTILE = (
    '<script>alert("x")</script>',
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}",
    "a/../b",
    "..",
    "a//b",
    "/leading",
    "folder/",
    "//",
    "?#%&+=;",
    "%2F%00",
    "line\nbreak\r\nand\ttab",
    "\x01\x1b[31m\x7f",
    "\u202ertl\u2066\u200b",
    "\U0001f4a9 é",
    "x" * 1024,
)


class ConsoleWorld:
    """The filters of a proxy over a simulated cluster.

    Users of tenant ``t``: ``owner``, ``user`` (no rights) and, in tenant ``a``, the operator ``op``. The
    password of each is its name and ``-password``.
    """

    def __init__(self, sim, cluster=None, audit=lambda _line: None, **settings):
        """``cluster`` is what the pages for operators show; without it there are no rings to read.

        ``audit`` gets the lines of the audit log.
        """
        self.sim = sim
        guesser = TypeGuesser("/none", ())
        telemetry = Telemetry(silent_log())
        made = Cluster(SimpleNamespace(limits=Limits()), sim.policies), guesser
        versions = VersionedWrites(
            Symlink(sim.app, SymlinkSettings()), VersionedWritesSettings(allow_object_versioning=True), made
        )
        large = SloSettings.parse({"rate_limit_segments_per_sec": "0"})
        below = Copy(
            Slo(versions, large, sim.hasher, guesser, silent_log()), CopySettings(), 5 << 30, silent_log()
        )
        self.made = make_identities(SimpleNamespace(handle=self._with_cache(below.handle)), stale_s=0.0)
        auth = Swiftauth(
            below, SwiftauthSettings(), self._service, {"AUTH_": ""}, telemetry, now=self.made.clock
        )
        s3 = S3Api(auth, S3Settings.parse({"min_segment_size": "1"}), telemetry, Features(query_api=True))
        bulk = Bulk(s3, BulkSettings(), 1024, telemetry)
        front = AuditLog(TEMPURL.build(bulk, {}), audit)
        inner = SimpleNamespace(handle=self._with_cache(front.handle))
        self.filter = Console(
            inner, ConsoleSettings(**settings), cluster or ClusterWatch("/none", sim.policies)
        )
        operations = {
            "t:owner": [".admin"],
            "t:user": [],
            "a:op": [".admin", ".reseller_admin"],
        }
        for name, groups in operations.items():
            password = f"{name.partition(':')[2]}-password"
            self.op("CreateUser", user=name, password=password, groups=groups)

    def _with_cache(self, handle):
        def handle_with_cache(request):
            request.env["swift.cache"] = self.sim.cache
            return handle(request)

        return handle_with_cache

    def _service(self, _forward):
        made = self.made
        web = WebIdentities(made.cache, KEYS, lambda: None, monotonic=made.clock)
        service = IdentityService(
            *(made.directory, made.operations, made.passwords, LoginBrake(made.clock), KEYS, web),
            silent_log(),
        )
        return service, People(service, made.clock, public_url="")

    def op(self, operation, **params):
        """Carry out an operation on identities with all rights."""
        context = SimpleNamespace(values=lambda _key: None)
        return self.made.operations.call(operation, params, None, context)

    def browser(self, user="", password=None):
        """Return a browser; with a user it has logged in."""
        browser = Browser(self)
        if user:
            name = user.partition(":")[2]
            browser.post("/console/login", user=user, key=password or f"{name}-password")
            assert COOKIE in browser.cookies, browser.page
        return browser

    def send(self, request):
        """Return the response to a request."""
        request.env["swift.cache"] = self.sim.cache
        request.env["swift.trans_id"] = "tx1"
        return Answer(response_or_error(self.filter.handle, request))


class Browser:
    """Keeps cookies, follows redirects and sends forms with the CSRF token of the last page."""

    def __init__(self, world):
        self.world = world
        self.cookies = {}
        self.address = "/console"
        self.page = ""
        self.status = 0
        self.headers = {}

    @property
    def csrf(self):
        """The CSRF token of the last page that had one."""
        return self._csrf

    _csrf = ""

    def get(self, address, headers=None, **query):
        """Load a page; return its text."""
        if query:
            address = f"{address}?{urlencode(query, quote_via=quote)}"
        return self._load("GET", address, headers or {}, b"")

    def post(self, address, headers=None, *, csrf=None, **fields):
        """Send a form, a field of a list several times; return the text of the page to which it leads."""
        pairs = [(name, each) for name, value in fields.items() for each in _as_list(value)]
        pairs.append(("csrf", self.csrf if csrf is None else csrf))
        sent = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": f"http://{HOST}",
            "referer": f"http://{HOST}{self.address}",
            **(headers or {}),
        }
        return self._load("POST", address, sent, urlencode(pairs).encode())

    def send(self, method, address, headers=None, body=b""):
        """Send what a script of the page sends; return the parsed JSON."""
        sent = {"accept": "application/json", "x-csrf-token": self.csrf, **(headers or {})}
        text = self._load(method, address, sent, body)
        return json.loads(text) if text else None

    def request(self, address, method="GET", headers=None, body=b""):
        """Return the request that loads an address."""
        parts = urlsplit(urljoin(self.address, address))
        sent = {"host": HOST, **(headers or {})}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if method in ("POST", "PUT"):
            sent["content-length"] = str(len(body))
        return Request(method, parts.path, sent, body, query=parts.query, remote_addr="10.0.0.9")

    def _load(self, method, address, headers, body):
        for _ in range(5):
            parts = urlsplit(urljoin(self.address, address))
            response = self.world.send(self.request(address, method, headers, body))
            self.status, self.headers = response.status, response.headers
            cookie = response.headers.get("set-cookie")
            if cookie:
                name, _, rest = cookie.partition("=")
                value, _, attributes = rest.partition(";")
                self.cookies[name] = value
                if "Max-Age=0" in attributes:
                    del self.cookies[name]
            if response.status != 303:
                break
            address, method, body, headers = response.headers["location"], "GET", b"", {}
        self.body = response.body
        self.page = response.body.decode("utf-8", "replace")
        if "text/html" in response.headers.get("content-type", ""):
            self.address = f"{parts.path}?{parts.query}" if parts.query else parts.path
            found = re.search(r'data-csrf="([^"]*)"', self.page)
            self._csrf = found[1] if found else self._csrf
        return self.page

    @property
    def links(self):
        """The addresses of the last page, quoted as they are there."""
        return [address.replace("&amp;", "&") for address in re.findall(r' href="([^"]*)"', self.page)]

    def path(self):
        """Return the unquoted path and query of the page."""
        return unquote(self.address)


def _as_list(value):
    return value if isinstance(value, list) else [value]


# --- the APIs, with the session of a browser ----------------------------------------------------------


def swift(browser, method, path, headers=None, body=b"", query=""):
    """Send a request to Swift's API with the token of the browser's session."""
    token = next(iter(browser.cookies.values()))
    sent = {"host": HOST, "x-auth-token": token, "content-length": str(len(body)), **(headers or {})}
    return browser.world.send(Request(method, f"/v1/AUTH_t/{path}", sent, body, query=query))


def s3(browser, method, bucket, key="", **content):
    """Send a request to the S3 API; raise ``ApiError`` if it is refused."""
    parts, request = browser.world.filter._parts, Request("GET", "/console", {"host": HOST})
    session = parts.sessions.of_token(next(iter(browser.cookies.values())), request)
    api = Api(parts.forward, request, session, parts.signers, parts.region)
    return api.s3(method, bucket, key, **content).read_body()


def put(browser, name, body=b"data", bucket="photos", **headers):
    """Store an object; ``_`` of the names of headers stands for ``-``."""
    sent = {each.replace("_", "-"): value for each, value in headers.items()}
    answer = swift(browser, "PUT", f"{bucket}/{quote(name, safe='')}", sent, body)
    assert answer.status == 201, answer.body
    return answer


def get(browser, name, bucket="photos", query=""):
    """Return the response to a GET of an object."""
    return swift(browser, "GET", f"{bucket}/{quote(name, safe='')}", query=query)


def at(path, **query):
    """Return the address of a page, quoted as templates do."""
    return f"/console{path}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
