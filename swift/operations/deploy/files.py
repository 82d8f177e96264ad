"""The files of each host, rendered from the inventory, the secrets and the rings."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from swift.config import declared
from swift.config.cluster import SERVERS_SECTION, ServerAuthSettings
from swift.operations.deploy.inventory import (
    AUTH_OFF,
    CONSOLE,
    MEMCACHED_PORT,
    PORTS,
    PROXY,
    STORAGE,
    SWIFTAUTH,
    TEMPAUTH,
    Host,
    Inventory,
)
from swift.operations.deploy.rings import RingUpdate
from swift.operations.deploy.state import Secrets
from swift.ring.device import address
from swift.ring.layoutfiles import PUBLIC_KEYS

ETC = "/etc/swift"
#: The default of ``secret_file`` in swift.conf.
SECRET_PATH = f"{ETC}/{ServerAuthSettings.secret_file}"
INSTANCE = "replication"
#: The unit of all daemons of a host in one process.
ALL_DAEMONS = "swift-daemons"
#: Beginnings of the names of daemons that operators configure and start themselves.
_BY_HAND = ("s3-",)
#: Path of the layout's public keys on hosts.
LAYOUT_KEYS = f"{ETC}/{PUBLIC_KEYS}"
_SEEDS = 3
#: File of a service of the system → its unit, which stops when no role of the host has the file.
FOREIGN_UNITS = {"/etc/memcached.conf": "memcached", "/etc/rsyncd.conf": "rsync"}
_HEADER = "# Written by swift-deploy: change the inventory, not this file.\n"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9.-]+")

Sections = dict[str, dict[str, str]]


@dataclass(frozen=True)
class HostFile:
    """A file of a host; ``units`` are told of its changes. Its content may have secrets."""

    path: str
    content: bytes = field(repr=False)
    owner: str
    mode: str = "640"
    units: tuple[str, ...] = ()


def is_deployed(path: str) -> bool:
    """Return True if a path may be that of a deployed file, whatever a host's record says."""
    return path in FOREIGN_UNITS or path.startswith(f"{ETC}/") and ".." not in path.split("/")


def daemons_of(server_type: str, *, once: bool) -> list[str]:
    """Return the daemons that a storage host runs beside a server; ``once`` adds those of one host."""
    return [
        name
        for name, daemon in declared.daemons().items()
        if daemon.server_type == server_type
        and not name.startswith(_BY_HAND)
        and (once or not daemon.once_per_cluster)
    ]


def units_of(inventory: Inventory, host: Host) -> tuple[str, ...]:
    """Return the units that a host runs: services without their suffix, timers and the target with it."""
    units: list[str] = ["swift.target"] if host.roles else []
    if PROXY in host.roles:
        units.append("swift-proxy-server")
        if not inventory.memcached.servers:
            units.append("memcached")
    if STORAGE in host.roles:
        once = inventory.runs_once(host)
        for kind in PORTS:
            units.append(f"swift-{kind}-server")
            if host.has_replication_network:
                units.append(f"swift-{kind}-server@{INSTANCE}")
            if not inventory.storage.is_one_process:
                units += [f"swift-{name}" for name in daemons_of(kind, once=once)]
        if inventory.storage.is_one_process:
            units.append(ALL_DAEMONS)
        units.append("swift-recon-cron.timer")
        if once:
            units.append("swift-health-history.timer")
        if inventory.cluster.sync_method == "rsync":
            units.append("rsync")
    if host.roles and ALL_DAEMONS not in units:
        units += [f"swift-{name}" for name in daemons_of("layout", once=False)]
    return tuple(units)


def managed_units() -> tuple[str, ...]:
    """Return all units of this project that an inventory decides on."""
    units = ["swift.target", "swift-proxy-server", "swift-recon-cron.timer", "swift-health-history.timer"]
    units.append(ALL_DAEMONS)
    for kind in PORTS:
        units += [f"swift-{kind}-server", f"swift-{kind}-server@{INSTANCE}"]
        units += [f"swift-{name}" for name in daemons_of(kind, once=True)]
    units += [f"swift-{name}" for name in daemons_of("layout", once=False)]
    return tuple(units)


