"""The inventory of a cluster: hosts, disks, policies and options, read from TOML and checked.

An inventory has no secrets; these are in the state directory (``state``).
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swift.base.errors import ConfigError
from swift.config import declared
from swift.ec.codec import DEFAULT_EC_TYPE
from swift.operations.deploy.tables import InventoryError, Table
from swift.policy.policy import Policies
from swift.ring.device import address
from swift.ring.table import PART_POWER_MAX

PROXY, STORAGE = "proxy", "storage"
ROLES = (PROXY, STORAGE)
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
#: Port of each ring's servers, unless ``[storage]`` has another.
PORTS = {"account": 6202, "container": 6201, "object": 6200}
MEMCACHED_PORT = 11211
#: Files whose options the inventory may set in ``[conf]``.
CONF_FILES = (
    *("swift.conf", "proxy-server.conf", "memcache.conf", "internal-client.conf"),
    *("account-server.conf", "container-server.conf", "object-server.conf", "container-reconciler.conf"),
    "layout-controller.conf",
)
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_GROUP = r"[^\s:]+"
_PATH = r"/[^\s'\"]*"
_SERVER = r"[^\s,]+:[0-9]+"

#: File → section → option → value.
Overrides = Mapping[str, Mapping[str, Mapping[str, str]]]


@dataclass(frozen=True)
class Disk:
    """A device of a storage host: the name of its directory below ``devices``, and its weight in rings.

    ``weights`` (ring → weight) names the rings that have it; without, those of its class do.
    """

    device: str
    weight: float
    disk_class: str
    region: int
    zone: int
    weights: Mapping[str, float] = field(default_factory=dict)

    def weight_in(self, ring: str, disk_class: str) -> float | None:
        """Return its weight in a ring of a class; None if the ring does not have it."""
        if self.weights:
            return self.weights.get(ring)
        return self.weight if self.disk_class == disk_class else None


@dataclass(frozen=True)
class Host:
    """A host of the cluster; ``target`` is what ssh is told, empty for the machine itself."""

    name: str
    target: str
    address: str
    replication_address: str
    proxy_address: str
    region: int
    zone: int
    roles: tuple[str, ...]
    disks: tuple[Disk, ...]

    @property
    def has_replication_network(self) -> bool:
        """True if replication has an address of its own."""
        return self.replication_address != self.address


@dataclass(frozen=True)
class DeployPolicy:
    """A storage policy: ``replicas`` of whole objects, or ``data`` and ``parity`` fragments."""

    name: str
    index: int
    is_default: bool
    replicas: float
    data: int
    parity: int
    ec_type: str
    disk_class: str

    @property
    def ring_name(self) -> str:
        """The base name of its ring."""
        return f"object-{self.index}" if self.index else "object"

    def section(self) -> dict[str, str]:
        """Return its section of swift.conf."""
        options = {"name": self.name}
        if self.is_default:
            options["default"] = "yes"
        if self.data:
            options |= {
                "policy_type": "erasure_coding",
                "ec_type": self.ec_type,
                "ec_num_data_fragments": str(self.data),
                "ec_num_parity_fragments": str(self.parity),
            }
        return options


#: No server demands signatures.
AUTH_OFF = "off"


@dataclass(frozen=True)
class ClusterOptions:
    """``[cluster]``."""

    part_power: int
    min_part_hours: int
    overload: float
    ssh: tuple[str, ...]
    sudo: bool
    state: str
    user: str
    sync_method: str
    #: Mode of the authentication of servers; with another than ``off`` hosts get a secret.
    server_auth: str


#: Filters that know the users.
TEMPAUTH, SWIFTAUTH, CONSOLE = "tempauth", "swiftauth", "console"


@dataclass(frozen=True)
class ProxyOptions:
    """``[proxy]``; ``users`` are account:user → groups of tempauth, their keys are generated.

    With ``auth`` swiftauth users are in the cluster; the hosts get its key file.
    """

    port: int
    workers: str
    pipeline: tuple[str, ...]
    users: tuple[tuple[str, tuple[str, ...]], ...]
    auth: str = TEMPAUTH
    #: True if the proxies serve the console, which needs ``swiftauth``.
    console: bool = False


@dataclass(frozen=True)
class StorageOptions:
    """``[storage]``; ``replicas`` and ``disk_class`` are those of accounts and containers.

    ``ports`` are the ports of account, container and object servers. With ``is_one_process`` the daemons of a
    host share a process.
    """

    devices: str
    mount_check: bool
    workers: str
    replicas: float
    disk_class: str
    ports: Mapping[str, int]
    is_one_process: bool


@dataclass(frozen=True)
class MemcachedOptions:
    """``[memcached]``; with ``servers`` the operator runs memcached, else each proxy host has one."""

    servers: tuple[str, ...]
    memory_mb: int


@dataclass(frozen=True)
class Inventory:
    """Everything that an inventory says of a cluster."""

    path: str
    cluster: ClusterOptions
    proxy: ProxyOptions
    storage: StorageOptions
    memcached: MemcachedOptions
    policies: tuple[DeployPolicy, ...]
    hosts: tuple[Host, ...]
    conf: Overrides

    def hosts_of(self, role: str) -> tuple[Host, ...]:
        """Return the hosts that have a role."""
        return tuple(host for host in self.hosts if role in host.roles)

    def memcache_servers(self) -> tuple[str, ...]:
        """Return the memcached servers of all proxies, as host:port."""
        if self.memcached.servers:
            return self.memcached.servers
        return tuple(address(host.address, MEMCACHED_PORT) for host in self.hosts_of(PROXY))

    def runs_once(self, host: Host) -> bool:
        """Return True if a host runs the daemons of which a cluster needs one."""
        return host == self.hosts_of(STORAGE)[0]


def load_inventory(path: str) -> Inventory:
    """Read and check an inventory. Raises ``InventoryError`` and OSError."""
    try:
        with open(path, "rb") as file:
            values: dict[str, object] = tomllib.load(file)
    except FileNotFoundError:
        raise InventoryError(f"{path} is missing: name the inventory, or write a sample with init or adopt")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InventoryError(f"{path}: {error}")
    return parse_inventory(values, path)


def parse_inventory(values: Mapping[str, object], path: str) -> Inventory:
    """Return the inventory of parsed TOML; raises ``InventoryError``."""
    top = Table(path, "top level", values)
    conf = _parse_conf(top.table("conf"))
    inventory = Inventory(
        path=path,
        cluster=_parse_cluster(top.table("cluster"), path),
        proxy=_parse_proxy(top.table("proxy"), conf.get("proxy-server.conf", {})),
        storage=_parse_storage(top.table("storage")),
        memcached=_parse_memcached(top.table("memcached")),
        policies=_parse_policies(top),
        hosts=_parse_hosts(top),
        conf=conf,
    )
    top.end()
    for role in ROLES:
        if not inventory.hosts_of(role):
            raise top.error("host", f"must have the role {role} at least once")
    _check_disks(top, inventory)
    return inventory


def _parse_cluster(table: Table, path: str) -> ClusterOptions:
    base = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(os.path.abspath(path))
    options = ClusterOptions(
        part_power=table.integer("part_power", least=1, most=PART_POWER_MAX),
        min_part_hours=table.integer("min_part_hours", 1, most=255),
        overload=table.number("overload", 0.0),
        ssh=table.texts("ssh", SSH),
        sudo=table.flag("sudo", False),
        state=os.path.join(folder, table.text("state", f"{base}.state", form="the path of a directory")),
        user=table.text("user", "swift", pattern=r"[a-z_][a-z0-9_-]*", form="the name of a user"),
        sync_method=table.choice("sync_method", "ssync", ("ssync", "rsync")),
        server_auth=table.choice("server_auth", AUTH_OFF, (AUTH_OFF, "accept", "require")),
    )
    table.end()
    return options


def _parse_workers(table: Table) -> str:
    if table.has("workers") and table.scalar("workers") == "auto":
        return "auto"
    # A server without workers cannot be reloaded.
    return str(table.integer("workers", least=1)) if table.has("workers") else "auto"


def _parse_proxy(table: Table, conf: Mapping[str, Mapping[str, str]]) -> ProxyOptions:
    """Return ``[proxy]``; ``conf`` may have the sections of filters of other packages."""
    names = table.table("users", "[proxy.users]")
    users = []
    for name in names:
        account, _, user = name.partition(":")
        if not account or not user or ":" in user or any(map(str.isspace, name)) or not name.isprintable():
            raise names.error(repr(name), 'must be "account:user"')
        users.append((name, names.texts(name, pattern=_GROUP)))
    known = (*declared.filters("proxy"), *(each.section for each in declared.filters("proxy").values()))
    pipeline = table.texts("pipeline")
    for name in pipeline:
        if name not in (*known, "proxy-server") and f"filter:{name}" not in conf:
            raise table.error(
                "pipeline",
                f'has {name!r}, which is no filter and no [conf."proxy-server.conf"."filter:{name}"]',
            )
    auth = table.choice("auth", TEMPAUTH, (TEMPAUTH, SWIFTAUTH))
    if auth == SWIFTAUTH and users and TEMPAUTH not in pipeline:
        raise names.error(repr(users[0][0]), "is for tempauth: with swiftauth swift-user creates users")
    if auth == SWIFTAUTH and pipeline and SWIFTAUTH not in pipeline:
        raise table.error("pipeline", "has no swiftauth, which auth names")
    if pipeline and (pipeline[-1] != "proxy-server" or pipeline.count("proxy-server") > 1):
        raise table.error("pipeline", "must end with proxy-server")
    console = table.flag("console", False)
    if console and auth != SWIFTAUTH:
        raise table.error("console", f'needs auth = "{SWIFTAUTH}"')
    if console and pipeline and CONSOLE not in pipeline:
        raise table.error("console", f"needs {CONSOLE} in the pipeline")
    options = ProxyOptions(
        port=table.integer("port", 8080, least=1, most=65535),
        workers=_parse_workers(table),
        pipeline=pipeline,
        users=tuple(users),
        auth=auth,
        console=console,
    )
    table.end()
    return options


def _parse_storage(table: Table) -> StorageOptions:
    options = StorageOptions(
        devices=table.text("devices", "/srv/node", pattern=_PATH, form="an absolute path"),
        mount_check=table.flag("mount_check", True),
        workers=_parse_workers(table),
        replicas=table.number("replicas", 3.0, least=1.0),
        disk_class=table.text("class", "", pattern=_NAME, form="a name"),
        ports={
            kind: table.integer(f"{kind}_port", port, least=1, most=65535) for kind, port in PORTS.items()
        },
        is_one_process=table.flag("daemons_in_one_process", True),
    )
    if len(set(options.ports.values())) < len(PORTS):
        raise table.error("object_port", "and the other ports must differ")
    table.end()
    return options


def _parse_memcached(table: Table) -> MemcachedOptions:
    options = MemcachedOptions(
        servers=table.texts("servers", pattern=_SERVER), memory_mb=table.integer("memory_mb", 64, least=1)
    )
    table.end()
    return options


def _parse_policies(top: Table) -> tuple[DeployPolicy, ...]:
    tables = top.tables("policy", "[[policy]]")
    if not tables:
        raise top.error("policy", "is missing: at least one [[policy]]")
    policies: list[DeployPolicy] = []
    for table in tables:
        policy = _parse_policy(table)
        if policy.index in (other.index for other in policies):
            raise table.error("index", f"{policy.index} is that of another policy")
        # Servers refuse a set without policy 0, so each policy is checked beside one.
        sections = {"storage-policy:0": {"name": "none"}, f"storage-policy:{policy.index}": policy.section()}
        try:
            Policies.parse(
                {name: {**each, "default": str(name[-2:] == ":0")} for name, each in sections.items()}
            )
        except ConfigError as error:
            raise table.error("name", f"and other keys: {error}")
        if policy.name.lower() in (other.name.lower() for other in policies):
            raise table.error("name", f"{policy.name!r} is that of another policy")
        policies.append(policy)
    if 0 not in (policy.index for policy in policies):
        raise top.error("policy", "must have index 0 once")
    if sum(policy.is_default for policy in policies) > 1:
        raise top.error("policy", "must have default = true at most once")
    if not any(policy.is_default for policy in policies) and len(policies) > 1:
        raise top.error("policy", "must have default = true once")
    return tuple(policies)


def _parse_policy(table: Table) -> DeployPolicy:
    is_ec = table.has("data") or table.has("parity")
    if is_ec and table.has("replicas"):
        raise table.error("replicas", "and data, parity exclude each other")
    policy = DeployPolicy(
        name=table.text("name", pattern=r"[A-Za-z0-9-]+", form="letters, digits and dashes"),
        index=table.integer("index"),
        is_default=table.flag("default", False),
        replicas=0.0 if is_ec else table.number("replicas", least=1.0),
        data=table.integer("data", least=1) if is_ec else 0,
        parity=table.integer("parity", least=1) if is_ec else 0,
        ec_type=table.text("ec_type", DEFAULT_EC_TYPE, pattern=r"\w+", form="a name") if is_ec else "",
        disk_class=table.text("class", "", pattern=_NAME, form="a name"),
    )
    table.end()
    return policy


def _parse_hosts(top: Table) -> tuple[Host, ...]:
    tables = top.tables("host", "[[host]]")
    if not tables:
        raise top.error("host", "is missing: at least one [[host]]")
    hosts: list[Host] = []
    for table in tables:
        host = _parse_host(table)
        for key, taken in (
            ("name", [other.name for other in hosts]),
            ("address", [other.address for other in hosts]),
            ("replication_address", [other.replication_address for other in hosts]),
        ):
            if getattr(host, key) in taken:
                raise table.error(key, f"{getattr(host, key)!r} is that of another host")
        hosts.append(host)
    return tuple(hosts)


def _address(table: Table, key: str, default: str | None = None) -> str:
    text = table.text(key, default, form="an IP address")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise table.error(key, f"must be an IP address, not {text!r}")
    if address.is_unspecified and key != "proxy_address":
        raise table.error(key, f"must be an address of this host alone, not {text!r}")
    return str(address)


def _parse_host(table: Table) -> Host:
    name = table.text("name", pattern=_NAME, form="a name of letters, digits, dots and dashes")
    address = _address(table, "address")
    roles = table.texts("roles", ROLES)
    for role in roles:
        if role not in ROLES:
            raise table.error("roles", f"must be some of {', '.join(ROLES)}; it has {role!r}")
    is_local = table.flag("local", False)
    if is_local and table.has("target"):
        raise table.error("target", "and local = true exclude each other")
    region, zone = table.integer("region", 1, least=1), table.integer("zone", least=1)
    host = Host(
        name=name,
        target="" if is_local else table.text("target", address, pattern=r"[^\s-]\S*", form="a name for ssh"),
        address=address,
        replication_address=_address(table, "replication_address", address),
        proxy_address=_address(table, "proxy_address", address),
        region=region,
        zone=zone,
        roles=tuple(role for role in ROLES if role in roles),
        disks=_parse_disks(table, region, zone),
    )
    if host.disks and STORAGE not in host.roles:
        raise table.error("disks", "needs the role storage")
    table.end()
    return host


def _parse_disks(host: Table, region: int, zone: int) -> tuple[Disk, ...]:
    disks: list[Disk] = []
    for table in host.tables("disks", f"{host.title} disks"):
        weights = table.table("weights", f"{table.title} weights")
        has_weights = table.has("weights")
        for key in ("weight", "class"):
            if has_weights and table.has(key):
                raise table.error(key, "and weights exclude each other")
        disk = Disk(
            device=table.text("device", pattern=_NAME, form="the name of a directory"),
            weight=0.0 if has_weights else table.number("weight"),
            disk_class=table.text("class", "", pattern=_NAME, form="a name"),
            region=table.integer("region", region, least=1),
            zone=table.integer("zone", zone, least=1),
            weights={ring: weights.number(ring) for ring in weights},
        )
        if has_weights and not disk.weights:
            raise table.error("weights", "must name the rings of the disk")
        table.end()
        if disk.device in (other.device for other in disks):
            raise table.error("device", f"{disk.device!r} is that of another disk of this host")
        disks.append(disk)
    return tuple(disks)


def _parse_conf(table: Table) -> Overrides:
    conf: dict[str, dict[str, dict[str, str]]] = {}
    for file in table:
        if file not in CONF_FILES:
            raise table.error(repr(file), f"must be one of {', '.join(CONF_FILES)}")
        sections = table.table(file, f"[conf.{file!r}]")
        conf[file] = {}
        for section in sections:
            if not section.isprintable() or set(section) & set("[]"):
                raise sections.error(repr(section), "is no name of a section")
            options = sections.table(section, f"[conf.{file!r}.{section!r}]")
            conf[file][section] = {}
            for option in options:
                if not option.isprintable() or set(option.removeprefix("set ")) & set("=: []#;"):
                    raise options.error(repr(option), "is no name of an option")
                if option.startswith("swift_hash_path_"):
                    raise options.error(
                        option, "is a secret; it is generated and kept in the state directory"
                    )
                conf[file][section][option] = options.scalar(option)
    return conf


def ring_replicas(inventory: Inventory) -> Sequence[tuple[str, float, str]]:
    """Return each ring's name, replicas and class of disks."""
    storage = inventory.storage
    rings = [(name, storage.replicas, storage.disk_class) for name in ("account", "container")]
    for policy in inventory.policies:
        replicas = float(policy.data + policy.parity) if policy.data else policy.replicas
        rings.append((policy.ring_name, replicas, policy.disk_class))
    return rings


def _check_disks(top: Table, inventory: Inventory) -> None:
    """Refuse rings that have more replicas than disks."""
    disks = [disk for host in inventory.hosts for disk in host.disks]
    rings = ring_replicas(inventory)
    for disk in disks:
        for name in disk.weights:
            if name not in [ring for ring, _replicas, _class in rings]:
                raise top.error(
                    "host", f"has the disk {disk.device} with a weight in {name!r}, which is no ring"
                )
    for name, replicas, disk_class in rings:
        count = sum(bool(disk.weight_in(name, disk_class)) for disk in disks)
        if count < replicas:
            what = f"of class {disk_class!r}" if disk_class else "without a class"
            raise top.error("host", f"has {count} disks {what}, but ring {name} has {replicas:g} replicas")
