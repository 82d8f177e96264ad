"""The provider of npm's package oidc-provider as a process, and a person who uses its pages by HTTP."""

import http.client
import json
import os
import re
import select
import shutil
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

import pytest

from swift.base.clock import SystemClock
from swift.cluster.outbound import Outbound
from swift.http.request import Request
from swift.identity.oidc.login import PeopleLogin
from swift.identity.oidc.provider import Provider
from swift.identity.oidc.verifier import TokenVerifiers
from test.support.chromium import install_packages
from test.support.oidc import private_key
from test.support.processes import free_ports

SCRIPT = Path(__file__).parent / "oidc_provider.mjs"
PACKAGE = "oidc-provider@9"
START_S = 60
#: The URL of a cluster that no test sends requests to.
PUBLIC = "https://swift.example"
needs_node = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")), reason="needs node and npm for oidc-provider"
)


def install_provider(folder):
    """Install the package into a folder; skip where the registry cannot be reached."""
    install_packages(folder, PACKAGE)


class OidcServer:
    """The provider at a port that stays the same; ``start`` with other keys is a rotation."""

    def __init__(self, folder, redirect_uris, groups):
        self._folder = folder
        (self.port,) = free_ports(1)
        self.issuer = f"http://127.0.0.1:{self.port}"
        self._process = None
        client = {
            "client_id": "swift",
            "client_secret": "a secret of the client",
            "redirect_uris": redirect_uris,
        }
        #: Of the provider's process; a test may change it before ``start``.
        self.configuration = {"clients": [client], "groups": groups}

    def start(self, *keys):
        """Run the provider with keys, name → private key; the first of a kind signs."""
        self.stop()
        published = [{**key.as_dict(private=True), "kid": kid, "use": "sig"} for kid, key in keys]
        self._process = subprocess.Popen(
            ["node", SCRIPT, str(self.port)],
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "NODE_ENV": "test"},
        )
        self._process.stdin.write(json.dumps({**self.configuration, "jwks": {"keys": published}}).encode())
        self._process.stdin.close()
        readable, _, _ = select.select([self._process.stdout], [], [], START_S)
        assert readable and b"ready" in self._process.stdout.readline()

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


def default_keys(number=0):
    """Return the keys of a provider: one for RS256 and one for ES256."""
    return (f"rsa-{number}", private_key("RSA", number)), (f"curve-{number}", private_key("P-256", number))


class Site:
    """The log-in of a cluster at the provider."""

    def __init__(self, server, clock=None, public_url=PUBLIC, **document):
        self.clock = clock or SystemClock()
        self.provider = Provider.from_document(
            {
                "name": "npm",
                "issuer": server.issuer,
                "client_id": "swift",
                "client_secret": "a secret of the client",
                "tenant": "acme",
                "scopes": ["openid", "email", "groups"],
                "roles": {"admins": ["operator"]},
                **document,
            }
        )
        self.verifier = TokenVerifiers(Outbound(), self.clock).of(self.provider)
        self.lines = []
        self.login = PeopleLogin(
            {"npm": self.verifier}.get, b"k" * 32, self.clock, log=self.lines.append, public_url=public_url
        )

    def begin(self):
        found = self.login.begin(Request("GET", "/auth/oidc/npm/login", query="return_to=/console"))
        assert found.status == 303, found.body
        return found.headers["location"], found.headers["set-cookie"].partition(";")[0]

    def finish(self, url, cookie):
        parts = urlsplit(url)
        return self.login.finish(Request("GET", parts.path, {"cookie": cookie}, query=parts.query))

    def log_in(self, server, name):
        location, cookie = self.begin()
        return self.finish(Person(server).log_in(location, name), cookie)


class Person:
    """A browser without scripts: follows redirects, keeps cookies, fills in forms."""

    def __init__(self, server):
        self._server = server
        self._cookies = {}
        self.pages = []

    def log_in(self, url, name):
        """Log in at the provider and consent; return the URL of ours to which it leads."""
        form = None
        for _ in range(20):
            if not url.startswith(f"{self._server.issuer}/"):
                return url
            status, location, page = self._request(url, form)
            form = None
            if location:
                url = urljoin(url, location)
                continue
            assert status == 200, page
            self.pages.append(page)
            url = urljoin(url, unescape(re.search(r'<form[^>]* action="([^"]*)"', page)[1]))
            form = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page))
            if 'name="login"' in page:
                form |= {"login": name, "password": "any"}
        raise AssertionError("the provider leads nowhere")

    def _request(self, url, form):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("GET" if form is None else "POST", target, urlencode(form or {}), headers)
        response = connection.getresponse()
        for cookie in response.headers.get_all("Set-Cookie") or ():
            name, _, rest = cookie.partition("=")
            self._cookies[name] = rest.partition(";")[0]
        page = response.read().decode()
        connection.close()
        return response.status, response.headers["Location"], page
