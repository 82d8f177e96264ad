"""What counts as brought: by SSYNC each object, by rsync all or nothing, and only what was made durable."""

from __future__ import annotations

import os

import pytest

from swift.obj.replicator.delivery import (
    DeliveryFailed,
    ReplicationJob,
    RsyncDelivery,
    SsyncDelivery,
    make_delivery,
)
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.obj.ssync.sender import PushFailed, SsyncResult
from swift.telemetry.log import silent_log
from test.support.daemons import make_node
from test.support.object_servers import GOLD

pytestmark = pytest.mark.process

#: Stands for rsync: notes its arguments, says the lines it was told, and ends as it was told.
RSYNC = """#!/bin/sh
echo "$*" >> {folder}/calls
cat {folder}/words
exit $(head -n 1 {folder}/codes; sed -i 1d {folder}/codes)
"""


class Told:
    """Stands for the partners; notes what a node was told, and whether that was to be durable."""

    def __init__(self):
        self.heard = True
        self.words = []

    def invalidate(self, to, policy, part, suffixes, *, durable):
        self.words.append((to.id, part, suffixes, durable))
        return self.heard


class Sends:
    """Stands for the sender of SSYNC."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.jobs = []

    def push(self, job):
        self.jobs.append(job)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Rsync:
    """An rsync that does what a test says, first on the PATH."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        program = folder / "rsync"
        program.write_text(RSYNC.format(folder=folder))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        self.will()

    def will(self, words="", *codes):
        (self.folder / "words").write_text(words)
        (self.folder / "codes").write_text("".join(f"{code}\n" for code in (*codes, 0)))

    @property
    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def rsync(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    return Rsync(tmp_path / "bin", monkeypatch)


@pytest.fixture
def job(tmp_path):
    for suffix in ("abc", "def"):
        (tmp_path / f"sda/objects/7/{suffix}").mkdir(parents=True)
    return ReplicationJob("sda", str(tmp_path / "sda"), GOLD, 7, ["abc", "def", "fff"], durable=True)


def by_rsync(told, **options):
    settings = ObjectReplicatorSettings(rsync_module="{replication_ip}::object", **options)
    return RsyncDelivery(settings, told, silent_log())


# --- rsync


def test_rsync_brings_the_suffixes_that_there_are_and_the_node_is_told_of_them(told, rsync, job):
    rsync.will(">f old\n<f+++++++++ abc/x/1.data\n<f+++++++++ def/y/1.data\n")
    result = by_rsync(told).push(job, make_node(1), other_region=False)
    assert (result.hashes, result.sent) == (None, 2)
    assert rsync.calls[0].endswith(
        "/abc " + f"{job.device_path}/objects/7/def 127.0.0.1::object/d1/objects/7"
    )
    assert told.words == [(1, 7, ["abc", "def"], True)]


def test_nothing_is_run_when_there_is_nothing_left(told, rsync, job, tmp_path):
    gone = ReplicationJob("sda", str(tmp_path), GOLD, 9, ["abc"])
    assert by_rsync(told).push(gone, make_node(1), other_region=False).sent == 0
    assert rsync.calls == [] and told.words == []


def test_a_partition_that_the_node_lacks_is_made_by_a_word_and_tried_again(told, rsync, job):
    rsync.will("mkdir failed: No such file or directory\n", 11)
    by_rsync(told).push(job, make_node(1), other_region=False)
    assert len(rsync.calls) == 2
    assert [durable for *_, durable in told.words] == [False, True]


@pytest.mark.parametrize(
    ("words", "acknowledged"), [("disk full\n", True), ("No such file or directory\n", False)]
)
def test_an_rsync_that_fails_is_told_and_what_may_have_come_is_looked_at(
    told, rsync, job, words, acknowledged
):
    rsync.will(words, 11)
    told.heard = acknowledged
    with pytest.raises(DeliveryFailed, match="failed with exit status 11"):
        by_rsync(told).push(job, make_node(1), other_region=False)
    assert len(rsync.calls) == 1 and told.words[0][3] is False


def test_the_words_of_a_failure_are_cut_to_the_length_that_is_wanted(told, rsync, job):
    rsync.will("x" * 500, 11)
    with pytest.raises(DeliveryFailed) as caught:
        by_rsync(told, rsync_error_log_line_length=40).push(job, make_node(1), other_region=False)
    assert len(str(caught.value)) == 40


def test_a_node_that_was_not_told_does_not_count(told, rsync, job):
    told.heard = False
    with pytest.raises(DeliveryFailed, match="did not invalidate"):
        by_rsync(told).push(job, make_node(1), other_region=False)


@pytest.mark.parametrize(("compress", "far", "is_compressed"), [(True, True, True), (True, False, False)])
def test_only_what_leaves_the_region_is_compressed(told, rsync, job, compress, far, is_compressed):
    by_rsync(told, rsync_compress=compress).push(job, make_node(1), other_region=far)
    assert ("--compress" in rsync.calls[0]) is is_compressed


# --- SSYNC


def test_by_ssync_what_is_in_sync_counts_once_it_is_durable(told, job):
    sender = Sends(SsyncResult(in_sync={"h1": None}, sent=1, failed=2))
    result = SsyncDelivery(sender, told).push(job, make_node(1), other_region=False)
    assert (result.hashes, result.sent, result.failed) == ({"h1"}, 1, 2)
    assert told.words == [(1, 7, ["abc", "def", "fff"], True)]
    assert (sender.jobs[0].partition, list(sender.jobs[0].suffixes)) == ("7", ["abc", "def", "fff"])


def test_a_node_that_cannot_make_it_durable_does_not_have_it(told, job):
    told.heard = False
    with pytest.raises(DeliveryFailed, match="did not sync"):
        SsyncDelivery(Sends(SsyncResult()), told).push(job, make_node(1), other_region=False)


def test_a_push_that_fails_is_a_delivery_that_failed(told, job):
    with pytest.raises(DeliveryFailed, match="broke"):
        SsyncDelivery(Sends(PushFailed("broke")), told).push(job, make_node(1), other_region=False)
    assert told.words == []


def test_an_engine_that_rsync_cannot_read_is_sent_by_ssync(told):
    settings = ObjectReplicatorSettings(sync_method="rsync")
    made = [
        type(make_delivery(settings, told, Sends(None), silent_log(), rsyncable=rsyncable))
        for rsyncable in (True, False)
    ]
    assert made == [RsyncDelivery, SsyncDelivery]
