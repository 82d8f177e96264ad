"""Requests are signed by one server and checked by another, byte by byte."""

import base64
import hmac
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swift.base.clock import ManualClock
from swift.cluster.serverauth import (
    LOOK_EVERY_S,
    Key,
    Refusal,
    SecretError,
    ServerSecrets,
    Signer,
    Verifier,
    make_secret,
    parse_secrets,
    read_secrets,
)
from swift.http.headers import lower_name
from swift.wire.http1 import HeadLimits, parse_request_head, request_head

HOST = "10.0.0.1:6200"
FIELD = "x-backend-server-auth"
HEADERS = {
    "x-timestamp": "1700000000.12345",
    "content-length": "5",
    "x-object-meta-a": "ä, b",
    "user-agent": "proxy-server 1",
    "connection": "close",
}
TARGET = "/sda/12/a/c/o%20x?multipart-manifest=put&a=b"
OLD, NEW = "11" * 32, "22" * 32


class Nonces:
    """The nonces of one server."""

    def __init__(self):
        self.taken = set()

    def __call__(self, nonce, _time_s, _now_s):
        is_new = nonce not in self.taken
        self.taken.add(nonce)
        return is_new


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def make_secrets(tmp_path, clock):
    """Return a function that makes the secrets of a server from the lines of its file."""

    def make(*lines, name="server.secret", report=None):
        path = tmp_path / name
        write_secrets(path, *lines)
        return ServerSecrets(str(path), clock=clock, report=report)

    return make


def write_secrets(path, *lines):
    new = path.with_suffix(".new")
    new.write_text("".join(f"{line}\n" for line in lines))
    new.chmod(0o640)
    new.replace(path)


def make_verifier(secrets, clock, nonces=None, host=HOST, window_s=60.0):
    return Verifier(secrets, nonces or Nonces(), lambda given: given == host, window_s=window_s, clock=clock)


def send(signer, method="PUT", target=TARGET, host=HOST, headers=HEADERS):
    """Return a request as the receiver parses it."""
    head = request_head(method, target, host, headers)
    text = signer.text_of(method, target, host, headers)
    if text:
        head = head[:-2] + signer.line(text) + b"\r\n"
    return parse_request_head(head, HeadLimits())


def check(verifier, head):
    problem = verifier.check(head.method, head.raw_path, head.query, head.headers)
    return None if problem is None else problem[0]


@pytest.fixture
def signer(make_secrets, clock):
    return Signer(make_secrets(f"2026a {OLD}"), clock)


@pytest.fixture
def verifier(make_secrets, clock):
    return make_verifier(make_secrets(f"2026a {OLD}"), clock)


def test_a_signed_request_is_valid_once(signer, verifier):
    head = send(signer)
    assert check(verifier, head) is None
    assert check(verifier, head) is Refusal.REPLAYED


def test_each_sending_has_a_signature_of_its_own(signer, verifier):
    text = signer.text_of("GET", "/sda/1/a", HOST, {})
    lines = {signer.line(text) for _ in range(50)}
    assert len(lines) == 50


def test_a_request_without_signature_is_unsigned(verifier):
    head = parse_request_head(request_head("PUT", TARGET, HOST, HEADERS), HeadLimits())
    assert check(verifier, head) is Refusal.UNSIGNED


def _set(name, value):
    def change(head):
        head.headers[name] = value

    return change


def _attribute(name, value):
    def change(head):
        setattr(head, name, value)

    return change


