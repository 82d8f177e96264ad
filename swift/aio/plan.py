"""Plan of an all-in-one cluster: its directories, ports and processes, decided before anything is made.

A plan is remembered in ``aio.json`` in the data directory, so that later starts find the same cluster. It
refuses to know how files are written or processes run.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swift.aio.ports import (
    BASE_PORT,
    CACHE_PORT,
    LOOPBACK,
    METRICS_OFFSET,
    NODES,
    OFFSETS,
    PORTS_PER_NODE,
    PROXY_PORT,
    listeners,
    storage_ip,
)
from swift.base.digits import is_digits
from swift.base.errors import ConfigError
from swift.config.declared import daemons
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.ring.device import address

PLAN_FILE = "aio.json"
PLAN_VERSION = 1
#: Choices that plans of version 1 may lack.
ADDED_CHOICES = (
    "disks",
    "storage_workers",
    "access_key",
    "secret_key",
    "has_test_users",
    "tempauth",
    "public_console",
)
#: The directory of the images behind the devices, with ``--xfs``.
IMAGES = "images"
PORT_MAX = 65535
_DISK_LETTERS = "bcdefghijklmnopqrstuvwxyz"
#: Seconds between the passes of daemons that do not say otherwise; an idle pass costs next to nothing.
DAEMON_INTERVAL_S = 60
#: Servers go first.
DAEMON_NICENESS = 10


def daemon_options(name: str) -> dict[str, int]:
    """Return the options of a daemon on a machine that serves requests beside it; intervals in seconds."""
    defaults = {"interval": DAEMON_INTERVAL_S, "nice_priority": DAEMON_NICENESS}
    return {**defaults, **daemons()[name].small_cluster}


@dataclass(frozen=True)
class PlannedProcess:
    """One process of the cluster: its name, its arguments after the interpreter, its port.

    Daemons have no port: they are up as long as they live.
    """

    name: str
    args: tuple[str, ...]
    port: int | None = None
    ip: str = LOOPBACK


@dataclass(frozen=True)
class ClusterPlan:
    """A cluster below ``root``; sizes and ports are fixed when it is created."""

    root: Path
    #: Address on which the proxy listens.
    ip: str = LOOPBACK
    proxy_port: int = PROXY_PORT
    base_port: int = BASE_PORT
    cache_port: int = CACHE_PORT
    nodes: int = NODES
    #: Devices of a node.
    disks: int = 1
    replicas: int = 3
    #: The code of the second policy as ``K+M``; empty when there is only the replicated one.
    ec: str = ""
    part_power: int = 10
    proxy_workers: int = 2
    #: Of each account, container and object server; 0: it serves in its only process.
    storage_workers: int = 0
    xfs: bool = False
    #: True if objects are kept by the packed engine.
    packed: bool = False
    xfs_bytes: int = 4 << 30
    hash_suffix: str = ""
    user: str = "test:tester"
    key: str = "testing"
    #: An S3 access key of the user besides its name, with its secret key; "" for none.
    access_key: str = ""
    secret_key: str = ""
    #: Users beside it, whose keys follow from its key, for tests of access rights.
    has_test_users: bool = True
    #: True if users are in the proxy's configuration, not in the cluster.
    tempauth: bool = True
    #: True if the console is also served on an address that is not of the loopback interface.
    public_console: bool = False

    @property
    def etc(self) -> Path:
        """Configuration files and rings."""
        return self.root / "etc"

    @property
    def key_file(self) -> Path:
        """The keys of the cluster's users, if they are in the cluster."""
        return self.etc / "swiftauth.key"

    @property
    def run(self) -> Path:
        """Pid and lock files."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """One log file per process."""
        return self.root / "log"

    @property
    def cache(self) -> Path:
        """Recon files, a directory per node."""
        return self.root / "cache"

    def recon(self, node: int) -> Path:
        """Return the recon files of node 1…n."""
        return self.cache / f"node{node}"

    def devices(self, node: int) -> Path:
        """Return the devices directory of node 1…n."""
        return self.root / f"node{node}"

    def device(self, node: int, disk: int = 0) -> str:
        """Return the device names of node 1…n: sdb1, then sdc1 and so on."""
        return f"sd{_DISK_LETTERS[disk]}{node}"

    def device_names(self, node: int) -> list[str]:
        """Return all devices of node 1…n."""
        return [self.device(node, disk) for disk in range(self.disks)]

    def device_paths(self) -> list[Path]:
        """Return the directories of all devices."""
        return [self.devices(node) / name for node in self.node_numbers() for name in self.device_names(node)]

    def device_path(self, name: str) -> Path:
        """Return the directory of a device by its name; raises KeyError."""
        return {path.name: path for path in self.device_paths()}[name]

    @property
    def disks_in_all(self) -> int:
        """Devices of the cluster."""
        return self.nodes * self.disks

    def port(self, kind: str, node: int) -> int:
        """Return the port of a storage server."""
        return self.base_port + PORTS_PER_NODE * node + OFFSETS[kind]

    def metrics_port(self, kind: str, node: int = 0) -> int:
        """Return the port of the metrics page of the proxy (kind ``proxy``) or a storage server."""
        return self.base_port if kind == "proxy" else self.port(kind, node) + METRICS_OFFSET

    @property
    def fragments(self) -> int:
        """Devices that an erasure coded object is spread over; 0 without such a policy."""
        return sum(parse_ec(self.ec)) if self.ec else 0

    @property
    def storage_ip(self) -> str:
        """The address of everything but the proxy."""
        return storage_ip(self.ip)

    @property
    def url(self) -> str:
        """The proxy, by an address that other machines can use where it listens on all of them."""
        return f"http://{address(reachable_ip(self.ip), self.proxy_port)}"

    @property
    def console_url(self) -> str:
        """The console's first page; empty if the cluster serves none."""
        is_served = not self.tempauth and (self.public_console or self.ip == self.storage_ip)
        return f"{self.url}/console" if is_served else ""

    @property
    def auth_url(self) -> str:
        """URL of the authentication service."""
        return f"{self.url}/auth/v1.0"

    @property
    def storage_url(self) -> str:
        """The user's account."""
        return f"{self.url}/v1/AUTH_{self.user.partition(':')[0]}"

    def node_numbers(self) -> range:
        """Return the numbers 1…n."""
        return range(1, self.nodes + 1)

    def servers(self) -> Iterator[PlannedProcess]:
        """Yield the servers in the order to start them; the proxy last."""
        for node in self.node_numbers():
            for kind in ("account", "container", "object"):
                conf = self.etc / f"{kind}-server" / f"{node}.conf"
                module = f"swift.cli.{kind}_server"
                words = ("-m", module, str(conf), "-v")
                yield PlannedProcess(f"{kind}-{node}", words, self.port(kind, node), self.storage_ip)
        conf = self.etc / "proxy-server.conf"
        words = ("-m", "swift.cli.proxy_server", str(conf), "-v")
        yield PlannedProcess("proxy", words, self.proxy_port, self.ip)

    def daemons(self) -> Iterator[PlannedProcess]:
        """Yield the background processes: all daemons of a node run in one process."""
        for node in self.node_numbers():
            confs = [
                f"{name}={self.etc / f'{daemon.server_type}-server' / f'{node}.conf'}"
                for name, daemon in daemons().items()
                if node == 1 or not daemon.once_per_cluster
            ]
            yield PlannedProcess(f"daemons-{node}", ("-m", "swift.cli.daemons", "-v", *confs))

    def jobs(self) -> Iterator[PlannedProcess]:
        """Yield what runs every few minutes: the counts of waiting updates, which ``swift-health`` reads."""
        for node in self.node_numbers():
            conf = self.etc / "object-server" / f"{node}.conf"
            yield PlannedProcess(f"recon-cron-{node}", ("-m", "swift.cli.recon_cron", str(conf)))

    def ports(self) -> Iterator[tuple[str, int]]:
        """Name and port of everything that listens."""
        yield from ((name, port) for name, _ip, port in plan_listeners(self))

    def check(self) -> None:
        """Raise ``ConfigError`` for values that cannot work, before anything is made of them."""
        for name, number, least in (
            ("--nodes", self.nodes, 1),
            ("--disks", self.disks, 1),
            ("--replicas", self.replicas, 1),
            ("--workers", self.proxy_workers, 0),
        ):
            if number < least:
                raise ConfigError(f"{name} must be at least {least}, not {number}")
        self._check_login()
        if self.disks > len(_DISK_LETTERS):
            raise ConfigError(f"--disks must be at most {len(_DISK_LETTERS)}, not {self.disks}")
        if self.disks_in_all < self.replicas:
            raise ConfigError(
                f"{self.replicas} replicas need at least as many devices, not {self.disks_in_all}"
            )
        try:
            with socket.socket(socket.AF_INET6 if ":" in self.ip else socket.AF_INET) as probe:
                probe.bind((self.ip, 0))
        except (OSError, TypeError, ValueError):
            raise ConfigError(f"--ip {self.ip} is not an address of this machine")
        names: dict[int, str] = {}
        for name, port in self.ports():
            if port < 1:
                raise ConfigError(f"port {port} ({name}) is none; choose higher ones")
            if port > PORT_MAX:
                raise ConfigError(f"port {port} ({name}) is beyond {PORT_MAX}; choose a lower --base-port")
            if port in names:
                raise ConfigError(
                    f"{names[port]} and {name} would both listen on port {port}; choose others with --port, "
                    "--base-port or --cache-port"
                )
            names[port] = name

    def _check_login(self) -> None:
        """Raise ``ConfigError`` for a login that a line of a configuration file cannot hold."""
        values = (self.user, self.key, self.access_key, self.secret_key)
        if not all(value.isprintable() for value in values):
            raise ConfigError("--user, --key and the S3 keys must be printable")
        account, _colon, name = self.user.partition(":")
        if not (account and name) or _has_any(self.user, "_=") or ":" in name:
            raise ConfigError(
                f"--user is ACCOUNT:NAME without spaces, underscores and equals signs, not {self.user!r}"
            )
        if not self.key or _has_any(self.key, ""):
            raise ConfigError("--key must not be empty or have spaces")
        if bool(self.access_key) != bool(self.secret_key.strip()):
            raise ConfigError("an S3 access key and its secret key are given together")
        if _has_any(self.access_key, ":="):
            raise ConfigError("the S3 access key must not have spaces, colons and equals signs")

    def save(self) -> None:
        """Store the plan; raises OSError and leaves the former one."""
        values = {k: v for k, v in dataclasses.asdict(self).items() if k != "root"}
        text = json.dumps({"version": PLAN_VERSION, **values}, indent=1)
        replace_file(Disk(), str(self.root / PLAN_FILE), f"{text}\n".encode(), mode=0o600)

    def foreign_entries(self) -> list[str]:
        """Return the entries of the directory that do not belong to a cluster, sorted."""
        nodes = {f"node{number}" for number in self.node_numbers()}
        own = {
            PLAN_FILE,
            IMAGES,
            *nodes,
            *(path.name for path in (self.etc, self.run, self.logs, self.cache)),
        }
        return sorted(path.name for path in self.root.iterdir() if path.name not in own)


