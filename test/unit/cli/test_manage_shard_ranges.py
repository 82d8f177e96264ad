"""Shards of a database are shown, found, replaced and enabled by hand, as with the peer's command."""

import io
import json
import os
import shutil
import sqlite3
from contextlib import closing
from hashlib import md5

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.cli.manage_shard_ranges import main
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.container.shardtable import ShardQuery
from swift.db.broker import Engine
from swift.db.files import DatabasePath

PLACE = ("containers", "1", "ab" * 16)


class Bench:
    def __init__(self, root, capsys, monkeypatch):
        (root / "sdb1").mkdir()
        self.place = DatabasePath(str(root / "sdb1"), *PLACE)
        self.root, self._capsys, self._monkeypatch = root, capsys, monkeypatch
        stamp = Timestamp("1795000000.00000")
        broker = ContainerBroker(self.place, Engine(), "AUTH_test", "c")
        broker.refresh()
        broker.create(stamp, 0, created_at=stamp)
        names = [f"o{number:03d}" for number in range(10)]
        broker.merge_rows([ObjectRow(name, stamp.internal, 1, "t/p", "e") for name in names])
        self.path = broker.newest.path
        broker.close()

    def __call__(self, *words, answers=""):
        self._monkeypatch.setattr("sys.stdin", io.StringIO(answers))
        code = main([self.path, *words])
        out, err = self._capsys.readouterr()
        return code, out, err

    def ranges(self, **query):
        broker = ContainerBroker(self.place, Engine(), "AUTH_test", "c")
        broker.refresh()
        try:
            return broker.shard_ranges(ShardQuery(**query))
        finally:
            broker.close()

    @property
    def stored_count(self):
        """The number of objects in the tables."""
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute("SELECT COUNT(*) FROM object").fetchone()[0]

    def file(self, content):
        path = self.root / "ranges.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)


@pytest.fixture
def bench(tmp_path, capsys, monkeypatch):
    return Bench(tmp_path, capsys, monkeypatch)


def test_cuts_are_found_as_the_peer_finds_them(bench):
    code, out, err = bench("find", "4")
    assert code == 0
    assert json.loads(out) == [
        {"index": 0, "lower": "", "object_count": 4, "upper": "o003"},
        {"index": 1, "lower": "o003", "object_count": 4, "upper": "o007"},
        {"index": 2, "lower": "o007", "object_count": 2, "upper": ""},
    ]
    assert err.startswith("Loaded db broker for AUTH_test/c\nFound 3 ranges in ")
    assert err.endswith("s (total object count 10)\n")
    sizes = [cut["object_count"] for cut in json.loads(bench("find", "4", "--minimum-shard-size", "3")[1])]
    assert sizes == [4, 6]
    assert json.loads(bench("find", "20")[1]) == []


@pytest.mark.parametrize(
    ("option", "count"), [(None, 11), ("--force-commits", 11), ("--skip-commits", 10)], ids=str
)
def test_pending_rows_are_merged_unless_skipped(bench, option, count):
    broker = ContainerBroker(bench.place, Engine(), "AUTH_test", "c")
    broker.refresh()
    broker.put_rows([ObjectRow("pending", Timestamp("1795000000.00000").internal, 1, "t/p", "e")])
    broker.close()
    options = [option] if option else []
    assert main([*options, bench.path, "show"]) == 0
    assert bench.stored_count == count


def test_pending_rows_cannot_be_both_merged_and_skipped(bench):
    with pytest.raises(SystemExit, match="2"):
        main(["--skip-commits", "--force-commits", bench.path, "info"])


def test_what_is_found_replaces_what_there_is_and_is_shown(bench):
    assert bench("show")[2].endswith("No shard data found.\n")
    code, out, _ = bench("find_and_replace", "4")
    assert code == 0
    assert out.splitlines() == [
        "No shard ranges found to delete.",
        "Injected 3 shard ranges.",
        "Run container-replicator to replicate them to other nodes.",
        "Use the enable sub-command to enable sharding.",
    ]
    shown = json.loads(bench("show")[1])
    assert [(row["lower"], row["upper"], row["state"]) for row in shown] == [
        ("", "o003", "found"),
        ("o003", "o007", "found"),
        ("o007", "", "found"),
    ]
    assert shown[0]["name"].startswith(".shards_AUTH_test/c-4a8a08f09d37b73795649038408b5f33-")
    assert json.loads(bench("show", "-b")[1]) == [["", "o003"], ["o003", "o007"], ["o007", ""]]
    assert [row["upper"] for row in json.loads(bench("show", "--includes", "o005")[1])] == ["o007"]


