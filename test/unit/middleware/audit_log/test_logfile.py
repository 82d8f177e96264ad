"""The audit log's file: whole lines of several processes, rotation, and a queue that never waits."""

import os
import re
import resource
import stat
import threading

import pytest

from swift.middleware.audit_log.logfile import WAITING_BYTES_MAX, AuditFile, AuditQueue
from swift.telemetry.metrics import Registry

LINE = b'{"n":1}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.log"


def rotated(path):
    return sorted(each for each in path.parent.iterdir() if each.name.startswith(f"{path.name}-"))


def test_lines_are_appended_for_the_owner_and_group(path):
    file = AuditFile(str(path))
    assert file.append([LINE, LINE]) == (2, "")
    assert AuditFile(str(path)).append([LINE]) == (1, "")
    assert path.read_bytes() == 3 * LINE
    assert stat.S_IMODE(path.stat().st_mode) & 0o037 == 0


def test_a_file_that_is_large_enough_is_renamed_and_the_oldest_are_removed(path):
    file = AuditFile(str(path), max_bytes=2 * len(LINE), backups=2)
    for number in range(9):
        assert file.append([b'{"n":%d}\n' % number]) == (1, "")
    assert path.read_bytes() == b'{"n":8}\n'
    kept = rotated(path)
    assert [each.read_bytes() for each in kept] == [b'{"n":4}\n{"n":5}\n', b'{"n":6}\n{"n":7}\n']
    assert all(re.fullmatch(r"audit\.log-\d{8}T\d{15}Z", each.name) for each in kept)


def test_a_line_that_is_longer_than_the_limit_gets_a_file_of_its_own(path):
    file = AuditFile(str(path), max_bytes=4, backups=5)
    assert file.append([LINE, LINE]) == (2, "")
    assert path.read_bytes() == LINE and len(rotated(path)) == 1


def test_files_of_one_moment_keep_names_of_their_own(path):
    file = AuditFile(str(path), max_bytes=1, backups=9, now_ns=lambda: 10**18)
    assert file.append(4 * [LINE]) == (4, "")
    stamps = [f"audit.log-20010909T01464000000000{number}Z" for number in range(3)]
    assert [each.name for each in rotated(path)] == stamps


def test_a_file_that_another_program_renamed_is_begun_anew(path):
    file = AuditFile(str(path))
    file.append([LINE])
    path.rename(f"{path}.1")
    file.append([LINE])
    assert path.read_bytes() == LINE


def test_workers_that_rotate_at_once_lose_and_tear_no_line(path):
    count, each = 4, 200

    def work(number):
        file = AuditFile(str(path), max_bytes=2000, backups=1000)
        for line in range(each):
            assert file.append([b'{"worker":%d,"line":%d}\n' % (number, line)]) == (1, "")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line for file in (*rotated(path), path) for line in file.read_bytes().splitlines()]
    expected = {b'{"worker":%d,"line":%d}' % (n, line) for n in range(count) for line in range(each)}
    assert len(lines) == count * each and set(lines) == expected
    assert len(rotated(path)) > 3


def test_what_cannot_be_written_is_reported_and_tried_again(path):
    path.mkdir()
    file = AuditFile(str(path))
    written, problem = file.append([LINE, LINE])
    assert written == 0 and str(path) in problem
    path.rmdir()
    assert file.append([LINE]) == (1, "")


def test_a_line_that_was_cut_off_spoils_no_other(path):
    file = AuditFile(str(path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system writes no more than this into a file, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(LINE) + 3, hard))
    try:
        written, problem = file.append([LINE, LINE, LINE])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert written == 1 and "3 of 8 bytes" in problem
    assert file.append([LINE]) == (1, "")
    assert path.read_bytes() == LINE + LINE[:3] + b"\n" + LINE


def test_files_that_are_left_are_closed(path):
    file = AuditFile(str(path), max_bytes=1, backups=1)
    for _ in range(5):
        file.append([LINE])
    opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    assert [each for each in opened if each.startswith(str(path))] == [str(path)]
    file.close()


