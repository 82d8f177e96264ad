"""Recon files merge as the peer's do and never get in the way (spec: object-server.md §16)."""

import json
import threading

import pytest

from swift.telemetry.log import silent_log
from swift.telemetry.recon import ReconFile, merge, parse
from test.support.disks import ODD, bounded, replace


@pytest.fixture
def recon(tmp_path):
    return ReconFile(str(tmp_path), "object", silent_log())


@pytest.mark.parametrize(
    ("have", "new", "merged"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
        ({"a": 1}, {"a": {}}, {}),
        ({}, {"a": {}}, {}),
        ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": {}}}, {"a": {"y": 2}}),
        ({"a": {"x": {"deep": 1}}}, {"a": {"x": {"other": 2}}}, {"a": {"x": {"other": 2}}}),
        ({"a": 5}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
    ],
)
def test_empty_dictionaries_delete_and_others_merge_one_level_deep(have, new, merged):
    before = json.dumps(have)
    assert merge(have, new) == merged
    assert json.dumps(have) == before


def test_the_file_is_one_line_of_sorted_json(recon):
    recon.dump({"b": 1, "a": {"z": 1, "y": 2}})
    with open(recon.path) as file:
        assert file.read() == '{"a": {"y": 2, "z": 1}, "b": 1}\n'


def test_what_others_wrote_stays(recon):
    recon.dump({"theirs": 1})
    recon.dump({"ours": 2})
    assert recon.read() == {"theirs": 1, "ours": 2}


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00", "[" * 100_000], ids=lambda text: text[:3])
def test_a_damaged_file_counts_as_empty_and_is_replaced(recon, text):
    with open(recon.path, "w") as file:
        file.write(text)
    assert parse(text) == {}
    recon.dump({"a": 1})
    assert recon.read() == {"a": 1}


def test_a_missing_directory_is_no_failure(tmp_path):
    recon = ReconFile(str(tmp_path / "nowhere"), "object", silent_log())
    recon.dump({"a": 1})
    assert recon.read() == {}


def test_writers_at_the_same_time_lose_nothing_and_leave_no_temporary_file(tmp_path, recon):
    # File names of temporaries carry the pid; the lock keeps threads apart as well.
    threads = [threading.Thread(target=recon.dump, args=({f"k{n}": n},)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recon.read() == {f"k{n}": n for n in range(12)}
    assert [path.name for path in tmp_path.iterdir()] == ["object.recon"]


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_replaced_and_is_not_waited_for(recon, kind):
    replace(recon.path, kind)
    with bounded():
        assert recon.read() == {}
        recon.dump({"a": 1})
    assert recon.read() == {"a": 1}
