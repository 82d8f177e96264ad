"""An object server and the compactor of a packed device, both killed repeatedly under load.

What was acknowledged must be there afterwards with the right bytes, and volumes, index and files must agree.
``SWIFT_KILLS`` asks for more kills than the default.
"""

import contextlib
import os
import random
import signal
import threading

import pytest

from test.probe.test_object_kills import KILLS, THREADS, Server, Writer
from test.support.peer import run
from test.support.processes import FORK_SERVER

pytestmark = pytest.mark.process
#: A volume is full after some seconds; compaction copies it in about one second.
OPTIONS = """
[packed]
volume_mb = 16
object_max_kb = 512
[object-compactor]
interval = 0.05
dead_percent = 1
bytes_per_second = 4000000
"""


class CompactedServer(Server):
    """A server on a packed device, beside a compactor that runs without pauses."""

    def __init__(self, root):
        super().__init__(root)
        conf = root / "swift.conf"
        text = conf.read_text().replace(
            "name = ec\n", "name = ec\ndiskfile_module = egg:swift#erasure_coding.packed\n"
        )
        text = text.replace("name = gold\n", "name = gold\ndiskfile_module = egg:swift#replication.packed\n")
        conf.write_text(text)
        text = self.conf.read_text().replace("[DEFAULT]\n", f"[DEFAULT]\nrecon_cache_path = {root}\n")
        self.conf.write_text(text + OPTIONS)
        self.compactor = None

    def start(self):
        super().start()
        with open(self.root / "compactor.log", "ab") as log:
            self.compactor = FORK_SERVER.begin(
                "swift.cli.daemon", ["object-compactor", str(self.conf), "-v"], log
            )

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.compactor.pid, signal.SIGKILL)
        super().kill()
        self.compactor.wait()

    def volumes(self):
        return sorted(path.name for path in self.device.glob("packed/*.volume"))

    def verify(self):
        """Return the exit code and the output."""
        done = run("swift-object-volumes", "-c", self.conf, "--format", "json", "verify")
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def server(tmp_path):
    made = CompactedServer(tmp_path)
    made.start()
    yield made
    made.kill()


@pytest.mark.long
@pytest.mark.timeout(180 + 10 * KILLS)
def test_a_packed_device_killed_during_compaction_keeps_acknowledged_writes(server):
    chooser, go = random.Random(KILLS), threading.Event()
    writers = [Writer(server, number, go) for number in range(THREADS)]
    for writer in writers:
        writer.start()
    for _ in range(KILLS):
        server.kill_under(writers, go, chooser.uniform(0.2, 2.0))
        for writer in writers:
            writer.check()
    for pause_s in (3.0, 6.0, 12.0, 24.0):
        if "compacted volume" in (server.root / "compactor.log").read_text():
            break
        # The compactor gets more work, and time for it.
        server.kill_under(writers, go, pause_s)
    assert "compacted volume" in (server.root / "compactor.log").read_text()
    for writer in writers:
        writer.ended = True
        writer.join(10)
        writer.check()
    code, said = server.verify()
    assert code == 0, said
    server.kill()
    code, said = server.verify()
    assert code == 0, said
    server.start()
    for writer in writers:
        writer.check()
    logs = (server.root / "log").read_text() + (server.root / "compactor.log").read_text()
    assert "Traceback" not in logs and "Quarantined" not in logs