def test_no_link_or_device_is_written_to(path):
    path.symlink_to("/dev/null")
    assert AuditFile(str(path), max_bytes=1).append([LINE])[0] == 0
    assert os.path.islink(path)


class Errors:
    """A log in memory."""

    def __init__(self):
        self.texts = []

    def error(self, text, *, txid=None):
        self.texts.append(text)


class Bench:
    """A queue whose lines are written when a test says so."""

    def __init__(self, size=3):
        self.log, self.metrics, self.spawned, self.written = Errors(), Registry(), [], []
        self.problem = ""
        self.queue = AuditQueue(
            self._append,
            size,
            self.log,
            self.metrics,
            run=lambda function, lines: function(lines),
            spawn=self.spawned.append,
        )

    def _append(self, lines):
        if self.problem:
            return 0, self.problem
        self.written += lines
        return len(lines), ""

    def drain(self):
        self.spawned.pop()()

    def dropped(self, reason):
        return f'swift_audit_log_dropped_total{{reason="{reason}"}} '


def test_lines_wait_for_the_thread_and_are_written_in_order():
    bench = Bench()
    bench.queue.put(b"1\n")
    bench.queue.put(b"2\n")
    assert bench.written == [] and len(bench.spawned) == 1
    bench.drain()
    assert bench.written == [b"1\n", b"2\n"]
    bench.queue.put(b"3\n")
    bench.drain()
    assert bench.written[2:] == [b"3\n"]


def test_a_full_queue_drops_lines_counts_them_and_logs_it_once():
    bench = Bench(size=2)
    for _ in range(5):
        bench.queue.put(LINE)
    assert len(bench.log.texts) == 1 and "queue_size" in bench.log.texts[0]
    assert f"{bench.dropped('queue')}3\n" in bench.metrics.render()
    bench.drain()
    assert bench.written == [LINE, LINE]
    for _ in range(3):
        bench.queue.put(LINE)
    assert len(bench.log.texts) == 2


def test_lines_that_the_disk_refuses_are_counted_and_logged_once():
    bench = Bench()
    bench.problem = "no space"
    for _ in range(3):
        bench.queue.put(LINE)
        bench.drain()
    assert bench.log.texts == ["ERROR the audit log is incomplete, lines are dropped: no space"]
    assert f"{bench.dropped('write')}3\n" in bench.metrics.render()


def test_what_waits_is_written_before_the_process_ends():
    bench = Bench()
    bench.queue.put(LINE)
    bench.queue.flush()
    assert bench.written == [LINE]
    bench.queue.flush()
    bench.drain()
    assert bench.written == [LINE]


def test_requests_go_on_while_the_disk_is_slow(path):
    # The thread of the queue waits for ``go``; ``put`` and other green threads do not.
    from swift import green

    go, begun = threading.Event(), threading.Event()
    file = AuditFile(str(path))

    def slow(lines):
        begun.set()
        go.wait(10)
        return file.append(lines)

    queue = AuditQueue(slow, 10, Errors(), Registry())

    def work():
        queue.put(LINE)
        while not begun.is_set():
            green.sleep(0.001)
        queue.put(LINE)
        assert not path.exists()
        go.set()
        while path.stat().st_size < 2 * len(LINE) if path.exists() else True:
            green.sleep(0.001)

    green.gather([work])
    assert path.read_bytes() == 2 * LINE


def test_lines_are_kept_when_the_file_cannot_be_rotated(tmp_path):
    def fails():
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "audit.log"
    file = AuditFile(str(path), 10, 1, now_ns=fails)
    lines = [b"%d23456789\n" % number for number in range(3)]
    assert file.append(lines) == (3, "")
    assert path.read_bytes() == b"".join(lines)
    file.close()


def test_long_lines_fill_the_queue_by_their_bytes():
    bench = Bench(size=1000)
    line = b"x" * (WAITING_BYTES_MAX // 4)
    for _ in range(6):
        bench.queue.put(line)
    assert f"{bench.dropped('queue')}2\n" in bench.metrics.render()
    bench.drain()
    bench.queue.put(line)
    bench.drain()
    assert len(bench.written) == 5
