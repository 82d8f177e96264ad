"""Every option of ``[app:object-server]`` does something, or says why it does not (object-server.md §17)."""

from __future__ import annotations

import os
import time

import pytest

from swift.config.common import StorageSettings
from swift.obj.settings import ObjectSettings
from swift.platform.disk import Disk
from swift.store.verified import SIDECAR_ATTRIBUTE
from test.support.checks import every

#: The options that the specification lists for the object server's own section and [DEFAULT].
SPECIFIED = (
    "devices mount_check disk_chunk_size network_chunk_size keep_cache_size keep_cache_private "
    "keep_cache_slo_manifest node_timeout conn_timeout container_update_timeout max_upload_time slow "
    "mb_per_sync allowed_headers replication_server replication_concurrency "
    "replication_concurrency_per_device replication_lock_timeout replication_failure_threshold "
    "replication_failure_ratio fallocate_reserve disable_fallocate reclaim_age commit_window "
    "etag_validate_pct slow_delete_log_threshold_seconds expiring_objects_account_name "
    "expiring_objects_container_divisor splice cooperative_period eventlet_tpool_num_threads "
    "auto_create_account_prefix"
)


@every("name", SPECIFIED.split())
def test_every_option_of_the_specification_is_known(name):
    known = ObjectSettings.known_names() | StorageSettings.known_names() | set(ObjectSettings.without_effect)
    assert name in known


class CacheDisk(Disk):
    """Notes which bytes the kernel was told to forget, and reads."""

    def __init__(self):
        self.dropped, self.reads = [], []

    def drop_cache(self, fd, offset, length):
        self.dropped.append((offset, length))

    def pread(self, fd, size, offset):
        self.reads.append(size)
        return super().pread(fd, size, offset)


def use_disk(bench):
    disk = CacheDisk()
    bench.app._stores.engine(bench.context.policies.default).core.disk = disk
    return disk


@pytest.mark.parametrize("size", [5000, 70_000])
@pytest.mark.parametrize(
    ("options", "headers", "metadata", "kept"),
    [
        ({"keep_cache_size": 100_000}, {}, {}, True),
        ({"keep_cache_size": 1000}, {}, {}, False),
        ({"keep_cache_size": 100_000, "keep_cache_private": False}, {}, {}, True),
        ({"keep_cache_size": 100_000, "keep_cache_private": False}, {"x-auth-token": "t"}, {}, False),
        ({"keep_cache_size": 100_000, "keep_cache_private": True}, {"x-auth-token": "t"}, {}, True),
        (
            {"keep_cache_private": False, "keep_cache_slo_manifest": True},
            {"x-storage-token": "t"},
            {"x-static-large-object": "True"},
            True,
        ),
        (
            {"keep_cache_private": False},
            {"x-storage-token": "t"},
            {"x-static-large-object": "True"},
            False,
        ),
    ],
)
def test_what_is_read_stays_in_memory_as_the_options_say(make_bench, size, options, headers, metadata, kept):
    bench = make_bench(**options)
    bench.ask("PUT", headers=metadata, body=b"x" * size)
    disk = use_disk(bench)
    assert len(bench.ask("GET", headers=headers).read_body()) == size
    assert bool(disk.dropped) != kept
    if not kept:
        assert sum(length for _, length in disk.dropped) == size


def without_sidecar(bench):
    (path,) = bench.root.rglob("*.data")
    if SIDECAR_ATTRIBUTE in os.listxattr(path):
        os.removexattr(path, SIDECAR_ATTRIBUTE)
    return path


def test_bodies_without_our_checksums_are_read_in_the_configured_pieces(make_bench):
    bench = make_bench(disk_chunk_size=8192)
    bench.ask("PUT", body=b"x" * 200_000)
    without_sidecar(bench)
    disk = use_disk(bench)
    assert bench.ask("GET").read_body() == b"x" * 200_000
    assert max(disk.reads) == 8192


def test_md5_is_compared_as_often_as_wanted(make_bench):
    bench = make_bench(etag_validate_pct=0.0)
    bench.ask("PUT", body=b"x" * 200_000)
    path = without_sidecar(bench)
    with open(path, "r+b") as file:
        file.write(b"y")
    assert bench.ask("GET").read_body().startswith(b"yx")
    bench.ask("PUT", "/sda/1/AUTH_a/c/small", body=b"x" * 20)
    (small,) = [p for p in bench.root.rglob("*.data") if p.stat().st_size == 20]
    small.write_bytes(b"y" * 20)
    assert bench.ask("GET", "/sda/1/AUTH_a/c/small").read_body() == b"y" * 20


def test_puts_and_deletes_take_their_time(make_bench):
    bench = make_bench(slow=0.05)
    started = time.monotonic()
    bench.ask("PUT", body=b"x")
    bench.ask("DELETE")
    assert time.monotonic() - started >= 0.1


def test_a_slow_delete_is_told(make_bench):
    bench = make_bench(slow_delete_log_threshold_seconds=1e-9)
    messages = []
    bench.context.telemetry.log.warning = lambda text, **_more: messages.append(text)
    bench.ask("DELETE")
    assert messages[0].startswith("slow DELETE /sda/1/AUTH_a/c/o: ")