def files_of(
    inventory: Inventory, host: Host, secrets: Secrets, rings: tuple[RingUpdate, ...]
) -> tuple[HostFile, ...]:
    """Return the files that a host has; a host without a role has none."""
    if not host.roles:
        return ()
    owner = f"root:{inventory.cluster.user}"
    running = tuple(
        unit for unit in units_of(inventory, host) if unit.startswith("swift-") and "." not in unit
    )
    found = [HostFile(f"{ETC}/{ring.file_name}", ring.content, owner) for ring in rings]
    if secrets.layout:
        found.append(HostFile(LAYOUT_KEYS, secrets.layout.encode(), owner))
    for each in _confs_of(inventory, host, secrets, running):
        kept = (secrets.options.get(each.name, {}), inventory.conf.get(each.name, {}))
        text = render_sections(each.sections, *kept)
        told = tuple(unit for unit in running if unit in each.units or _reads_for(unit, each.units))
        found.append(HostFile(f"{ETC}/{each.folder or each.name}", text.encode(), owner, units=told))
    if inventory.cluster.server_auth != AUTH_OFF:
        found.append(secret_file(inventory, secrets))
    if inventory.proxy.auth == SWIFTAUTH:
        # Proxies need it, and swift-user on storage hosts.
        told = tuple(unit for unit in running if unit == "swift-proxy-server")
        found.append(HostFile(f"{ETC}/swiftauth.key", secrets.swiftauth.encode(), owner, units=told))
    if PROXY in host.roles and not inventory.memcached.servers:
        found.append(_memcached_conf(inventory, host))
    if STORAGE in host.roles and inventory.cluster.sync_method == "rsync":
        found.append(_rsyncd_conf(inventory, host))
    return tuple(found)


def secret_file(inventory: Inventory, secrets: Secrets) -> HostFile:
    """Return the file of the secrets that sign requests between servers, which read it when it changes."""
    return HostFile(SECRET_PATH, secrets.servers.encode(), f"root:{inventory.cluster.user}")


def _reads_for(unit: str, readers: tuple[str, ...]) -> bool:
    """Return True for the process of all daemons if one of the ``readers`` is a daemon."""
    known = declared.daemons()
    return unit == ALL_DAEMONS and any(reader.removeprefix("swift-") in known for reader in readers)


def default_sections(inventory: Inventory, host: Host, secrets: Secrets) -> dict[str, Sections]:
    """Return the files of a host before other options are set: name → its sections."""
    confs = _confs_of(inventory, host, secrets, ())
    return {each.name: each.sections for each in confs if not each.folder}


@dataclass(frozen=True)
class _Conf:
    """A configuration file: its name in ``[conf]``, where it lies if elsewhere, and the units to tell."""

    name: str
    sections: Sections
    units: tuple[str, ...]
    folder: str = ""


def _confs_of(
    inventory: Inventory, host: Host, secrets: Secrets, running: tuple[str, ...]
) -> Iterator[_Conf]:
    clients = ("swift-container-sharder", "swift-container-sync", "swift-object-expirer")
    yield _Conf("swift.conf", _swift_conf(inventory, secrets), running)
    yield _Conf(
        "memcache.conf",
        {"memcache": {"memcache_servers": ",".join(inventory.memcache_servers())}},
        ("swift-proxy-server", "swift-container-reconciler", *clients),
    )
    yield _Conf("layout-agent.conf", _layout_conf(inventory), ("swift-layout-agent",))
    if PROXY in host.roles:
        yield _Conf("proxy-server.conf", _proxy_conf(inventory, host, secrets), ("swift-proxy-server",))
    if STORAGE in host.roles:
        yield _Conf("internal-client.conf", _client_conf(), clients)
        for kind in PORTS:
            name = f"{kind}-server.conf"
            readers = [each for each in daemons_of(kind, once=True) if not declared.daemons()[each].conf_name]
            told = (f"swift-{kind}-server", *(f"swift-{each}" for each in readers))
            yield _Conf(name, _storage_conf(inventory, host, kind), told)
            if host.has_replication_network:
                instance = _storage_conf(inventory, host, kind, is_instance=True)
                unit = f"swift-{kind}-server@{INSTANCE}"
                yield _Conf(name, instance, (unit,), f"{kind}-server/{INSTANCE}.conf")
        if inventory.runs_once(host):
            conf = {**_client_conf(), "container-reconciler": {}}
            yield _Conf("container-reconciler.conf", conf, ("swift-container-reconciler",))
            # It does nothing until there is a layout.
            conf = {**_client_conf(), "DEFAULT": {"user": inventory.cluster.user}, "layout-controller": {}}
            yield _Conf("layout-controller.conf", conf, ("swift-layout-controller",))


