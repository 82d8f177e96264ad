"""The object server beside the peer's: figures are of work per CPU second, sides take turns."""

from types import SimpleNamespace

import pytest

from swift.base.errors import ConfigError
from swift.bench.objects import ROWS, MeasuredServer, ObjectWork, hash_suffixes, measure, table


class Server:
    """A side that has used so much CPU at each look."""

    def __init__(self, name, used_s):
        self.name = name
        self._used_s = used_s
        self._total = 0.0

    def cpu_s(self):
        self._total += self._used_s / 2
        return self._total


def figures(ours, theirs):
    side = lambda value: {"per_cpu_s": value, "per_s": value / 2}  # noqa: E731
    return {ROWS[0].name: {"ours": side(ours), "theirs": side(theirs)}}


def test_a_ratio_stands_beside_both_sides():
    lines = table(figures(400.0, 100.0)).splitlines()
    assert lines[2] == "| PUT 10 KiB | requests | 400 | 100 | **4.0x** | 4x | 200 / 50 |"
    assert len(lines) == 3, "rows that were not measured are not told"


def test_a_side_that_did_nothing_has_an_endless_ratio():
    assert "**infx**" in table(figures(400.0, 0.0))


def test_sides_take_turns_and_warm_up_unmeasured():
    turns = []

    def work(server, number, seconds):
        turns.append((server.name, number, seconds))
        return 100.0

    prepared = []
    row = ObjectWork("x", "things", 1.0, work, lambda server: prepared.append(server.name))
    found = measure(row, [Server("a", 2.0), Server("b", 4.0)], 2, 9)
    assert prepared == ["a", "b"]
    assert turns == [
        *(("a", 2, 1), ("b", 2, 1)),
        *(("a", 0, 9), ("b", 0, 9)),
        *(("b", 1, 9), ("a", 1, 9)),
    ]
    assert found["a"]["per_cpu_s"] == 100.0 and found["b"]["per_cpu_s"] == 50.0
    assert len(found["a"]["rounds"]) == 2


def test_cpu_that_cannot_be_seen_is_not_nothing():
    row = ObjectWork("x", "things", 1.0, lambda server, number, seconds: 5.0)
    assert measure(row, [Server("a", 0.0)], 1, 1)["a"]["per_cpu_s"] == 500.0


def test_a_server_that_refuses_to_hash_ends_the_bench(tmp_path):
    refusing = SimpleNamespace(name="ours", device=tmp_path, ask=lambda *_: 507)
    with pytest.raises(ConfigError, match="ours refused REPLICATE"):
        hash_suffixes(refusing, 0, 1)


def test_a_server_that_does_not_start_is_told_with_its_log(tmp_path):
    server = MeasuredServer("ours", tmp_path / "ours", 1, ["false"])
    with pytest.raises(ConfigError, match="ours did not start; see .*log"):
        server.start()
    server.stop()
    assert (tmp_path / "ours" / "dev" / "sda").is_dir()