ALTERATIONS = {
    "method": _attribute("method", "DELETE"),
    "path": _attribute("raw_path", "/sda/12/a/c/other"),
    "path quoted in another way": _attribute("raw_path", "/sda/12/a/c/o%20%78"),
    "query": _attribute("query", "multipart-manifest=put&a=c"),
    "no query": _attribute("query", ""),
    "timestamp": _set("x-timestamp", "1700000000.12346"),
    "length": _set("content-length", "6"),
    "metadata": _set("x-object-meta-a", "ä,b"),
    "more metadata": _set("x-object-meta-b", "c"),
    "policy": _set("x-backend-storage-policy-index", "1"),
    "framing": _set("transfer-encoding", "chunked"),
    "host": _set("host", "10.0.0.2:6200"),
    "no metadata": lambda head: head.headers.pop("x-object-meta-a"),
    "one header for two": lambda head: head.headers.update(
        {"user-agent": head.headers["user-agent"] + "\nx-timestamp:" + head.headers.pop("x-timestamp")}
    ),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_request_is_refused(signer, verifier, name):
    head = send(signer)
    ALTERATIONS[name](head)
    assert check(verifier, head) is Refusal.WRONG_SIGNATURE
    assert check(verifier, send(signer)) is None


def test_query_and_path_do_not_pass_for_each_other(signer, verifier):
    head = send(signer, target="/sda/12/a?b")
    head.raw_path, head.query = "/sda/12/a?b", ""
    assert check(verifier, head) is Refusal.WRONG_SIGNATURE


@pytest.mark.parametrize(
    "target", ["/sda/1/a", "/sda/1/a?", "/sda/1/a??", "/sda/1/a?b=%3F&c", "/sda/1/a%00%FF"]
)
def test_targets_arrive_as_they_were_signed(signer, verifier, target):
    assert check(verifier, send(signer, "GET", target)) is None


@pytest.mark.parametrize("part", range(5))
def test_every_part_of_the_header_counts(signer, verifier, part):
    head = send(signer)
    parts = head.headers[FIELD].split(" ")
    last = parts[part][-1]
    parts[part] = parts[part][:-1] + ("0" if last != "0" else "1")
    head.headers[FIELD] = " ".join(parts)
    assert check(verifier, head) in {Refusal.MALFORMED, Refusal.UNKNOWN_KEY, Refusal.WRONG_SIGNATURE}


def test_a_truncated_header_is_refused(signer, verifier):
    whole = send(signer).headers[FIELD]
    for size in range(len(whole)):
        head = send(signer)
        head.headers[FIELD] = whole[:size]
        assert check(verifier, head) is not None, size


@pytest.mark.parametrize(
    "change",
    [
        lambda value: "0" + value[1:],
        lambda value: "2" + value[1:],
        lambda value: value + " ",
        lambda value: value + ",",
        lambda value: f"{value},{value}",
        lambda value: value.replace(" ", "\t"),
        lambda value: value.replace(" ", "  ", 1),
        lambda value: value.upper(),
        lambda value: "",
        lambda value: " " * 4,
        lambda value: "1 2026a nan 0 0",
        lambda value: "1 2026a ä ö ü",
    ],
)
def test_another_form_or_version_is_refused(signer, verifier, change):
    head = send(signer)
    head.headers[FIELD] = change(head.headers[FIELD])
    assert check(verifier, head) in {Refusal.MALFORMED, Refusal.UNKNOWN_KEY, Refusal.WRONG_SIGNATURE}


def test_a_header_that_comes_twice_is_refused(signer, verifier):
    head = request_head("PUT", TARGET, HOST, HEADERS)
    text = signer.text_of("PUT", TARGET, HOST, HEADERS)
    twice = head[:-2] + signer.line(text) + signer.line(text) + b"\r\n"
    assert check(verifier, parse_request_head(twice, HeadLimits())) is Refusal.MALFORMED


def test_headers_that_the_receiver_drops_do_not_matter(signer, verifier):
    head = send(signer, headers={**HEADERS, "x-object-meta-a_b": "c"})
    assert "x-object-meta-a_b" not in head.headers
    assert check(verifier, head) is None


def test_a_line_that_was_put_in_is_refused(signer, verifier):
    head = request_head("PUT", TARGET, HOST, HEADERS)
    text = signer.text_of("PUT", TARGET, HOST, HEADERS)
    for line in (b"X-Timestamp: 1\r\n", b"X-Object-Meta-\xe4 b: c\r\n", b"Content-Type: \x01\r\n"):
        whole = head[:-2] + signer.line(text) + line + b"\r\n"
        assert check(verifier, parse_request_head(whole, HeadLimits())) is Refusal.WRONG_SIGNATURE, line


_NAMES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters=":"), max_size=8)
_VALUES = st.text(st.characters(max_codepoint=0x2FF, exclude_characters="\r\n\0"), max_size=12)