def test_existing_shards_are_deleted_only_with_consent(bench):
    bench("find_and_replace", "4")
    assert bench("delete")[0] == 3
    code, out, _ = bench("delete", answers="no\ns\nq\n")
    assert code == 3
    assert "Please make a valid choice." in out
    assert len(bench.ranges()) == 3
    code, out, _ = bench("find_and_replace", "5", answers="yes\n")
    assert code == 0
    assert "Deleted 3 existing shard ranges." in out
    assert len(bench.ranges()) == 2
    assert bench("delete", "-f")[1] == "Deleted 2 existing shard ranges.\n"
    assert bench.ranges() == []
    assert len(json.loads(bench("show", "-d")[1])) == 5


def test_shards_that_do_not_cover_everything_are_refused(bench):
    assert bench("enable")[:2] == (1, "WARNING: invalid shard ranges: ['No shard ranges.'].\nAborting.\n")
    partial = bench.file([{"index": 0, "lower": "", "upper": "o003", "object_count": 4}])
    code, out, _ = bench("replace", partial)
    assert (code, out) == (1, "WARNING: invalid shard ranges: [' != o003'].\nAborting.\n")
    assert bench.ranges() == []


def test_splitting_is_enabled_once(bench):
    found = bench.file(bench("find", "4")[1])
    code, out, _ = bench("replace", found, "--enable")
    assert code == 0
    assert "Container moved to state 'sharding' with epoch " in out
    (own,) = [item for item in bench.ranges(include_own=True) if item.name == "AUTH_test/c"]
    assert own.state == State.SHARDING and own.epoch == own.state_timestamp
    code, out, _ = bench("enable")
    assert code == 0
    assert out.startswith(
        f"Container already in state 'sharding' with epoch {own.epoch}.\nNo action required."
    )
    told = bench("info")[1]
    assert "Sharding enabled = True" in told
    assert '"state": "sharding"' in told
    assert "X-Container-Sysmeta-Sharding = True" in told


def test_whole_ranges_are_merged(bench):
    bench("find_and_replace", "4")
    rows = json.loads(bench("show")[1])
    rows[0]["object_count"], rows[0]["meta_timestamp"] = 77, "1900000000.00000"
    assert bench("merge", bench.file(rows), "-n")[0] == 3
    assert bench.ranges()[0].object_count == 4
    assert bench("merge", bench.file(rows), "-y")[0] == 0
    assert bench.ranges()[0].object_count == 77


def test_only_a_split_root_is_compacted(bench):
    code, out, _ = bench("compact", "-n")
    assert (code, out) == (1, "WARNING: Container is not yet sharded so cannot be compacted.\n")


@pytest.mark.parametrize("content", ["no json", "{}", "[1]", '[{"lower": "a"}]'])
def test_files_of_no_use_are_refused_in_a_line(bench, content):
    code, _out, err = bench("replace", bench.file(content))
    assert code == 2
    assert len(err.splitlines()) == 2


def test_files_that_are_not_there_are_named(bench, capsys):
    assert bench("replace", "/nofile")[0] == 2
    for path in ("/nodb", "relative", str(bench.root)):
        assert main([path, "show"]) == 1
        assert capsys.readouterr().err.startswith(f"Error opening container DB {path}: ")
    assert main(["--config", "/nofile", bench.path, "show"]) == 2