def render_sections(
    sections: Mapping[str, Mapping[str, str]], *overrides: Mapping[str, Mapping[str, str]]
) -> str:
    """Return the text of a configuration file; later ``overrides`` come last."""
    merged = {name: dict(options) for name, options in sections.items()}
    for each in overrides:
        for name, options in each.items():
            own = merged.setdefault(name, {})
            # A filter of another package has a way of its own to be found.
            if any(option.startswith("paste.") for option in options):
                own.pop("use", None)
            own.update(options)
    parts = [_HEADER]
    for name, options in merged.items():
        parts.append(f"\n[{name}]\n")
        parts += [f"{option} = {value}\n" for option, value in options.items()]
    return "".join(parts)


def hash_lines(secrets: Secrets) -> str:
    """Return the lines of swift.conf that decide where objects lie, as hosts are compared by them."""
    values = {"prefix": secrets.prefix, "suffix": secrets.suffix}
    return "".join(f"swift_hash_path_{name}={value}\n" for name, value in values.items() if value)


def _swift_conf(inventory: Inventory, secrets: Secrets) -> Sections:
    sections: Sections = {
        "swift-hash": {"swift_hash_path_prefix": secrets.prefix, "swift_hash_path_suffix": secrets.suffix}
    }
    for policy in inventory.policies:
        options = policy.section()
        if len(inventory.policies) == 1:
            options["default"] = "yes"
        sections[f"storage-policy:{policy.index}"] = options
    if inventory.cluster.server_auth != AUTH_OFF:
        sections[SERVERS_SECTION] = {"mode": inventory.cluster.server_auth}
    return sections


def _user_option(name: str) -> str:
    """Return the option of tempauth for ``account:user``."""
    account, _, user = name.partition(":")
    if _PLAIN_NAME.fullmatch(account) and _PLAIN_NAME.fullmatch(user):
        return f"user_{account}_{user}"
    # An underscore separates and "=" ends the option's name: the common alphabet without padding has neither.
    parts = [base64.b64encode(text.encode()).decode().rstrip("=") for text in (account, user)]
    return "user64_" + "_".join(parts)


def _proxy_conf(inventory: Inventory, host: Host, secrets: Secrets) -> Sections:
    proxy = inventory.proxy
    known = declared.filters("proxy")
    defaults = [each.section for each in known.values() if each.default]
    if not proxy.console:
        defaults.remove(CONSOLE)
    if proxy.auth == SWIFTAUTH:
        defaults = [SWIFTAUTH if name == TEMPAUTH else name for name in defaults]
    pipeline = proxy.pipeline or (*defaults, "proxy-logging", "proxy-server")
    sections: Sections = {
        "DEFAULT": {
            "bind_ip": host.proxy_address,
            "bind_port": str(proxy.port),
            "workers": proxy.workers,
            "user": inventory.cluster.user,
            "metrics_bind_ip": host.address,
        },
        "pipeline:main": {"pipeline": " ".join(pipeline)},
        "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true"},
    }
    if STORAGE in host.roles:
        sections["app:proxy-server"]["local_reads"] = f"{ETC}/object-server.conf"
    entries = {each.section: name for name, each in known.items()}
    for section in dict.fromkeys(pipeline[:-1]):
        sections[f"filter:{section}"] = {"use": f"egg:swift#{entries.get(section, section)}"}
    if proxy.console:
        sections[f"filter:{CONSOLE}"]["public"] = "true"
    if "filter:tempauth" in sections:
        for name, groups in proxy.users:
            sections["filter:tempauth"][_user_option(name)] = " ".join((secrets.keys[name], *groups))
    return sections


