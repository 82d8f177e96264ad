"""Which containers of a device are to be copied to other clusters."""

import os

import pytest

from swift.base.timestamp import Timestamp
from swift.container.syncstore import is_synced, keep_link, link_of
from test.support.databases import make_container


@pytest.fixture
def broker(tmp_path):
    made = make_container(tmp_path)
    yield made
    made.close()


def ask_for_copies(broker, to, key, time=6):
    stamp = Timestamp(time).internal
    broker.update_metadata({"X-Container-Sync-To": (to, stamp), "X-Container-Sync-Key": (key, stamp)})


def keep(broker):
    keep_link(broker, broker.info())


def test_a_container_with_a_target_and_a_key_has_a_link_to_its_database(broker):
    ask_for_copies(broker, "http://there/v1/a/c", "key")
    keep(broker)
    keep(broker)
    assert os.readlink(link_of(broker.place)) == broker.newest.path
    assert "/sync_containers/7/abc/" in link_of(broker.place)


@pytest.mark.parametrize(("to", "key"), [("", "key"), ("http://there/v1/a/c", ""), ("", "")])
def test_without_one_of_them_nothing_is_copied(broker, to, key):
    ask_for_copies(broker, to, key)
    assert not is_synced(broker.info())
    keep(broker)
    assert not os.path.lexists(link_of(broker.place))


def test_a_link_goes_with_its_reason_and_leaves_no_directories(broker):
    ask_for_copies(broker, "http://there/v1/a/c", "key")
    keep(broker)
    ask_for_copies(broker, "", "", time=7)
    keep(broker)
    root = os.path.dirname(os.path.dirname(os.path.dirname(link_of(broker.place))))
    assert not os.path.lexists(link_of(broker.place)) and os.listdir(root) == []


def test_a_link_to_a_former_file_is_made_anew(broker):
    ask_for_copies(broker, "http://there/v1/a/c", "key")
    os.makedirs(os.path.dirname(link_of(broker.place)))
    os.symlink("/nowhere", link_of(broker.place))
    keep(broker)
    assert os.readlink(link_of(broker.place)) == broker.newest.path


def test_a_deleted_container_is_not_copied(broker):
    ask_for_copies(broker, "http://there/v1/a/c", "key")
    broker.delete(Timestamp(9))
    assert not is_synced(broker.info())
