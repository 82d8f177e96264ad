"""Account reapers of a simulated cluster, run by hand."""

from swift.account.reaper import AccountReaper, AccountReaperSettings
from swift.platform.mounts import Devices
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner
from swift.runtime.stop import Stop
from swift.telemetry.log import silent_log
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import VirtualTime
from test.support.sim import node_port


class Words:
    """A log that remembers."""

    def __init__(self):
        self.lines = []
        self._log = silent_log()

    def exception(self, message, error, txid=None):
        raise AssertionError(f"unforeseen: {message}") from error

    def __getattr__(self, level):
        if level in ("info", "warning", "error", "notice"):
            return lambda message, txid=None: self.lines.append(f"{level.upper()} {message}")
        return getattr(self._log, level)


class Reapers:
    """``run(*numbers)`` makes one pass on nodes."""

    def __init__(self, sim, root):
        self.sim = sim
        self.root = root
        self.log = Words()
        #: Long after the times that clients of the simulated cluster write.
        self.clock = VirtualTime()

    def run(self, *numbers, stop=None, **settings):
        """One pass on each node; the statistics of all."""
        total = {}
        for number in numbers:
            for event, count in self._run(number, stop, settings).items():
                total[event] = total.get(event, 0) + count
        return {event: count for event, count in total.items() if count}

    def _run(self, number, stop, settings):
        telemetry = Telemetry(self.log)
        context = BackendContext(
            devices=Devices(str(self.sim.root / f"node{number}"), mount_check=False),
            hasher=self.sim.hasher,
            policies=self.sim.policies,
            telemetry=telemetry,
            clock=self.clock,
            transport=self.sim.transport,
            ring_ip="10.0.0.1",
            ring_port=node_port("account", number),
        )
        chosen = AccountReaperSettings(**{"node_timeout": 5.0, **settings})
        folder = self.root / f"recon{number}"
        folder.mkdir(exist_ok=True)
        recon = ReconFile(str(folder), "account", telemetry.log)
        task = AccountReaper(context, self.sim.context.rings, chosen)
        runner = Runner(
            task,
            chosen.schedule,
            telemetry=telemetry,
            recon=recon,
            clock=self.clock,
            stop=stop or Stop(self.clock, self.clock.sleep),
        )
        runner.once()
        return recon.read().get("account_reaper_stats", {})
