"""Admission in real processes: limits, guarantees under overload, reservations, space checks."""

import http.client
import json
import socket
import threading
import time

import pytest

from test.support.cluster import LiveCluster

RULES = """
[[rule]]
name = "kept"
account = "AUTH_test2"
guaranteed = { requests = 15 }

[[rule]]
name = "bounded"
container = "AUTH_test/slow"
greatest = { requests = 2 }
"""
OPTIONS = """
[filter:admission]
use = egg:swift#admission
capacity_bytes_per_second = 50 MB
capacity_requests_per_second = 30
burst_seconds = 0.5
interval = 0.5
ticket_key = a secret of all proxies
rules_path = {rules}
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp("admission")
    (folder / "rules.toml").write_text(RULES)
    made = LiveCluster(
        folder / "data",
        nodes=1,
        replicas=1,
        places={"admission": "staticweb"},
        options=OPTIONS.format(rules=folder / "rules.toml"),
    )
    made.rules = folder / "rules.toml"
    try:
        made.start()
        yield made
    finally:
        made.stop()


def request_with_retries(live, *request, **more):
    """Return the response that a client gets that obeys Retry-After."""
    for _ in range(20):
        response = live.request(*request, **more)
        if response.status not in (429, 503):
            return response
        assert int(response.headers["retry-after"]) >= 1
        time.sleep(0.3)
    return response


def test_a_client_beyond_its_own_limit_gets_429(live):
    assert request_with_retries(live, "PUT", "slow").status == 201
    responses = [live.request("GET", "slow") for _ in range(6)]
    refused = [a for a in responses if a.status == 429]
    assert refused
    assert refused[0].body.startswith(b"Rule bounded allows 2 requests/s. Try again after ")


def test_rules_are_reloaded_and_invalid_rules_are_reported_and_ignored(live):
    live.rules.write_text(RULES + '\n[[rule]]\nname = "bad"\ngreatest = { requests = "x" }\n')

    def told():
        live.request("HEAD", "")
        return "rules.toml: line 14: rule 'bad': greatest: requests must be a number" in live.log_text()

    live.await_true(told, "the log says what is wrong")
    live.rules.write_text(RULES.replace("requests = 2", "requests = 3"))

    def changed():
        return b"allows 3 requests/s" in live.request("GET", "slow").body

    live.await_true(changed, "the other rules hold")


def test_an_operator_watches_and_changes_rules_for_all_workers(live):
    admin = {"X-Auth-Token": live.token("admin:admin")}
    url = "/v1/.admission/cluster"
    assert live.raw("GET", f"{url}/state").status == 401
    assert live.raw("GET", f"{url}/state", {"X-Auth-Token": live.token()}).status == 403
    assert live.raw("PUT", f"{url}/rules", {"X-Auth-Token": live.token()}, body="").status == 403
    before = live.rules.read_text()
    live.await_true(
        lambda: live.raw("GET", f"{url}/rules", admin).body.decode() == before, "rules as they are"
    )
    response = live.raw(
        "PUT", f"{url}/rules", admin, body="[[rule]]\nname = 'x'\ngreatest = { bytes = 'y' }\n"
    )
    assert response.status == 400
    assert b"rules.toml: line 3: rule 'x': greatest: bytes must be a number" in response.body
    assert live.rules.read_text() == before
    other = before.replace("requests = 3", "requests = 1")
    response = live.raw("PUT", f"{url}/rules", admin, body=other)
    assert (response.status, json.loads(response.body)) == (
        200,
        {"rules": 2, "written": True, "published": True},
    )
    assert live.rules.read_text() == other
    refused = []

    def changed():
        response = live.request("GET", "slow")
        if response.status == 429:
            refused.append(b"allows 1 requests/s" in response.body)
        return refused[-8:] == [True] * 8

    live.await_true(changed, "every worker goes by them")
    state = json.loads(live.raw("GET", f"{url}/state", admin).body)
    assert state["rules"]["count"] == 2 and state["capacity"]["requests"] == 30
    assert "kept" in state["lanes"] or "account:AUTH_test" in state["lanes"]


def flood(live, token, stop, counts):
    """Send requests as fast as possible."""
    connection = http.client.HTTPConnection(live.plan.ip, live.plan.proxy_port, timeout=30)
    while not stop.is_set():
        connection.request("HEAD", "/v1/AUTH_test", headers={"X-Auth-Token": token})
        response = connection.getresponse()
        response.read()
        counts.append(response.status)
    connection.close()


@pytest.mark.long
def test_a_client_gets_its_guaranteed_share_under_overload(live):
    token, mine = live.token(), live.token("test2:tester2")
    stop, counts = threading.Event(), []
    threads = [threading.Thread(target=flood, args=(live, token, stop, counts)) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2.0)
        counts.clear()
        got, began = [], time.monotonic()
        for n in range(60):
            # 12 requests per second are sent, 15 are guaranteed.
            time.sleep(max(0.0, began + n / 12 - time.monotonic()))
            got.append(live.raw("HEAD", "/v1/AUTH_test2", {"X-Auth-Token": mine}).status)
        seconds, others = time.monotonic() - began, list(counts)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    mine_in, others_in = len(got) - got.count(503), len(others) - others.count(503)
    assert set(got) | set(others) <= {200, 204, 503}
    assert mine_in >= 0.95 * len(got)
    assert 0 < others_in < others.count(503), "what is too much is refused at once"
    # Two workers; each has data of the other that is two intervals old.
    assert mine_in + others_in <= 30 * (seconds + 2) * 1.2, (mine_in, others_in, seconds)


def test_a_reservation_is_made_refused_and_useless_to_other_clients(live):
    wish = "?reserve&duration=60&direction=read&bytes_per_second=30MB"
    assert live.raw("POST", f"/v1/AUTH_test{wish}").status == 401
    headers = {"X-Auth-Token": live.token()}

    def ask(query):
        for _ in range(20):
            response = live.raw("POST", f"/v1/AUTH_test{query}", headers)
            if b"requests" not in response.body:
                return response
            time.sleep(0.2)
        return response

    made = ask(wish)
    assert made.status == 201, made
    ticket = json.loads(made.body)["ticket"]
    refused = ask(wish)
    assert (refused.status, refused.body) == (503, b"Only 10 MB/s can be reserved for that time.\n")
    assert ask("?reserve&duration=x&direction=read").status == 400
    other = {"X-Auth-Token": live.token("test2:tester2"), "X-Reservation": ticket}
    response = live.raw("HEAD", "/v1/AUTH_test2", other)
    assert response.headers["x-reservation-status"] == "for another account"
    assert (
        "x-reservation-status"
        not in request_with_retries(live, "HEAD", "", {"X-Reservation": ticket}).headers
    )


def test_an_upload_without_free_space_is_refused_before_its_first_byte(live):
    assert request_with_retries(live, "PUT", "full").status == 201
    conf = live.plan.etc / "object-server" / "1.conf"
    before = conf.read_text()
    conf.write_text(before.replace("[DEFAULT]\n", "[DEFAULT]\nfallocate_reserve = 100%\n"))
    live.kill("object-1")
    live.restart("object-1")
    try:
        for _ in range(20):
            said = first_words(live, "/v1/AUTH_test/full/o", 50_000_000)
            if b"503" not in said or b"requests" not in said:
                break
            time.sleep(0.3)
        assert said.startswith(b"HTTP/1.1 503"), said
    finally:
        conf.write_text(before)
        live.kill("object-1")
        live.restart("object-1")


def first_words(live, path, size):
    """Return the proxy's response to the head of an upload."""
    with socket.create_connection((live.plan.ip, live.plan.proxy_port), timeout=30) as link:
        head = f"PUT {path} HTTP/1.1\r\nHost: h\r\nX-Auth-Token: {live.token()}\r\n"
        link.sendall(f"{head}Content-Length: {size}\r\nExpect: 100-continue\r\n\r\n".encode())
        return link.recv(65536)
