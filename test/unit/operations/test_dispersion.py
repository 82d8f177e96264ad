"""dispersion.conf, and what a cluster may answer to a login."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from swift.base.errors import ConfigError
from swift.operations.dispersion import Login, LoginFailed, find_policy, log_in, read_conf
from test.support.peer import SWIFT_CONF
from test.support.processes import free_ports


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def do_GET(self):
        said = self.server.said
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said["asked"].append((self.command, self.path, dict(self.headers), body))
        if said["raw"] is not None:
            self.wfile.write(said["raw"])
            self.close_connection = True
            return
        self.send_response(said["status"])
        for name, value in said["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(said["body"])))
        self.end_headers()
        self.wfile.write(said["body"])

    do_POST = do_GET


@pytest.fixture
def cluster():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.said = {"asked": [], "raw": None, "status": 200, "headers": {}, "body": b""}
    server.said["url"] = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.said
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def settings_of(tmp_path):
    def make(**options):
        path = tmp_path / "dispersion.conf"
        lines = [f"{name} = {value}\n" for name, value in options.items()]
        path.write_text("[dispersion]\n" + "".join(lines), "utf-8")
        return read_conf(str(path))

    return make


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "auth_url is missing"),
        (
            {"auth_url": "localhost:8080/auth/v1.0"},
            "auth/v1.0 is no http or https URL",
        ),
        (
            {"auth_url": "http://h", "auth_version": "2.0"},
            "auth_version 2.0 is not known",
        ),
        ({"auth_url": "http://h", "endpoint_type": "private"}, "endpoint_type private is not known"),
        ({"auth_url": "http://h", "dispersion_coverage": "101"}, "dispersion_coverage"),
        ({"auth_url": "http://h", "dispersion_coverage": "nan"}, "dispersion_coverage"),
        ({"auth_url": "http://h", "concurrency": "0"}, "concurrency"),
        ({"auth_url": "http://h", "retries": "-1"}, "retries"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(settings_of, options, text):
    with pytest.raises(ConfigError, match=text):
        settings_of(**options)


def test_a_file_without_the_section_is_refused(tmp_path):
    (tmp_path / "d.conf").write_text("[other]\nauth_url = http://h\n")
    with pytest.raises(ConfigError, match=r"has no \[dispersion\]"):
        read_conf(str(tmp_path / "d.conf"))


def test_policies_go_by_name_and_the_default_one_is_taken_else(settings_of, tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    settings = settings_of(auth_url="http://h", swift_dir=tmp_path)
    assert find_policy(settings, "")[1].name == "gold"
    assert find_policy(settings, "grey")[1].index == 1
    with pytest.raises(ConfigError, match="Unable to find policy: lead"):
        find_policy(settings, "lead")


def test_a_login_gives_where_the_account_is(cluster, settings_of):
    cluster["headers"] = {"X-Auth-Token": "t", "X-Storage-Url": "http://h:81/v1/AUTH_%C3%A9/"}
    login = log_in(settings_of(auth_url=cluster["url"], auth_user="a:u", auth_key="k"), insecure=False)
    assert login == Login("h", 81, False, "/v1/AUTH_%C3%A9/", "t")
    assert login.account == "AUTH_é"


@pytest.mark.parametrize(
    ("url", "port", "is_tls"), [("http://h/v1/A", 80, False), ("https://h/v1/A", 443, True)]
)
def test_the_port_of_the_scheme_is_the_usual_one(cluster, settings_of, url, port, is_tls):
    cluster["headers"] = {"X-Auth-Token": "t", "X-Storage-Url": url}
    login = log_in(settings_of(auth_url=cluster["url"]), insecure=False)
    assert (login.port, login.is_tls) == (port, is_tls)


def test_users_and_keys_may_have_any_letters(cluster, settings_of):
    cluster["headers"] = {"X-Auth-Token": "t", "X-Storage-Url": "http://h/v1/A"}
    log_in(settings_of(auth_url=cluster["url"], auth_user="a:Ωé", auth_key="ключ"), insecure=False)
    headers = cluster["asked"][0][2]
    assert headers["X-Auth-User"].encode("latin-1").decode() == "a:Ωé"
    assert headers["X-Auth-Key"].encode("latin-1").decode() == "ключ"


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 401},
        {"status": 500},
        {"headers": {"X-Auth-Token": "t"}},
        {"headers": {"X-Storage-Url": "http://h/v1/A"}},
        {"headers": {"X-Auth-Token": "t", "X-Storage-Url": "/v1/A"}},
        {"headers": {"X-Auth-Token": "t", "X-Storage-Url": "http://h:999999/v1/A"}},
        {"headers": {"X-Auth-Token": "t", "X-Storage-Url": "http://[::1/v1/A"}},
        {"raw": b""},
        {"raw": b"SSH-2.0-OpenSSH\r\n"},
        {"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"},
    ],
)
def test_what_is_no_good_answer_is_told_in_one_line(cluster, settings_of, answer):
    cluster.update(answer)
    with pytest.raises(LoginFailed, match=f"cannot log in at {cluster['url']}: .") as caught:
        log_in(settings_of(auth_url=cluster["url"]), insecure=False)
    assert "\n" not in str(caught.value)


def test_nobody_listening_is_told_too(settings_of):
    with pytest.raises(LoginFailed, match="refused"):
        log_in(settings_of(auth_url=f"http://127.0.0.1:{free_ports(1)[0]}/auth"), insecure=False)


def v3(cluster, **more):
    return {"auth_url": f"{cluster['url']}/v3", "auth_version": "3", "auth_user": "p:u", **more}


def test_the_catalog_is_asked_for_region_and_kind_of_the_url(cluster, settings_of):
    points = [
        {"interface": "public", "region": "one", "url": "http://wrong/v1/A"},
        {"interface": "internal", "region": "one", "url": "http://wrong/v1/A"},
        {"interface": "internal", "region": "two", "url": "http://right/v1/A"},
    ]
    catalog = [{"type": "object-store", "endpoints": points}]
    cluster["body"] = json.dumps({"token": {"catalog": catalog}}).encode()
    cluster["headers"] = {"X-Subject-Token": "t"}
    options = v3(cluster, endpoint_type="internalURL", region_name="two", user_domain_name="people")
    login = log_in(settings_of(**options), insecure=False)
    assert (login.host, login.token) == ("right", "t")
    method, path, _headers, body = cluster["asked"][0]
    assert (method, path) == ("POST", "/v3/auth/tokens")
    user = json.loads(body)["auth"]["identity"]["password"]["user"]
    assert user["name"] == "u" and user["domain"] == {"name": "people"}


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"token": {"catalog": [1]}}', b"[" * 100_000])
def test_a_catalog_that_nobody_can_read_is_a_failed_login(cluster, settings_of, body):
    cluster.update(body=body, headers={"X-Subject-Token": "t"})
    with pytest.raises(LoginFailed, match="cannot log in"):
        log_in(settings_of(**v3(cluster)), insecure=False)