def plan_listeners(plan: ClusterPlan) -> Iterator[tuple[str, str, int]]:
    """Name, address and port of everything that listens."""
    return listeners(plan.ip, plan.proxy_port, plan.base_port, plan.cache_port, plan.nodes)


def _has_any(text: str, forbidden: str) -> bool:
    return any(char.isspace() or char in forbidden for char in text)


def reachable_ip(ip: str) -> str:
    """Return the address by which to reach what listens on ``ip``: another one for 0.0.0.0 and ::."""
    if ip not in ("0.0.0.0", "::"):
        return ip
    family, outside = (socket.AF_INET6, "2001:db8::1") if ip == "::" else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel only chooses the address that packets to elsewhere would have.
            probe.connect((outside, 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "::1" if ip == "::" else LOOPBACK


def parse_ec(text: str) -> tuple[int, int]:
    """Parse ``K+M`` as data and parity; raises ``ConfigError``."""
    data, plus, parity = text.partition("+")
    if not (plus and is_digits(data) and is_digits(parity)):
        raise ConfigError(f"an erasure code is K+M, for example 4+2, not {text!r}")
    return int(data), int(parity)


def default_ec(devices: int) -> str:
    """Return a code for so many devices that leaves one of them to stand in; empty when there are too few."""
    if devices >= 7:
        return "4+2"
    return "2+1" if devices >= 4 else ""


def new_plan(root: Path, **choices: object) -> ClusterPlan:
    """Return a plan for a new cluster; a choice that is None keeps its default."""
    chosen = {name: value for name, value in choices.items() if value is not None}
    return ClusterPlan(root, hash_suffix=secrets.token_hex(16), **chosen)  # type: ignore[arg-type]


def saved_plan(root: Path) -> ClusterPlan | None:
    """Return the plan of an existing cluster, None when there is none.

    Raises ``ConfigError`` for a foreign file.
    """
    path = root / PLAN_FILE
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_text())
        if values.pop("version") != PLAN_VERSION:
            raise ConfigError(f"{path} was written by another version of swift-aio")
        known = {
            field.name: field.default for field in dataclasses.fields(ClusterPlan) if field.name != "root"
        }
        # Plans are older than some of the choices; they were made with what is the default now.
        values = {**{name: known[name] for name in ADDED_CHOICES}, **values}
        if values.keys() != known.keys():
            raise KeyError(*sorted(values.keys() ^ known.keys()))
        for name, default in known.items():
            if type(values[name]) is not type(default):
                raise TypeError(f"{name} is {values[name]!r}")
        return ClusterPlan(root, **values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} is not a plan of swift-aio ({error}); choose another directory")
