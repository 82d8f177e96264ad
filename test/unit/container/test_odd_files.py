"""Odd files in the place of a database's are damage: nothing hangs, and the container can be made anew."""

import os
import resource
from contextlib import contextmanager, suppress

import pytest

from swift.container.broker import ContainerBroker
from swift.db import files
from swift.db.broker import Engine
from swift.db.connection import DatabaseBroken
from swift.db.files import DatabasePath
from swift.platform.disk import Disk
from test.support.disks import ODD, bounded, replace

PLACES = ("database", "pending", "lock", "hash directory", "suffix", "partition")


class Odd:
    """A container of the bench, and its files."""

    def __init__(self, bench):
        self.bench = bench
        assert bench("PUT", at=1, x_backend_storage_policy_index="0").status == 201
        assert bench.put_object("o", 2).status == 201
        name_hash = bench.context.hasher.hexdigest("AUTH_a", "c")
        self.place = DatabasePath(str(bench.root / "sda"), "containers", "1", name_hash)
        bench.server.brokers.forget(self.place)

    def path(self, what):
        suffix = os.path.dirname(self.place.directory)
        return {
            "database": self.place.file(),
            "pending": self.place.pending,
            "lock": f"{self.place.directory}/.lock",
            "hash directory": self.place.directory,
            "suffix": suffix,
            "partition": os.path.dirname(suffix),
        }[what]


@pytest.fixture
def odd(bench):
    return Odd(bench)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("what", PLACES)
def test_nothing_hangs_and_the_container_can_be_written_again(odd, what, kind):
    replace(odd.path(what), kind)
    with bounded():
        assert odd.bench("HEAD").status in (204, 404, 503)
        assert odd.bench("GET").status in (200, 204, 404, 503)
        statuses = [odd.bench("PUT", at=9, x_backend_storage_policy_index="0").status for _ in range(2)]
        assert statuses[-1] in (201, 202)
        assert odd.bench.put_object("again", 10).status == 201
        assert b"again" in odd.bench.listing()


@pytest.mark.parametrize("kind", sorted(set(ODD) - {"empty"}))
def test_a_database_that_is_no_file_goes_to_the_quarantine_with_its_reason(odd, kind):
    replace(odd.place.file(), kind)
    with bounded(), pytest.raises(DatabaseBroken, match="in the place of a file") as broken:
        ContainerBroker.open_found(odd.place, Engine())
    assert broken.value.is_proven
    assert odd.bench("HEAD").status == 503
    assert os.listdir(odd.bench.root / "sda/quarantined/containers") == [odd.place.name_hash]
    assert odd.bench("HEAD").status == 404


def test_a_database_of_no_bytes_never_was_one(odd):
    replace(odd.place.file(), "empty")
    assert odd.bench("HEAD").status == 404
    assert files.database_files(Disk(), odd.place) == ()


@contextmanager
def no_descriptors():
    """Leave this process without a free file descriptor."""
    taken, limits = [], resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("method", ["HEAD", "GET", "PUT", "POST", "DELETE"])
def test_a_server_without_descriptors_neither_denies_nor_moves_a_container(odd, method):
    with no_descriptors():
        status = odd.bench(method, at=9, x_backend_storage_policy_index="0").status
    assert status in (503, 507)
    assert odd.bench("HEAD").status == 204
    assert not (odd.bench.root / "sda/quarantined").exists()
