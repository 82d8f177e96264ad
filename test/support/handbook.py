"""Pages of the handbook, run from top to bottom as an operator pastes them.

A ``World`` has a network and processes of its own. Each of its hosts is a mount namespace with its own
``/etc``, ``/srv``, ``/opt``, ``/run`` and ``/usr/local/bin``, and an address on the loopback device. Programs
that need a real machine (``mkfs.xfs``, ``mount``, ``systemctl``, ``apt-get``, ``ssh``) are fakes in
``host/bin``, which check their arguments. The end of a world ends all of its processes.

A block ``sh`` of a page runs on the first host, ``sh every node`` on all at once, ``sh each node in turn`` on
one after the other, and ``sh ADDRESS`` on that one. A block ``output`` after it has lines that must come in
this order; ``...`` stands for anything.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "host"
NODES = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
#: The host that is added to a cluster of ``NODES``.
NEW_NODE = "10.0.0.4"
#: Blocks that run on every node, at once or one node after the other.
AT_ONCE, ONE_BY_ONE = "every node", "each node in turn"
#: Pages that run on one host, and pages that run on clusters of three: each list in this order.
ONE_HOST = (
    "tutorial/first-hour.md",
    "howto/install.md",
    "howto/plan.md",
    "howto/rings.md",
    "howto/oidc.md",
    "howto/users.md",
    "howto/console.md",
)
DISKS = ("add-disk.md", "replace-disk.md", "nodes.md", "disasters.md", "operating.md")
GROWTH = ("policies.md", "part-power.md", "sharding.md", "packed.md")
LAYOUT = ("layout.md", "layout-nodes.md")
SERVICE = ("limits.md", "monitoring.md", "usage.md", "backup.md")
KEYS = ("tls.md", "keystone.md", "encryption.md", "upgrade.md", "server-authentication.md")
CLUSTER = "howto/first-cluster.md"
TAKING_OVER = "howto/taking-over.md"
DEPLOY = "howto/deploy.md"
#: Pages that only lead to others.
CONTENTS = ("howto/index.md", "tutorial/index.md")


def pages():
    """Return all pages that tests paste."""
    return {
        *(CLUSTER, TAKING_OVER, DEPLOY, *ONE_HOST),
        *(f"howto/{name}" for name in (*DISKS, *GROWTH, *LAYOUT, *SERVICE, *KEYS)),
    }


#: Commands of a page, and quicker ones that tests run instead. Deployed clusters also get a
#: network for replication here: 10.1.0.1 is 10.0.0.1.
QUICKER = {
    "create 10 3 1": "create 6 3 1",
    "swift-layout init": "for b in *.builder; do swift-ring-builder $b set_min_part_hours 0; done\n"
    "swift-layout init",
    "auto_drain = dry-run/' layout-controller.conf": "auto_drain = dry-run/; "
    "s/^# step_percent = .*/step_percent = 100/; s/^# interval = .*/interval = 2/' layout-controller.conf",
    "swift-deploy init cluster.toml": "swift-deploy init cluster.toml\n"
    "sed -i 's/^part_power = 10/part_power = 6/; s/^min_part_hours = 1 /min_part_hours = 0 /; "
    's/^# workers = "auto"/workers = 1/; '
    's/^address = "10.0.0.\\(.*\\)"/&\\nreplication_address = "10.1.0.\\1"/\' cluster.toml\n'
    """printf '[conf."%s-server.conf"."%s-replicator"]\\ninterval = 1\\nreport_interval = 1\\n' """
    "account account container container object object >> cluster.toml",
}
_FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^ *```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the words behind it, its text, and its line."""

    language: str
    words: str
    text: str
    line: int


def blocks_of(page):
    """Return the fenced blocks of a page's text."""
    found = []
    for match in _FENCE.finditer(page):
        indent, language, words, text = match.groups()
        text = "\n".join(line.removeprefix(indent) for line in text.split("\n"))
        found.append(Block(language, words.strip(), text, page.count("\n", 0, match.start()) + 2))
    return found


def missing_line(expected, output):
    """Return the first line of ``expected`` that ``output`` lacks, in order; empty when it has all."""
    position = 0
    for line in filter(None, map(str.strip, expected.split("\n"))):
        pattern = r"[^\n]*".join(
            r"\s+".join(map(re.escape, part.split())) for part in re.split(r"\s*\.\.\.\s*", line)
        )
        found = re.compile(pattern).search(output, position)
        if found is None:
            return line
        position = found.end()
    return ""


