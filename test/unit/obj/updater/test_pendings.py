"""Pending files are found newest first, read without running anything, rewritten under their own name."""

import pickle
import random
from pathlib import Path

import pytest

from swift.base.pickles import PickleRefused
from swift.base.timestamp import Timestamp
from swift.obj.updater.pendings import PendingFiles
from swift.platform.disk import Disk
from swift.policy.policies import Policies
from swift.policy.policy import Policy

GOLDEN = Path(__file__).parents[3] / "golden" / "data" / "async_pending"
GOLD, SILVER = Policy(0, "gold", is_default=True), Policy(1, "silver")
HASH = "c8e56e6d94de34013a9766e6c71f0083"


@pytest.fixture
def files(tmp_path):
    return PendingFiles(Disk(), str(tmp_path), Policies([GOLD, SILVER]))


def put(tmp_path, name, data=b"", directory="async_pending"):
    folder = tmp_path / directory / name.partition("-")[0][-3:]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return str(folder / name)


def record(**more):
    fields = {"op": "PUT", "account": "a", "container": "c", "obj": "o", "headers": {"X-Size": "1"}}
    return pickle.dumps({**fields, **more}, 2)


def test_directories_of_unknown_policies_are_named_and_left_alone(tmp_path, files):
    for name in ("async_pending", "async_pending-1", "async_pending-7", "async_pending-x", "async_pending-0"):
        (tmp_path / name).mkdir()
    (tmp_path / "objects").mkdir()
    known, unknown = files.policies()
    assert known == [GOLD, SILVER]
    assert unknown == ["async_pending-0", "async_pending-7", "async_pending-x"]


def test_suffixes_come_in_random_order(tmp_path, files):
    for number in range(50):
        (tmp_path / "async_pending" / f"{number:03x}").mkdir(parents=True)
    (tmp_path / "async_pending" / "not-a-suffix").mkdir()
    one, two = (files.suffixes(GOLD, random.Random(seed)) for seed in (1, 2))
    assert sorted(one) == sorted(two)
    assert len(one) == 50
    assert one != two


def test_objects_come_with_their_updates_newest_first(tmp_path, files):
    other = f"{'f' * 29}083"
    times = ["5000000003.00000", "5000000003.00000_0000000000000001", "5000000012.00000"]
    for time in times:
        put(tmp_path, f"{HASH}-{time}")
    put(tmp_path, f"{other}-5000000001.00000")
    (tmp_path / "async_pending/083/no_dash").touch()
    (tmp_path / "async_pending/083/one-too-many").touch()
    found, bad = files.objects(GOLD, str(tmp_path / "async_pending/083"))
    assert [one.names for one in found] == [
        (f"{other}-5000000001.00000",),
        tuple(f"{HASH}-{time}" for time in reversed(times)),
    ]
    assert sorted(bad) == ["no_dash", "one-too-many"]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("[0-9]*")), ids=lambda path: path.name[:2])
def test_files_of_the_peer_are_read(tmp_path, files, path):
    where = put(tmp_path, path.name.partition("-")[2], path.read_bytes())
    pending = files.load(where, GOLD)
    assert pending.update.op in ("PUT", "DELETE")
    assert pending.timestamp == Timestamp(where.rpartition("-")[2])
    assert "X-Timestamp" in pending.update.headers
    assert pending.container.count("/") == 1


class Evil:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a pickle",
        pickle.dumps([1, 2]),
        pickle.dumps(Evil()),
        record()[:-20],
        record(op="POST"),
        record(container=None),
        record(obj=""),
        record(headers=None),
        pickle.dumps({"op": "PUT"}),
    ],
)
def test_what_is_no_update_is_refused(tmp_path, files, data):
    with pytest.raises(PickleRefused):
        files.load(put(tmp_path, f"{HASH}-5000000003.00000", data), GOLD)


def test_a_name_without_time_is_refused(tmp_path, files):
    with pytest.raises(PickleRefused):
        files.load(put(tmp_path, f"{HASH}-never", record()), GOLD)


def test_a_file_that_is_gone_is_no_error(tmp_path, files):
    assert files.load(str(tmp_path / "async_pending/083/x-1"), GOLD) is None


def test_progress_survives_rewriting(tmp_path, files):
    path = put(tmp_path, f"{HASH}-5000000003.00000", record(db_state="sharded", successes=[3]))
    before = files.load(path, GOLD)
    assert before.successes == (3,)
    moved = before.redirected("a/shard")
    files.rewrite(moved)
    assert files.load(path, GOLD) == moved
    assert moved.successes == ()
    assert moved.container == "a/shard"
    raw = pickle.loads(Path(path).read_bytes())
    assert raw["redirect_history"] == ["a/shard"]
    assert raw["container_path"] == "a/shard"
    assert raw["db_state"] == "sharded"
    assert not list((tmp_path / "tmp").iterdir())


def test_a_redirect_in_a_circle_starts_over(tmp_path, files):
    pending = files.load(put(tmp_path, f"{HASH}-5000000003.00000", record()), GOLD)
    there = pending.redirected("a/s1").redirected("a/s2")
    assert there.redirects == ("a/s1", "a/s2")
    back = there.redirected("a/s1")
    assert (back.container, back.redirects, back.successes) == ("a/c", (), ())


def test_a_bad_container_path_means_the_own_container(tmp_path, files):
    for bad in ("a", "a/", "/a/b", 5, "a/b/c"):
        path = put(tmp_path, f"{HASH}-5000000003.00000", record(container_path=bad))
        assert files.load(path, GOLD).container == "a/c"


def test_removing_the_last_file_removes_its_directory(tmp_path, files):
    one = put(tmp_path, f"{HASH}-5000000003.00000")
    two = put(tmp_path, f"{HASH}-5000000004.00000")
    assert files.remove(one)
    assert Path(two).exists()
    assert files.remove(two)
    assert list((tmp_path / "async_pending").iterdir()) == []
    assert not files.remove(two)


def test_quarantine_moves_the_file_below_the_policys_objects(tmp_path, files):
    path = put(tmp_path, f"{HASH}-5000000003.00000", b"bad", "async_pending-1")
    moved = files.quarantine(path, SILVER)
    assert moved == str(tmp_path / "quarantined/objects-1" / f"{HASH}-5000000003.00000")
    assert Path(moved).read_bytes() == b"bad"
