"""swift/store/packed/opening.py: who shares an index, and who leaves it whole."""

from __future__ import annotations

import errno
import json

import pytest

from swift.base.errors import ConfigError
from swift.platform.disk import Disk
from swift.platform.sharedstate import StateHeld, held
from swift.store.lmdbindex import IndexBusy, IndexFailed, IndexReplaced, opening_failed
from swift.store.packed.opening import DeviceIndex, IndexInUse, IndexOpening
from swift.store.packed.settings import PackedSettings


def opened(root, memory="memory", boot="boot"):
    (root / "packed").mkdir(exist_ok=True)
    return DeviceIndex(str(root / "index"), boot, str(root / memory), str(root / "packed"))


def put(index):
    with index.writing() as writing:
        writing.put(b"key", b"value")


def test_an_index_that_its_last_user_closed_survives_a_boot(tmp_path):
    index, other = opened(tmp_path), opened(tmp_path)
    put(index)
    index.close()
    other.close()
    again = opened(tmp_path, memory="memory of another boot", boot="another")
    assert again.get(b"key") == b"value"
    again.close()


def test_an_index_that_one_process_still_uses_is_not_told_to_be_closed(tmp_path):
    index, other = opened(tmp_path), opened(tmp_path)
    index.close()
    assert json.loads((tmp_path / "index/index.json").read_text())["closed"] is False
    other.close()
    assert json.loads((tmp_path / "index/index.json").read_text())["closed"] is True


def test_processes_that_do_not_share_memory_do_not_share_an_index(tmp_path):
    index = opened(tmp_path)
    put(index)
    with pytest.raises(ConfigError, match="the same .*memory of a container, also in containers"):
        opened(tmp_path, memory="memory of a container")
    assert index.get(b"key") == b"value"
    index.close()
    opened(tmp_path, memory="memory of a container").close()


def test_indexes_are_on_their_devices_or_in_a_directory_each(tmp_path):
    state = str(tmp_path / "state")
    for name in ("sda", "sdb", "sdc"):
        (tmp_path / name / "packed").mkdir(parents=True)
    on_device = IndexOpening(PackedSettings(state_path=state), Disk())(str(tmp_path / "sda/packed"))
    assert list((tmp_path / "sda/packed/index").glob("*.mdb"))
    (tmp_path / "ssd").mkdir()
    settings = PackedSettings(state_path=state, index_path=str(tmp_path / "ssd"))
    elsewhere = [IndexOpening(settings, Disk())(str(tmp_path / name / "packed")) for name in ("sdb", "sdc")]
    assert len(list((tmp_path / "ssd").iterdir())) == 2
    for index in (on_device, *elsewhere):
        index.close()


def test_no_index_is_made_where_its_file_system_is_not_mounted(tmp_path):
    settings = PackedSettings(state_path=str(tmp_path / "state"), index_path=str(tmp_path / "ssd/index"))
    opening = IndexOpening(settings, Disk())
    with pytest.raises(IndexFailed, match="ssd/index .*is not a directory; mount its filesystem"):
        opening(str(tmp_path / "sda/packed"))
    with pytest.raises(OSError, match="mount its filesystem"), opening.unused(str(tmp_path / "sda/packed")):
        pass
    assert not (tmp_path / "ssd").exists()


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "must run as the user"),
        (errno.EROFS, "mount its file system read-write"),
        (errno.ENOTDIR, "correct index_path and state_path"),
        (errno.EMFILE, ""),
    ],
)
def test_an_index_that_cannot_be_opened_says_why_and_what_to_do(number, advice):
    error = OSError(number, "the reason", "/srv/ssd/index/file")
    text = str(opening_failed("/srv/ssd/index", error))
    assert text.startswith("cannot open /srv/ssd/index: the reason: /srv/ssd/index/file") and advice in text
    assert "Errno" not in text and text.count(";") == bool(advice)


@pytest.mark.parametrize("states", [("state", "state"), ("state", "other")])
@pytest.mark.parametrize("paths", [("", "ssd"), ("ssd", ""), ("ssd", "ssd2")])
def test_processes_that_keep_the_index_of_a_device_elsewhere_are_refused(tmp_path, paths, states):
    """Each would change its own, and miss what the others change."""
    directory = tmp_path / "sda/packed"
    directory.mkdir(parents=True)
    for name in filter(None, paths):
        (tmp_path / name).mkdir()
    first, second = (
        IndexOpening(
            PackedSettings(state_path=str(tmp_path / state), index_path=path and str(tmp_path / path)), Disk()
        )
        for path, state in zip(paths, states, strict=True)
    )
    index, again = first(str(directory)), first(str(directory))
    put(index)
    with pytest.raises(ConfigError, match="same index_path") as raised:
        second(str(directory))
    assert "\n" not in str(raised.value) and first.path(str(directory)) in str(raised.value)
    with pytest.raises(IndexInUse), second.unused(str(directory)):
        pass
    assert again.get(b"key") == b"value"
    index.close()
    again.close()
    with second.unused(str(directory)):
        pass
    second(str(directory)).close()


