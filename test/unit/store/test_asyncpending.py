"""Kept updates are found newest first, read without running anything, rewritten under their own name."""

import pickle
from pathlib import Path

import pytest

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.obj.updater.delivery import container_of, redirected
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate, UpdateRef
from swift.store.asyncpending import FileUpdates
from swift.store.errors import Damaged
from test.support.disks import ODD, bounded, replace

GOLDEN = Path(__file__).parents[2] / "golden" / "data" / "async_pending"
GOLD, SILVER = Policy(0, "gold", is_default=True), Policy(1, "silver")
HASH = "c8e56e6d94de34013a9766e6c71f0083"


@pytest.fixture
def device(tmp_path):
    made = tmp_path / "sda"
    made.mkdir()
    return made


@pytest.fixture
def files(tmp_path, device):
    return FileUpdates(Disk(), Devices(str(tmp_path), mount_check=False), PathHasher(b"p", b"s"))


def put(device, name, data=b"", policy=GOLD):
    folder = (
        device / ("async_pending-1" if policy is SILVER else "async_pending") / name.partition("-")[0][-3:]
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return UpdateRef("sda", policy, name)


def path_of(device, ref):
    return device / "async_pending" / ref.name.partition("-")[0][-3:] / ref.name


def record(**more):
    fields = {"op": "PUT", "account": "a", "container": "c", "obj": "o", "headers": {"X-Size": "1"}}
    return pickle.dumps({**fields, **more}, 2)


def test_directories_of_unknown_policies_are_named_and_left_alone(device, files):
    for name in ("async_pending", "async_pending-1", "async_pending-7", "async_pending-x", "async_pending-0"):
        (device / name).mkdir()
    (device / "objects").mkdir()
    found = files.unknown_policies("sda", [GOLD, SILVER])
    assert found == ["async_pending-0", "async_pending-7", "async_pending-x"]


def test_groups_are_the_suffixes(device, files):
    assert files.groups("sda", GOLD) == []
    for number in range(50):
        (device / "async_pending" / f"{number:03x}").mkdir(parents=True)
    (device / "async_pending" / "not-a-suffix").mkdir()
    assert sorted(files.groups("sda", GOLD)) == [f"{number:03x}" for number in range(50)]


def test_objects_come_with_their_updates_newest_first(device, files):
    other = f"{'f' * 29}083"
    times = ["5000000003.00000", "5000000003.00000_0000000000000001", "5000000012.00000"]
    for time in times:
        put(device, f"{HASH}-{time}")
    put(device, f"{other}-5000000001.00000")
    strays = ["no_dash", "one-too-many", f"{'0' * 32}-5000000001.00000"]
    for name in strays:
        (device / "async_pending/083" / name).touch()
    found, bad = files.objects("sda", GOLD, "083")
    assert [[ref.name for ref in refs] for refs in found] == [
        [f"{other}-5000000001.00000"],
        [f"{HASH}-{time}" for time in reversed(times)],
    ]
    assert sorted(Path(path).name for path in bad) == sorted(strays)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("[0-9]*")), ids=lambda path: path.name[:2])
def test_files_of_the_peer_are_read(device, files, path):
    where = put(device, path.name.partition("-")[2], path.read_bytes())
    pending = files.load(where)
    assert pending.update.op in ("PUT", "DELETE")
    assert pending.timestamp == Timestamp(where.name.rpartition("-")[2])
    assert "X-Timestamp" in pending.update.headers
    assert container_of(pending).count("/") == 1


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
def test_what_is_no_update_is_refused(device, files, data):
    with pytest.raises(Damaged):
        files.load(put(device, f"{HASH}-5000000003.00000", data))


def test_a_name_without_time_is_refused(device, files):
    with pytest.raises(Damaged):
        files.load(put(device, f"{HASH}-never", record()))


def test_a_file_that_is_gone_is_no_error(device, files):
    assert files.load(UpdateRef("sda", GOLD, f"{HASH}-1")) is None


def test_progress_survives_rewriting(device, files):
    path = put(device, f"{HASH}-5000000003.00000", record(db_state="sharded", successes=[3]))
    before = files.load(path)
    assert before.successes == (3,)
    moved = redirected(before, "a/shard")
    files.rewrite(moved)
    assert files.load(path) == moved
    assert moved.successes == ()
    assert container_of(moved) == "a/shard"
    raw = pickle.loads(path_of(device, path).read_bytes())
    assert raw["redirect_history"] == ["a/shard"]
    assert raw["container_path"] == "a/shard"
    assert raw["db_state"] == "sharded"
    assert not list((device / "tmp").iterdir())


def test_a_redirect_in_a_circle_starts_over(device, files):
    pending = files.load(put(device, f"{HASH}-5000000003.00000", record()))
    there = redirected(redirected(pending, "a/s1"), "a/s2")
    assert there.redirects == ("a/s1", "a/s2")
    back = redirected(there, "a/s1")
    assert (container_of(back), back.redirects, back.successes) == ("a/c", (), ())


def test_a_bad_container_path_means_the_own_container(device, files):
    for bad in ("a", "a/", "/a/b", 5, "a/b/c"):
        path = put(device, f"{HASH}-5000000003.00000", record(container_path=bad))
        assert container_of(files.load(path)) == "a/c"


def test_removing_the_last_file_removes_its_directory(device, files):
    one = put(device, f"{HASH}-5000000003.00000")
    two = put(device, f"{HASH}-5000000004.00000")
    assert files.remove(one)
    assert path_of(device, two).exists()
    assert files.remove(two)
    assert list((device / "async_pending").iterdir()) == []
    assert not files.remove(two)


def test_quarantine_moves_the_file_below_the_policys_objects(device, files):
    path = put(device, f"{HASH}-5000000003.00000", b"bad", SILVER)
    moved = files.quarantine(path)
    assert moved == str(device / "quarantined/objects-1" / f"{HASH}-5000000003.00000")
    assert Path(moved).read_bytes() == b"bad"


@pytest.mark.parametrize("kind", sorted(set(ODD) - {"empty"}))
def test_an_update_that_is_no_file_is_damage_and_is_not_waited_for(device, files, kind):
    ref = put(device, f"{HASH}-{Timestamp(5).internal}", record())
    replace(path_of(device, ref), kind)
    with bounded(), pytest.raises(Damaged, match="in the place of a file"):
        files.load(ref)
    assert files.quarantine(ref, "odd").startswith(str(device / "quarantined/objects"))


@pytest.mark.parametrize("kind", sorted(set(ODD) - {"directory"}))
def test_an_update_is_kept_where_something_odd_was_in_the_place_of_its_directory(device, files, kind):
    update = AsyncUpdate("PUT", EntityPath("a", "c", "o"), {"X-Size": "1"}, None)
    files.save("sda", GOLD, update, Timestamp(5))
    (group,) = files.groups("sda", GOLD)
    replace(device / "async_pending" / group, kind)
    with bounded():
        assert files.objects("sda", GOLD, group) == ([], [])
        files.save("sda", GOLD, update, Timestamp(6))
    assert len(files.objects("sda", GOLD, group)[0]) == 1