def test_a_file_is_found_from_its_directory_and_by_its_name_before_a_split(bench, monkeypatch, capsys):
    monkeypatch.chdir(bench.place.directory)
    name = f"{bench.place.name_hash}.db"
    assert main([name, "find_and_replace", "5", "--force"]) == 0
    assert len(bench.ranges()) == 2
    os.rename(name, f"{bench.place.name_hash}_1795000001.00000.db")
    for path in (name, f"{bench.place.directory}/{name}", f"./{bench.place.name_hash}_1795000001.00000.db"):
        capsys.readouterr()
        assert main([path, "show", "--brief"]) == 0
        assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_copy_outside_of_a_device_is_looked_at_and_changed(bench, capsys):
    copy = bench.root / "copy.db"
    shutil.copyfile(bench.path, copy)
    assert main([str(copy), "find_and_replace", "5", "--force"]) == 0
    capsys.readouterr()
    assert main([str(copy), "show", "--brief"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert bench.ranges() == [], "only the copy was changed"
    assert sorted(os.listdir(bench.root)) == ["copy.db", "sdb1"]


def shard(index, lower, upper, *, state="active", objects=10, made="1795000000.00000", parent="c"):
    digest = md5(parent.encode(), usedforsecurity=False).hexdigest()
    return {
        "name": f".shards_AUTH_test/c-{digest}-1795000000.00000-{index}",
        "timestamp": made,
        "lower": lower,
        "upper": upper,
        "object_count": objects,
        "state": state,
        "tombstones": 0,
    }


OVERLAP = [shard(0, "", "b"), shard(1, "b", "d"), shard(2, "a", "d", objects=3), shard(3, "d", "")]
GAPS = [shard(0, "a", "b"), shard(1, "c", "d"), shard(2, "d", "e", state="cleaved")]


def analyze(bench, capsys, ranges, *words):
    code = main([bench.file(ranges), "analyze", *words])
    return code, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("ranges", "code", "last"),
    [
        ([shard(0, "", "b"), shard(1, "b", "")], 0, "No repairs necessary."),
        (OVERLAP, 0, "    3 object records being moved to the chosen shard ranges."),
        (GAPS, 1, "Gap filling not supported by this tool. No repairs performed."),
        ([], 1, "Gap filling not supported by this tool. No repairs performed."),
        ([shard(0, "", "b", state="sharding"), shard(1, "b", "")], 1, "No repairs performed."),
        ([shard(0, "", "b", state="created"), shard(1, "b", "")], 1, "No repairs performed."),
    ],
)
def test_files_of_shards_are_analyzed_as_the_peer_does(bench, capsys, ranges, code, last):
    told = analyze(bench, capsys, ranges)
    assert (told[0], told[1][-1]) == (code, last)


def test_the_sequence_with_most_objects_is_kept(bench, capsys):
    ranges = [
        shard(0, "", "b"),
        shard(1, "b", ""),
        shard(2, "", "c", objects=9),
        shard(3, "c", "", objects=9),
    ]
    assert "from 2 overlapping donor" in analyze(bench, capsys, ranges)[1][1]
    assert "current total of 20 object" in analyze(bench, capsys, ranges)[1][1]
    late = [shard(n, low, up, made="1795000009.00000") for n, low, up in ((4, "", "a"), (5, "a", ""))]
    for some in (ranges + late, late + ranges):
        code = main(["-v", bench.file(some), "analyze"])
        told = capsys.readouterr().out
        assert code == 0
        assert told.partition("Acceptors:")[2].count("-4'\n") == 1


def test_young_shards_and_relatives_are_left_alone(bench, capsys):
    young = Timestamp.now().normal
    told = analyze(
        bench, capsys, [*OVERLAP[:2], shard(2, "a", "d", made=young), OVERLAP[3]], "--min-shard-age", "99"
    )
    assert told[1][0] == "1 overlapping donor shards ignored due to minimum age limit"
    parent = shard(0, "", "b")
    children = [
        shard(n, low, up, objects=1, parent=parent["name"].partition("/")[2])
        for n, low, up in ((7, "", "a"), (8, "a", "b"))
    ]
    told = analyze(bench, capsys, [parent, shard(1, "b", ""), *children])
    assert told[1][0] == "2 donor shards ignored due to parent-child relationship checks"
    assert told[0] == 0


@pytest.mark.parametrize("content", ["no json", "{}", "[1]", '[{"lower": "a"}]'])
def test_files_that_cannot_be_analyzed_are_refused_in_a_line(bench, capsys, content):
    assert main([bench.file(content), "analyze"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_overlapping_shards_shrink_with_consent(bench):
    bench("merge", bench.file(OVERLAP), "-y")
    for words, answers in ((["-n"], ""), ([], "no\n"), ([], "")):
        code, out, _ = bench("repair", *words, answers=answers)
        assert (code, out.splitlines()[-1][-18:]) == (3, "No changes applied")
    assert bench("repair", answers="yes\n")[0] == 0
    (gone,) = [item for item in bench.ranges() if item.state == State.SHRINKING]
    assert gone.name.endswith("-2") and gone.epoch == gone.state_timestamp
    assert bench("repair", "-y")[:2] == (
        1,
        "WARNING: Found shard ranges in shrinking state\nNo repairs performed.\n",
    )


def test_gaps_are_filled_by_active_neighbours(bench):
    bench("merge", bench.file(GAPS), "-y")
    assert bench("repair", "-y")[0] == 1
    assert bench("repair", "--gaps", "-n")[0] == 3
    code, out, _ = bench("repair", "--gaps", "-y")
    assert code == 0
    assert "WARNING: cannot fix gap: non-ACTIVE neighbors" in out
    assert [(item.lower, item.upper) for item in bench.ranges()] == [("", "b"), ("b", "d"), ("d", "e")]
    only = [{**shard(5, "c", "d"), "timestamp": "1900000000.00000"}]
    bench("delete", "-f")
    bench("merge", bench.file(only), "-y")
    assert bench("repair", "--gaps", "--max-expanding", "1", "-n")[0] == 3
    assert (
        "\n      objects:        10, tombstones:         0, lower: ''\n" in bench("repair", "--gaps", "-n")[1]
    )


# The following exit codes and outputs are OpenStack Swift's 2.38.3, recorded for databases in each state.


def merge_own(bench, state):
    broker = ContainerBroker(bench.place, Engine(), "AUTH_test", "c")
    broker.refresh()
    stamp = Timestamp("1795000001").internal
    epoch = stamp if state not in (State.FOUND, State.CREATED, State.CLEAVED, State.ACTIVE) else None
    broker.merge_shard_ranges(
        [ShardRange("AUTH_test/c", stamp, state=state, state_timestamp=stamp, epoch=epoch)]
    )
    broker.close()


@pytest.mark.parametrize("state", [s for s in State if s not in (State.ACTIVE, State.SHARDING)])
def test_ranges_are_injected_in_every_state_although_sharding_is_not_enabled(bench, state):
    merge_own(bench, state)
    code, out, _err = bench("find_and_replace", "4", "--enable")
    assert (code, len(bench.ranges())) == (1, 3)
    assert f"WARNING: container in state {state.name.lower()} (should be active or sharding)." in out


def test_a_copy_keeps_what_was_injected_before_sharding_was_not_enabled(bench, capsys):
    merge_own(bench, State.CLEAVED)
    copy = shutil.copy(bench.path, bench.root / "copy.db")
    assert main([str(copy), "find_and_replace", "4", "--enable"]) == 1
    capsys.readouterr()
    assert main([str(copy), "show"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3


@pytest.mark.parametrize("words", [("enable",), ("find_and_replace", "4", "--force", "--enable")])
def test_a_shard_without_own_range_is_refused(bench, words):
    broker = ContainerBroker(bench.place, Engine(), "AUTH_test", "c")
    broker.refresh()
    name, stamp = "X-Container-Sysmeta-Shard-Quoted-Root", Timestamp("1795000001").internal
    broker.update_metadata({name: ("AUTH_test/root", stamp)})
    broker.close()
    code, out, _err = bench(*words)
    assert (code, out) == (2, "WARNING: shard container missing own shard range.\nAborting.\n")
    assert bench.ranges() == []


@pytest.mark.parametrize(
    ("words", "code", "last"),
    [
        (("repair", "--yes"), 0, "No shards found, nothing to do."),
        (("repair", "--gaps", "--yes"), 0, "Run container-sharder on all nodes to fill gaps."),
        (("repair", "--gaps", "--dry-run"), 3, "No changes applied"),
        (("compact", "--yes"), 1, "WARNING: Container is not yet sharded so cannot be compacted."),
    ],
)
def test_a_container_without_shards_has_nothing_to_repair(bench, words, code, last):
    got, out, _err = bench(*words)
    assert (got, out.splitlines()[-1]) == (code, last)
