"""The console's search of the audit log."""

import json
import os

import pytest

from swift.console.operators import auditlog
from swift.console.operators.auditlog import AuditTerms, Position, lines_backwards, search
from test.support.console import ConsoleWorld

MARKUP = "<script>alert(1)</script>\u202e\x00"


def line(number, **values):
    known = {
        "time": f"2026-11-29T09:{number:02d}:00.000000Z",
        "client": "10.0.0.7",
        "user": "t:u",
        "status": 201,
    }
    return {**known, "method": "PUT", "account": "AUTH_t", "container": "c", "object": f"o{number}", **values}


def write(path, lines):
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "audit.log"
    write(path, [line(number) for number in range(20, 30)])
    write(tmp_path / "audit.log-20261129T090900000000000Z", [line(number) for number in range(10)])
    write(tmp_path / "audit.log-20261129T091900000000000Z", [line(number) for number in range(10, 20)])
    (tmp_path / "audit.log-other").write_text("no log")
    return path


def numbers(found):
    return [int(each["object"][1:]) for each in found.lines]


def test_lines_come_newest_first_and_through_rotated_files(log):
    seen, before = [], None
    while True:
        found = search(str(log), AuditTerms(), before, 7)
        seen += numbers(found)
        before = found.next
        if before is None:
            break
    assert seen == list(reversed(range(30)))


def test_a_rotation_between_two_pages_loses_and_repeats_nothing(log, tmp_path):
    found = search(str(log), AuditTerms(), None, 4)
    assert numbers(found) == [29, 28, 27, 26]
    log.rename(tmp_path / "audit.log-20261129T092900000000000Z")
    write(log, [line(30)])
    assert numbers(search(str(log), AuditTerms(), found.next, 4)) == [25, 24, 23, 22]


@pytest.mark.parametrize(
    ("terms", "count"),
    [
        ({"user": "t:u"}, 30),
        ({"user": "KEY"}, 1),
        ({"path": "AUTH_t/c/o2"}, 11),
        ({"method": "DELETE"}, 1),
        ({"status": "4"}, 1),
        ({"status": "201"}, 29),
        ({"address": "10.0.0.9"}, 1),
        ({"address": "10.0.0"}, 0),
        ({"since": "2026-11-29T09:25"}, 5),
        ({"until": "2026-11-29T09:03"}, 4),
        ({"since": "2026-11-29T09:03", "until": "2026-11-29T09:03"}, 1),
    ],
)
def test_terms_choose_lines(log, terms, count):
    lines = [line(number) for number in range(20, 29)]
    other = {"method": "DELETE", "status": 403, "peer": "10.0.0.9", "access_key": "KEY"}
    write(log, [*lines, line(29, **other)])
    assert len(search(str(log), AuditTerms(**terms), None, 100).lines) == count


def test_a_search_reads_a_bounded_part_and_goes_on_from_there(log, monkeypatch):
    monkeypatch.setattr(auditlog, "SEARCH_BYTES_MAX", 500)
    found = search(str(log), AuditTerms(path="o0"), None, 100)
    assert found.is_cut and not found.lines
    seen = []
    while found.next is not None:
        found = search(str(log), AuditTerms(path="o0"), found.next, 100)
        seen += numbers(found)
    assert seen == [0]


def test_long_and_torn_lines_are_passed_over(log, monkeypatch):
    monkeypatch.setattr(auditlog, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(auditlog, "_LINE_BYTES_MAX", 400)
    good = json.dumps(line(7)).encode()
    log.write_bytes(b"\n".join([good, b"x" * 5000, b"{", b"[1]", b"", b"\xff", good]))
    found = search(str(log), AuditTerms(user="t:u"), None, 2)
    assert numbers(found) == [7, 7]


@pytest.mark.parametrize("filler", [b"\0", b"\n", b"x"])
def test_a_search_of_a_file_without_lines_ends_and_goes_on(log, monkeypatch, filler):
    monkeypatch.setattr(auditlog, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(auditlog, "_LINE_BYTES_MAX", 400)
    monkeypatch.setattr(auditlog, "SEARCH_BYTES_MAX", 10_000)
    good = json.dumps(line(7)).encode()
    log.write_bytes(good + b"\n" + filler * 50_000)
    found, searches = search(str(log), AuditTerms(), None, 1), 1
    while not found.lines:
        assert found.is_cut
        found, searches = search(str(log), AuditTerms(), found.next, 1), searches + 1
    assert numbers(found) == [7] and 4 < searches < 12


def test_offsets_are_those_of_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(auditlog, "_BLOCK_BYTES", 5)
    data = b"first\n\nsecond line\nlast"
    path = tmp_path / "file"
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        found = [each for each in lines_backwards(fd, len(data)) if each[1]]
    finally:
        os.close(fd)
    assert found == [(19, b"last"), (7, b"second line"), (0, b"first")]


def test_a_place_in_a_file_that_is_gone_has_no_lines(log):
    assert search(str(log), AuditTerms(), Position(1, 5), 5).lines == []


def test_the_page_shows_lines_inert_and_searches(make_sim, log):
    write(log, [line(1, user=MARKUP, object=MARKUP, reason=MARKUP, txid=MARKUP), line(2, object="plain")])
    world = ConsoleWorld(make_sim(allow_account_management=True), audit_log=str(log))
    browser = world.browser("a:op")
    page = browser.get("/console/audit")
    assert "&lt;script&gt;" in page and "<script>alert" not in page and "\u202e" not in page
    assert page.index("AUTH_t/c/plain") < page.index("&lt;script&gt;")
    page = browser.get("/console/audit", path="plain", status="2", since="2026-11-29T09:00")
    assert "AUTH_t/c/plain" in page and "&lt;script&gt;" not in page
    page = browser.get("/console/audit", user=MARKUP)
    assert "&lt;script&gt;" in page and "AUTH_t/c/plain" not in page
    for wrong in ({"since": "yesterday"}, {"before": "x"}, {"before": "1-²"}, {"before": "1"}):
        browser.get("/console/audit", **wrong)
        assert browser.status == 400, wrong


def test_pages_follow_each_other(make_sim, log):
    write(log, [line(number % 60, object=f"n{number}") for number in range(150)])
    browser = ConsoleWorld(make_sim(allow_account_management=True), audit_log=str(log)).browser("a:op")
    page = browser.get("/console/audit", path="/n")
    assert "AUTH_t/c/n149" in page and "AUTH_t/c/n49<" not in page
    page = browser.get(next(link for link in browser.links if "before=" in link))
    assert "AUTH_t/c/n49<" in page and "AUTH_t/c/n0<" in page and "AUTH_t/c/n50<" not in page


def test_a_log_that_is_not_there_or_unreadable_has_a_sentence(make_sim, tmp_path):
    sim = make_sim(allow_account_management=True)
    browser = ConsoleWorld(sim, audit_log=str(tmp_path / "log")).browser("a:op")
    assert "There is no audit log at" in browser.get("/console/audit")
    (tmp_path / "log").mkdir()
    assert "cannot be read:" in browser.get("/console/audit") and browser.status == 200