def can_make_worlds():
    """Return True if namespaces can be created here."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return False
    line = ["unshare", "--net", "--pid", "--mount", "--fork", "--mount-proc", "true"]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


def quick_sample(text):
    """Return a sample with short pauses of replicators, and one worker for each server."""
    text = re.sub(r"^# workers = auto$", "workers = 1", text, flags=re.M)
    text = re.sub(r"^# ring_check_interval = .*", "ring_check_interval = 0.5", text, flags=re.M)
    section = r"(^\[(?:account|container|object)-replicator\]\n(?:(?!\[).*\n)*?)# {} = \d+$"
    for name in ("interval", "report_interval"):
        text = re.sub(section.format(name), rf"\g<1>{name} = 1", text, flags=re.M)
    return text


class PageError(AssertionError):
    """A block of a page failed, or its output differs from the page."""


class World:
    """Hosts of one network. ``peer_bin`` has the commands that ``/opt/swift`` gets instead of ours."""

    def __init__(self, root, timeout_s=120, peer_bin=""):
        self.root = root
        self.timeout_s = timeout_s
        self.times = {}
        self._processes = []
        self._shells = {}
        checkout = root / "checkout"
        shutil.copytree(ROOT / "etc", checkout / "etc")
        shutil.copy(ROOT / "setup.py", checkout)
        (checkout / "bin").mkdir()
        (checkout / ".venv").mkdir()
        commands = Path(sys.executable).parent
        (checkout / "bin/swift-aio").symlink_to(commands / "swift-aio")
        (checkout / ".venv/bin").symlink_to(commands)
        for sample in (checkout / "etc").glob("*-sample"):
            text = quick_sample(sample.read_text())
            # The peer has no console.
            sample.write_text(text.replace(" console ", " ") if peer_bin else text)
        self._env = {
            **{name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX", "LANG") if name in os.environ},
            "WORLD": str(root),
            "PEER_BIN": peer_bin,
            "REAL_PYTHON": sys.executable,
            "PYTHONPATH": f"{HERE}/pace:{ROOT}",
            "PATH": f"{HERE}/bin:{HERE}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        self._inner = self._hold(
            ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"],
            "ip link set lo up; echo ready; exec /usr/bin/sleep infinity",
        )

    def _hold(self, prefix, script):
        process = subprocess.Popen(
            [*prefix, "bash", "-c", script], stdout=subprocess.PIPE, text=True, env=self._env
        )
        self._processes.append(process)
        assert process.stdout.readline() == "ready\n", "the world is not ready"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        return children.split()[0]

    def add_host(self, address):
        """Create a host with this address."""
        (self.root / "hosts" / address).mkdir(parents=True)
        prefix = ["nsenter", "--target", self._inner, "--net", "--pid", "--mount"]
        self._hold(
            [*prefix, "unshare", "--mount", "--propagation", "private"],
            f"ip addr add {address}/32 dev lo; exec become-host {address}",
        )

    def hosts(self):
        """Return the addresses of all hosts."""
        return sorted(path.name for path in (self.root / "hosts").iterdir())

    def end(self):
        """End all processes of all hosts."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
            process.stdout.close()

    # --- running ----------------------------------------------------------------------------------

    def _enter(self, address, *line):
        prefix = ["nsenter", "--target", self._inner, "--net", "--pid", "--mount"]
        return [*prefix, "enter", address, *line]

    def run(self, address, script):
        """Run a script on a host in the page's shell; return its output and True if it succeeded."""
        state = self.root / "hosts" / address / "shell"
        # Variables and the folder last from one block to the next, as in an operator's shell.
        keep = 'declare -p | grep -vE "^declare -[a-zA-Z]*[rA]|BASH|FUNCNAME|PIPESTATUS|PWD"; echo "cd $PWD"'
        text = (
            f"cd\n[ ! -f {state} ] || . {state}\n"
            f"trap '{{ {keep}; }} >{state}' EXIT\nset -eu -o pipefail\n{script}"
        )
        # Daemons that a block started may write to its log later on.
        log = self.root / "hosts" / address / "output"
        log.unlink(missing_ok=True)
        # Pasted as at a terminal: a command that reads its input takes the rest of the block.
        with tempfile.TemporaryFile() as pasted, open(log, "a+") as output:
            pasted.write(text.encode())
            pasted.seek(0)
            done = subprocess.run(
                self._enter(address, "bash", "-s"),
                stdin=pasted,
                stdout=output,
                stderr=output,
                env=self._env,
                timeout=self.timeout_s,
                check=False,
            )
            output.seek(0)
            return output.read(), done.returncode

    def must(self, address, script):
        """Run a script on a host; return its output, fail unless it succeeds."""
        output, status = self.run(address, script)
        assert status == 0, output
        return output

    def paste(self, page, until=None):
        """Run the blocks of a page of ``doc``; all of them, or those above a heading."""
        started_s = time.monotonic()
        for shell in self.root.glob("hosts/*/shell"):
            shell.unlink()
        output = ""
        text = (ROOT / "doc" / page).read_text()
        if until is not None:
            text, heading, _rest = text.partition(f"\n{until}\n")
            assert heading, f"doc/{page} has no {until!r}"
        for words, instead in QUICKER.items():
            text = text.replace(words, instead)
        ran = 0
        for block in blocks_of(text):
            where = f"doc/{page}:{block.line}"
            if block.language == "sh":
                ran += 1
                output = ""
                began_s = time.monotonic()
                targets = self._targets(block.words)
                with ThreadPoolExecutor(1 if block.words == ONE_BY_ONE else None) as pool:
                    done = list(pool.map(lambda address, text=block.text: self.run(address, text), targets))
                for address, (printed, status) in zip(targets, done, strict=True):
                    output += printed
                    if status:
                        raise PageError(f"{where} on {address} ended with {status}:\n{block.text}\n{printed}")
                self.times[where] = round(time.monotonic() - began_s, 1)
            elif block.language == "output" and (line := missing_line(block.text, output)):
                raise PageError(f"{where}: the output lacks {line!r}:\n{output}")
        assert ran, f"doc/{page} has no block that runs"
        self.times[page] = round(time.monotonic() - started_s, 1)

    def _targets(self, words):
        if not words:
            return [NODES[0] if NODES[0] in self.hosts() else self.hosts()[0]]
        if words in (AT_ONCE, ONE_BY_ONE):
            return self.hosts()
        return [words]