def _client_conf() -> Sections:
    """Return the pipeline of daemons that are clients themselves."""
    return {
        "DEFAULT": {},
        "pipeline:main": {"pipeline": "catch_errors proxy-logging cache proxy-server"},
        "app:proxy-server": {
            "use": "egg:swift#proxy",
            "account_autocreate": "true",
            "allow_account_management": "true",
        },
        "filter:catch_errors": {"use": "egg:swift#catch_errors"},
        "filter:proxy-logging": {"use": "egg:swift#proxy_logging"},
        "filter:cache": {"use": "egg:swift#memcache"},
    }


def _storage_conf(inventory: Inventory, host: Host, kind: str, *, is_instance: bool = False) -> Sections:
    """Return the file of a storage server and its daemons, or that of the server for replication."""
    storage = inventory.storage
    address = host.replication_address if is_instance else host.address
    defaults = {
        "bind_ip": address,
        "bind_port": str(storage.ports[kind]),
        "workers": storage.workers,
        "user": inventory.cluster.user,
        "metrics_bind_ip": address,
        "devices": storage.devices,
        "mount_check": str(storage.mount_check).lower(),
    }
    if host.has_replication_network:
        # Daemons find their devices in rings by the replication address.
        defaults["ring_ip"] = host.replication_address
    sections: Sections = {
        "DEFAULT": defaults,
        "pipeline:main": {"pipeline": f"healthcheck recon {kind}-server"},
        f"app:{kind}-server": {"use": f"egg:swift#{kind}"},
        "filter:healthcheck": {"use": "egg:swift#healthcheck"},
        "filter:recon": {"use": "egg:swift#recon"},
    }
    if is_instance:
        return sections
    for name in daemons_of(kind, once=True):
        if not declared.daemons()[name].conf_name:
            sections[name] = {}
    if kind == "object":
        sections["object-replicator"]["sync_method"] = inventory.cluster.sync_method
        if inventory.runs_once(host):
            sections["object-expirer"]["dequeue_from_legacy"] = "true"
    return sections


def _layout_conf(inventory: Inventory) -> Sections:
    """Return the file of the layout agent; a host without rings gets them from the first storage hosts."""
    port = inventory.storage.ports["object"]
    seeds = [address(host.address, port) for host in inventory.hosts_of(STORAGE)[:_SEEDS]]
    return {"DEFAULT": {"user": inventory.cluster.user}, "layout-agent": {"seeds": ", ".join(seeds)}}


def _memcached_conf(inventory: Inventory, host: Host) -> HostFile:
    text = (
        f"{_HEADER}-d\nlogfile /var/log/memcached.log\n-m {inventory.memcached.memory_mb}\n"
        f"-p {MEMCACHED_PORT}\n-u memcache\n-l {host.address}\n"
    )
    return HostFile("/etc/memcached.conf", text.encode(), "root:root", "644", ("memcached",))


def _rsyncd_conf(inventory: Inventory, host: Host) -> HostFile:
    user, path = inventory.cluster.user, inventory.storage.devices
    text = (
        f"{_HEADER}uid = {user}\ngid = {user}\nlog file = /var/log/rsyncd.log\n"
        f"pid file = /var/run/rsyncd.pid\naddress = {host.replication_address}\nreverse lookup = false\n"
    )
    for kind, connections in (("account", 2), ("container", 4), ("object", 8)):
        text += (
            f"\n[{kind}]\nmax connections = {connections}\npath = {path}\nread only = false\n"
            f"lock file = /var/lock/{kind}.lock\n"
        )
    return HostFile("/etc/rsyncd.conf", text.encode(), "root:root", "644", ("rsync",))