@given(st.dictionaries(_NAMES, _VALUES, max_size=5))
@example({"a": " b\t", "A": "c", "é": "\x85 ", "a-": "", "a.b": ":"})
def test_metadata_of_any_form_arrives_as_it_was_signed(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("secrets") / "server.secret"
    write_secrets(path, f"1 {OLD}")
    clock = ManualClock()
    secrets = ServerSecrets(str(path), clock=clock)
    headers = {lower_name(f"x-object-meta-{name}"): value for name, value in values.items()}
    head = send(Signer(secrets, clock), headers=headers)
    assert check(make_verifier(secrets, clock), head) is None


@pytest.mark.parametrize(
    ("apart_s", "is_valid"), [(0, True), (59.9, True), (-59.9, True), (60.1, False), (-60.1, False)]
)
def test_clocks_may_differ_by_the_window(make_secrets, clock, apart_s, is_valid):
    sender = Signer(make_secrets(f"1 {OLD}"), ManualClock(clock.now_s + apart_s))
    problem = check(make_verifier(make_secrets(f"1 {OLD}"), clock), send(sender))
    assert problem is (None if is_valid else Refusal.WRONG_TIME)


def test_the_sentence_tells_how_far_the_clocks_are_apart(make_secrets, clock):
    head = send(Signer(make_secrets(f"1 {OLD}"), ManualClock(clock.now_s - 75)))
    verifier = make_verifier(make_secrets(f"1 {OLD}"), clock)
    assert "-75.0 s" in verifier.check(head.method, head.raw_path, head.query, head.headers)[1]


def test_a_request_is_not_served_again_after_the_window(signer, make_secrets, clock):
    head = send(signer)
    clock.advance(61)
    # Another process, without the nonces of the first one.
    assert check(make_verifier(make_secrets(f"2026a {OLD}"), clock), head) is Refusal.WRONG_TIME


def test_a_request_for_another_node_is_refused(signer, make_secrets, clock):
    other = make_verifier(make_secrets(f"2026a {OLD}"), clock, host="10.0.0.2:6200")
    assert check(other, send(signer)) is Refusal.WRONG_HOST


def test_a_wrong_signature_takes_no_nonce(signer, make_secrets, clock):
    nonces = Nonces()
    verifier = make_verifier(make_secrets(f"2026a {OLD}"), clock, nonces)
    head = send(signer)
    good = head.headers[FIELD]
    head.headers[FIELD] = good[:-1] + ("0" if good[-1] != "0" else "1")
    assert check(verifier, head) is Refusal.WRONG_SIGNATURE
    head.headers[FIELD] = good
    assert check(verifier, head) is None


def test_the_page_of_the_format_has_a_valid_example(tmp_path, clock):
    page = (Path(__file__).parents[3] / "doc/formats/server-authentication.md").read_text()
    blocks = re.findall(r"```text\n(.*?)```", page, re.S)
    target = blocks[0].split()[1]
    headers = dict(line.lower().split(": ") for line in blocks[0].splitlines()[1:])
    headers[FIELD] = blocks[1].strip().partition(": ")[2]
    path = tmp_path / "server.secret"
    write_secrets(path, f"a {OLD}")
    verifier = make_verifier(ServerSecrets(str(path)), ManualClock(1_700_000_000.0), host=headers["host"])
    assert verifier.check("GET", *target.split("?"), headers) is None


# --- secrets ----------------------------------------------------------------------------------------


def test_secrets_are_hexadecimal_or_base64(tmp_path):
    text = f"# of 2026\n\nnew {'ab' * 32}\n old\t{base64.b64encode(bytes(40)).decode()}\n"
    assert parse_secrets(text, "f") == {"new": bytes.fromhex("ab" * 32), "old": bytes(40)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no end"),
        ("\n", "has no secret"),
        ("# nothing\n", "has no secret"),
        (f"a {OLD}", "no end"),
        (f"a {OLD} b\n", "line 1: it must be an id and a secret"),
        (f"{OLD}\n", "line 1: it must be"),
        (f"a {OLD}\na {NEW}\n", "line 2: the id a is there twice"),
        (f"a {OLD[:62]}\n", "at least 32 bytes"),
        ("a !!\n", "at least 32 bytes"),
        (f"ä {OLD}\n", "an id has"),
        (f"{'a' * 33} {OLD}\n", "an id has"),
        ("".join(f"a{number} {OLD}\n" for number in range(17)), "more than 16"),
    ],
)
def test_a_damaged_file_is_refused_without_its_content(text, problem):
    with pytest.raises(SecretError, match=problem) as caught:
        parse_secrets(text, "server.secret")
    assert OLD[:8] not in str(caught.value)


def test_a_file_that_is_cut_off_anywhere_is_refused():
    text = f"a {OLD}\n"
    for size in range(len(text)):
        with pytest.raises(SecretError):
            parse_secrets(text[:size], "server.secret")


@pytest.mark.parametrize("mode", [0o644, 0o642, 0o604])
def test_a_file_that_others_may_use_is_refused(tmp_path, mode):
    path = tmp_path / "server.secret"
    path.write_text(f"a {OLD}\n")
    path.chmod(mode)
    with pytest.raises(SecretError, match="chmod o="):
        read_secrets(str(path))