def test_an_index_is_made_again_after_the_device_had_one_elsewhere(tmp_path):
    directory = tmp_path / "sda/packed"
    directory.mkdir(parents=True)
    (tmp_path / "ssd").mkdir()
    state = str(tmp_path / "state")
    on_device = IndexOpening(PackedSettings(state_path=state), Disk())
    elsewhere = IndexOpening(PackedSettings(state_path=state, index_path=str(tmp_path / "ssd")), Disk())
    for opening, kept in ((on_device, None), (elsewhere, None), (on_device, None), (on_device, b"value")):
        index = opening(str(directory))
        assert index.get(b"key") == kept
        put(index)
        index.close(is_last=True)


def test_a_device_that_is_mounted_elsewhere_takes_its_index_along(tmp_path):
    settings = PackedSettings(state_path=str(tmp_path / "state"))
    (tmp_path / "sda/packed").mkdir(parents=True)
    index = IndexOpening(settings, Disk())(str(tmp_path / "sda/packed"))
    put(index)
    index.close()
    (tmp_path / "sda").rename(tmp_path / "sdb")
    index = IndexOpening(settings, Disk())(str(tmp_path / "sdb/packed"))
    assert index.get(b"key") == b"value"
    index.close()


def test_a_discarded_index_is_taken_by_nobody_and_a_new_one_is_empty(tmp_path):
    index, other = opened(tmp_path), opened(tmp_path)
    put(index)
    assert other.get(b"key") == b"value"
    index.discard()
    assert not index.is_current() and not other.is_current()
    with pytest.raises(IndexReplaced):
        other.check()
    new = opened(tmp_path)
    assert new.get(b"key") is None and new.identity != index.identity
    put(new)
    # What is left of the old one changes nothing.
    with other.writing() as writing:
        writing.put(b"key", b"old")
    assert new.get(b"key") == b"value" and new.is_current()
    for each in (index, other, new):
        each.close()
    assert len(list((tmp_path / "index").glob("*.mdb"))) == 1
    again = opened(tmp_path, boot="another")
    assert again.get(b"key") == b"value"
    again.close()


def test_a_damaged_place_of_an_index_is_told_in_one_line_of_printable_characters(tmp_path):
    index = opened(tmp_path)
    (tmp_path / "packed/index-path").write_bytes(b"\x1b[2J\n\xff\x00")
    with pytest.raises(ConfigError, match="other processes keep the index") as raised:
        opened(tmp_path)
    assert str(raised.value).isprintable()
    index.close()


@pytest.mark.parametrize("name", ("closing", "index.lock"))
def test_an_index_that_a_stopped_process_opens_or_closes_is_refused(tmp_path, name):
    index = opened(tmp_path)
    with held(str(tmp_path / "memory" / name)):
        with pytest.raises(IndexBusy, match="more than 0.1 s"):
            DeviceIndex(
                str(tmp_path / "index"),
                "boot",
                str(tmp_path / "memory"),
                str(tmp_path / "packed"),
                timeout_s=0.1,
            )
        assert index.get(b"key") is None
    opened(tmp_path).close()
    index.close()


def test_a_device_whose_index_is_refused_once_is_refused_sooner_until_it_is_free(tmp_path):
    settings = PackedSettings(state_path=str(tmp_path / "state"))
    directory = tmp_path / "sda/packed"
    directory.mkdir(parents=True)
    opening = IndexOpening(settings, Disk(), holder_timeout_s=0.5)
    opening(str(directory)).close()
    (lock,) = (tmp_path / "state").rglob("closing")
    with held(str(lock)):
        for seconds in ("0.5", "0.25"):
            with pytest.raises(IndexBusy, match=f"more than {seconds} s"):
                opening(str(directory))
        with pytest.raises(StateHeld), opening.unused(str(directory)):
            pass
    opening(str(directory)).close()


def test_a_process_that_ends_after_the_index_was_replaced_says_nothing_of_the_new_one(tmp_path):
    """Else the next process would open an empty index beside the one in use."""
    ended, server = opened(tmp_path), opened(tmp_path)
    (tmp_path / "index").rename(tmp_path / "failed ssd")
    assert not server.is_current()
    again = opened(tmp_path)
    put(again)
    server.close()
    ended.close()
    daemon = opened(tmp_path)
    assert daemon.get(b"key") == b"value" and again.is_current()
    assert len(list((tmp_path / "index").glob("*.mdb"))) == 1
    for index in (again, daemon):
        index.close()


@pytest.mark.parametrize("is_made_again", (False, True))
def test_without_the_file_that_its_users_lock_an_index_is_made_again(tmp_path, is_made_again):
    """They may go on with it, and none is the last who leaves it whole."""
    index = opened(tmp_path)
    put(index)
    (tmp_path / "index/users").unlink()
    if is_made_again:
        (tmp_path / "index/users").touch()
        index.close()
        assert json.loads((tmp_path / "index/index.json").read_text())["closed"] is False
        return
    new = opened(tmp_path)
    assert new.get(b"key") is None and not index.is_current()
    index.close()
    assert new.is_current() and json.loads((tmp_path / "index/index.json").read_text())["closed"] is False
    new.close()
