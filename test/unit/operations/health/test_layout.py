"""Nodes that lag, have no layout agent, report errors or changed files are named once, with a remedy."""

from dataclasses import replace

from swift.operations.health.evaluate import ClusterSnapshot, evaluate
from swift.operations.health.layout import (
    LAG_S,
    SILENT_S,
    LayoutReport,
    controller_problems,
    layout_problems,
    leading_controller,
    parse_controller,
    parse_report,
)
from swift.operations.health.screen import screen
from swift.operations.recon.client import Host

NOW_S = 1_700_000_000.0
WELL = LayoutReport(7, "a" * 16, NOW_S - 1000, NOW_S - 10, "", ())
HOSTS = [Host(f"10.0.0.{number}", 6200) for number in (1, 2, 3)]


def problems(*reports, now_s=NOW_S):
    return list(layout_problems(dict(zip(HOSTS, reports, strict=False)), now_s))


def test_a_cluster_without_a_layout_has_no_problem():
    assert problems(None, None) == []
    assert problems(None, LayoutReport(0, "", 0, 0, "", ())) == []


def test_nodes_with_the_newest_layout_have_no_problem():
    assert problems(WELL, WELL, WELL) == []


def test_a_node_that_lags_is_named_after_some_time():
    late = replace(WELL, version=6, id="b")
    ((text, remedy),) = problems(WELL, late, WELL)
    assert text == "1 node without version 7 of the layout: 10.0.0.2"
    assert "within a minute" in remedy
    assert problems(WELL, late, now_s=WELL.issued_s + LAG_S) == []
    assert len(problems(WELL, replace(late, version=4), now_s=WELL.issued_s + LAG_S)) == 1


def test_nodes_with_two_layouts_of_one_version_are_named():
    assert "10.0.0.2" in problems(WELL, replace(WELL, id="0"))[0][0]


def test_nodes_without_an_agent_are_named():
    gone = replace(WELL, checked_s=NOW_S - 3600, version=6, id="b")
    ((text, remedy),) = problems(WELL, None, gone)
    assert text == "2 nodes without a layout agent at work: 10.0.0.2, 10.0.0.3"
    assert "swift-init layout-agent start" in remedy
    assert problems(WELL, LayoutReport(0, "", 0, NOW_S, "", ()))[0][0].startswith("1 node without a layout")


def test_errors_and_changed_files_are_told():
    failing = replace(WELL, error="no storage server responds", version=5, id="c")
    changed = replace(WELL, changed=("object.ring.gz",))
    texts = [text for text, _remedy in problems(WELL, failing, changed)]
    assert texts == [
        "1 node whose layout agent reports: no storage server responds: 10.0.0.2",
        "1 node with layout files that were changed by hand (object.ring.gz): 10.0.0.3",
    ]


def test_servers_of_one_node_count_once():
    reports = {Host("10.0.0.1", port): None for port in (6200, 6201, 6202)}
    ((text, _remedy),) = layout_problems({**reports, HOSTS[1]: WELL}, NOW_S)
    assert text == "1 node without a layout agent at work: 10.0.0.1"


def test_pages_are_parsed():
    page = {
        "version": 7,
        "id": "a" * 16,
        "issued": WELL.issued_s,
        "last_check": WELL.checked_s,
        "error": "",
        "changed": [],
        "since": 1.0,
    }
    assert parse_report(page) == WELL
    assert parse_report(None) is None
    assert parse_report({}) == LayoutReport(0, "None", 0, 0, "", ())


# --- the controller -------------------------------------------------------------------------------------

SAID = {
    "said": "ring object: 3 copies are still to arrive",
    "last": NOW_S,
    "leads": True,
    "version": 9,
    "change": "drain 10.0.0.2",
    "left_s": 7200.0,
    "rings": {"object": {"all": 8, "arrived": 2, "moving": 3}},
}


def test_the_controller_with_the_lease_counts_then_the_newest():
    leads, waits = (parse_controller({**SAID, "leads": is_first}) for is_first in (True, False))
    newer = replace(waits, checked_s=NOW_S + 9)
    assert leading_controller([newer, leads, waits], NOW_S) == leads
    assert leading_controller([waits, newer], NOW_S) == newer
    assert leading_controller([replace(leads, checked_s=9e17), waits], NOW_S) == waits
    assert leading_controller([], NOW_S) is None


def test_a_controller_that_leaves_a_change_alone_is_told():
    report = parse_controller(SAID)
    assert not list(controller_problems(report, NOW_S + SILENT_S))
    ((text, remedy),) = controller_problems(report, NOW_S + SILENT_S + 1)
    assert "does not go on" in text and remedy == "start it: swift-init layout-controller start"
    assert not list(controller_problems(parse_controller({**SAID, "change": ""}), NOW_S + 9 * SILENT_S))
    assert not list(controller_problems(None, NOW_S))


def test_the_screen_shows_how_far_a_change_is():
    snapshot = ClusterSnapshot(controller=parse_controller(SAID))
    shown = "\n".join(screen(evaluate([], {}, snapshot, now_s=NOW_S), NOW_S))
    assert "layout: drain 10.0.0.2: 25 % has arrived, about 2 hours left" in shown
    assert SAID["said"] in shown


def test_a_page_does_not_speak_to_the_terminal():
    rude, plain = "\x1b[2J\r\n\x9bé\u202e", "?[2J???é?"
    report = parse_report({"version": 1, "id": rude, "error": rude, "changed": [rude]})
    assert (report.id, report.error, report.changed) == (plain, plain, (plain,))
    said = {"last": 1, "said": rude, "change": rude, "paused": rude, "away": [rude], "rings": {rude: {}}}
    page = parse_controller(said)
    assert (page.text, page.change, page.paused, page.away) == (plain, plain, plain, (plain,))
    assert list(page.moves) == [plain]