def test_only_a_regular_file_is_read(tmp_path):
    os.mkfifo(tmp_path / "fifo", 0o600)
    for name in ("fifo", "."):
        with pytest.raises(SecretError):
            read_secrets(str(tmp_path / name))
    (tmp_path / "big").write_bytes(b"#" * 70_000)
    (tmp_path / "big").chmod(0o600)
    with pytest.raises(SecretError, match="larger than"):
        read_secrets(str(tmp_path / "big"))
    (tmp_path / "binary").write_bytes(b"\xff\n")
    (tmp_path / "binary").chmod(0o600)
    with pytest.raises(SecretError, match="ASCII"):
        read_secrets(str(tmp_path / "binary"))


def test_nothing_shows_a_secret(make_secrets):
    secrets = make_secrets(f"a {OLD}")
    keys = secrets.load()
    for shown in (repr(secrets), repr(keys), repr(Signer(secrets))):
        assert OLD[:8] not in shown
        assert repr(bytes.fromhex(OLD))[2:10] not in shown


@pytest.mark.parametrize("size", [32, 63, 64, 65, 200])
def test_a_key_signs_as_hmac_does(size):
    secret = bytes(range(size))
    for text in (b"", b"text" * 100):
        assert Key(secret).sign(text) == hmac.digest(secret, text, "sha256").hex()


def test_a_made_secret_is_one(tmp_path):
    assert len(parse_secrets(f"a {make_secret()}\n", "f")["a"]) >= 32
    assert make_secret() != make_secret()


def test_without_a_file_requests_are_sent_without_signature(tmp_path, clock, verifier):
    secrets = ServerSecrets(str(tmp_path / "absent"), clock=clock, report=pytest.fail)
    assert check(verifier, send(Signer(secrets, clock))) is Refusal.UNSIGNED


def test_a_file_that_appears_is_used_without_a_restart(tmp_path, clock):
    path = tmp_path / "server.secret"
    secrets = ServerSecrets(str(path), clock=clock)
    signer, verifier = Signer(secrets, clock), make_verifier(secrets, clock)
    assert check(verifier, send(signer)) is Refusal.UNSIGNED
    write_secrets(path, f"a {OLD}")
    clock.advance(LOOK_EVERY_S)
    assert check(verifier, send(signer)) is None


def test_a_damaged_file_does_not_replace_good_secrets(make_secrets, clock):
    problems = []
    secrets = make_secrets(f"a {OLD}", report=problems.append)
    signer, verifier = Signer(secrets, clock), make_verifier(secrets, clock)
    assert check(verifier, send(signer)) is None
    path = Path(secrets.path)
    for damage in (
        lambda: path.write_text(""),
        lambda: path.write_text("garbage"),
        lambda: path.chmod(0o644),
        path.unlink,
        path.mkdir,
    ):
        damage()
        for _ in range(3):
            clock.advance(LOOK_EVERY_S)
            assert check(verifier, send(signer)) is None
    assert len(problems) >= 4
    assert all("stay in use" in problem for problem in problems)


def test_a_secret_is_rotated_in_three_steps_without_a_refusal(make_secrets, tmp_path, clock):
    """At each moment some servers have the file of the step before."""
    names = ("one", "two")
    servers = [make_secrets(f"old {OLD}", name=name) for name in names]
    signers = [Signer(secrets, clock) for secrets in servers]
    verifiers = [make_verifier(secrets, clock) for secrets in servers]
    for lines in ((f"old {OLD}", f"new {NEW}"), (f"new {NEW}", f"old {OLD}"), (f"new {NEW}",)):
        for name in names:
            write_secrets(tmp_path / name, *lines)
            clock.advance(LOOK_EVERY_S)
            for signer in signers:
                assert [check(verifier, send(signer)) for verifier in verifiers] == [None, None]
    assert servers[0].current().signing_id == "new"


def test_a_dropped_secret_is_no_longer_valid(make_secrets, clock):
    stolen = Signer(make_secrets(f"old {OLD}", name="stolen"), clock)
    verifier = make_verifier(make_secrets(f"new {NEW}"), clock)
    assert check(verifier, send(stolen)) is Refusal.UNKNOWN_KEY
    forged = Signer(make_secrets(f"new {OLD}", name="forged"), clock)
    assert check(verifier, send(forged)) is Refusal.WRONG_SIGNATURE
