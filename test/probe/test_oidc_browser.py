"""A person logs in with Chromium: cookies, redirects and error pages as a real browser takes them."""

import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlencode

import pytest

from swift.http.request import Request
from swift.identity.oidc.login import LoginResult
from test.support.chromium import needs_chromium, running_chromium
from test.support.oidc import query_of
from test.support.oidc_server import OidcServer, Site, default_keys, install_provider, needs_node
from test.support.stub_servers import TlsServer, make_certificate

pytestmark = [
    pytest.mark.process,
    needs_node,
    needs_chromium,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl(1) to make a certificate"),
]


class Front(BaseHTTPRequestHandler):
    """The pages of a site: both ends of the log-in, and a console that greets."""

    def do_GET(self):
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request("GET", path, headers, query=query)
        login = self.server.site.login
        if path.endswith("/login"):
            self.respond(login.begin(request))
        elif path.endswith("/callback"):
            found = login.finish(request)
            if isinstance(found, LoginResult):
                self.server.results.append(found)
                self.send_response(303)
                for name, value in {
                    **found.headers,
                    "location": found.return_to,
                    "content-length": "0",
                }.items():
                    self.send_header(name, value)
                self.end_headers()
            else:
                self.respond(found)
        else:
            self.server.cookies.append(headers.get("cookie", ""))
            page = f"<html><title>{path}</title><h1>Welcome</h1></html>".encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

    def respond(self, response):
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, *_args):
        """Print nothing."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm")
    install_provider(folder)
    return folder


@pytest.fixture
def front(tmp_path, packages):
    """A site over TLS at ``front.url``, and the provider at which its users log in."""
    http = HTTPServer(("127.0.0.1", 0), Front)
    http.results, http.cookies = [], []
    tls = TlsServer(http.server_address, *make_certificate(tmp_path, "127.0.0.1"))
    http.url = f"https://127.0.0.1:{tls.port}"
    server = OidcServer(packages, [f"{http.url}/auth/oidc/npm/callback"], {"ann": ["admins"]})
    server.start(*default_keys())
    http.site = Site(server, public_url=http.url)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()
    tls.stop()
    server.stop()


@pytest.fixture
def page():
    with running_chromium() as browser:
        yield browser.new_context(ignore_https_errors=True).new_page()


def log_in(page, front, name="ann"):
    page.goto(f"{front.url}/auth/oidc/npm/login?return_to=/console")
    page.fill("input[name=login]", name)
    page.fill("input[name=password]", "any")
    page.click("button[type=submit]")
    page.click("button[type=submit]")
    page.wait_for_url("**/console")


def test_a_person_logs_in_with_a_browser(page, front):
    log_in(page, front)
    assert page.inner_text("h1") == "Welcome" and page.title() == "/console"
    (result,) = front.results
    assert (result.claims.subject, result.roles) == ("ann", ("operator",))
    assert not [cookie for cookie in page.context.cookies() if "swift-oidc" in cookie["name"]]
    page.goto(f"{front.url}/auth/oidc/npm/login?return_to=/again")
    page.wait_for_url("**/again")
    assert len(front.results) == 2, "the provider's session is enough"


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_hosts(page, front):
    page.goto(f"{front.url}/auth/oidc/npm/login")
    (cookie,) = [each for each in page.context.cookies() if "swift-oidc" in each["name"]]
    assert cookie["name"].startswith("__Host-") and cookie["secure"] and cookie["httpOnly"]
    assert (cookie["sameSite"], cookie["domain"], cookie["path"]) == ("Lax", "127.0.0.1", "/")
    page.goto(f"{front.url}/console")
    assert page.evaluate("document.cookie") == ""


def state_of_new_log_in(page, front):
    """Begin a log-in; return the state that the provider gets."""
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(f"{front.url}/auth/oidc/npm/login")
    (authorize,) = [url for url in urls if "&state=" in url]
    return query_of(authorize)["state"]


@pytest.mark.long
def test_a_log_in_that_another_browser_began_is_refused(page, front):
    with page.context.browser.new_context(ignore_https_errors=True) as attacker:
        state = state_of_new_log_in(attacker.new_page(), front)
    state_of_new_log_in(page, front)
    page.goto(f"{front.url}/auth/oidc/npm/callback?code=of-the-attacker&state={state}")
    assert "not begun in this browser" in page.inner_text("p") and not front.results


def test_errors_of_the_provider_do_not_run(page, front):
    state = state_of_new_log_in(page, front)
    assert page.evaluate("document.referrer") == ""
    query = {
        "error": "<script>document.title='run'</script>",
        "error_description": "<img src=x onerror=document.title='run'>",
        "state": state,
        "iss": front.site.provider.issuer,
    }
    page.goto(f"{front.url}/auth/oidc/npm/callback?{urlencode(query)}")
    assert "document.title='run'" in page.inner_text("p") and page.title() != "run"
    assert page.locator("img").count() == page.locator("script").count() == 0
