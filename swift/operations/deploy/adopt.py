"""The adoption of a cluster that was made by hand: an inventory and a state directory from its files.

Read are the builders and all configuration files that an inventory writes, in a configuration directory.
Options that an inventory would write otherwise go to its ``[conf]``, secret ones to the state directory. What
an inventory cannot express is refused, so that the first ``plan`` changes neither devices, policies nor
pipelines.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from swift.base.errors import ConfigError
from swift.cluster.serverauth import SecretError, read_secrets
from swift.config.cluster import SERVERS_SECTION, ClusterConfig, read_cluster_config
from swift.config.files import raw_sections
from swift.identity.clusterkeys import read_key_file
from swift.middleware.tempauth.users import User, parse_users
from swift.obj.replicator.settings import RSYNC
from swift.operations.deploy.files import Sections, default_sections
from swift.operations.deploy.inventory import (
    AUTH_OFF,
    CONF_FILES,
    MEMCACHED_PORT,
    PORTS,
    PROXY,
    STORAGE,
    SWIFTAUTH,
    Inventory,
    parse_inventory,
)
from swift.operations.deploy.rings import RingSource, RingUpdate, update_rings
from swift.operations.deploy.state import Secrets, is_secret, is_user
from swift.policy.policy import Policies, Policy
from swift.ring.builder import RingBuilder
from swift.ring.device import DeviceRecord
from swift.ring.ringfile import encode, load_table

_HEADER = "# Adopted by swift-deploy from {}. Secrets are in the state directory beside this file.\n"
_STORAGE_FILES = tuple(f"{kind}-server.conf" for kind in PORTS)
_TEMPAUTH = "filter:tempauth"
#: Options that each host has values of its own for.
_ADDRESSES = ("bind_ip", "metrics_bind_ip", "ring_ip")
#: Options that an inventory sets to other values than they have where a file does not name them.
_OTHER_DEFAULTS = (
    ("app:proxy-server", "account_autocreate", "false"),
    ("app:proxy-server", "local_reads", ""),
    ("object-replicator", "sync_method", RSYNC),
)
#: The server of a file that names none.
_MEMCACHED = f"127.0.0.1:{MEMCACHED_PORT}"
#: File → section → option → value.
Confs = Mapping[str, Sections]
#: Options of a policy that an inventory has as keys of its own.
_POLICY_KEYS = (
    *("name", "default", "policy_type", "ec_type"),
    *("ec_num_data_fragments", "ec_num_parity_fragments"),
)


class AdoptError(ConfigError):
    """A cluster cannot be adopted; the text says why and what to do."""


@dataclass(frozen=True)
class Adopted:
    """An inventory with its secrets and rings; ``notes`` are sentences for the operator."""

    text: str
    inventory: Inventory
    secrets: Secrets
    rings: tuple[RingUpdate, ...]
    notes: tuple[str, ...]


def adopt(swift_dir: str, proxies: Sequence[str], path: str) -> Adopted:
    """Return what an inventory at ``path`` says of the cluster of a configuration directory.

    Nothing is written. ``proxies`` are the addresses of proxies, which no file lists. Raises ``SwiftError``
    and OSError.
    """
    config = read_cluster_config(os.path.join(swift_dir, "swift.conf"))
    policies = Policies.parse(config.sections, source=config.path)
    names = ["account", "container", *(policy.ring_name for policy in policies)]
    builders = {name: _load_builder(swift_dir, name) for name in names}
    confs = {
        name: options
        for name in CONF_FILES
        if name != "swift.conf" and (options := _read_conf(os.path.join(swift_dir, name)))
    }
    users = _users(confs)
    text = "\n".join(_lines(config, policies, builders, confs, users, proxies))
    hashes = config.sections["swift-hash"]
    secrets = Secrets(
        hashes.get("swift_hash_path_prefix", ""),
        hashes.get("swift_hash_path_suffix", ""),
        {f"{user.account}:{user.name}": user.key for user in users.values()},
        swiftauth=_key_lines(swift_dir) if SWIFTAUTH in _pipeline(confs) else "",
        servers=_server_secrets(config),
    )
    everything = "\n".join((text, *_other_conf_lines(confs)))
    plain, secret = _split_options(confs, parse_inventory(tomllib.loads(everything), path), secrets, users)
    text = "\n".join((text, *_other_conf_lines(plain)))
    inventory = parse_inventory(tomllib.loads(text), path)
    rings = tuple(
        RingUpdate(name, builder, encode(builder.table(), f"{name}.ring.gz"), ("adopt",), ())
        for name, builder in builders.items()
    )
    notes = tuple(_notes(inventory, swift_dir))
    return Adopted(text, inventory, replace(secrets, options=secret), rings, notes)


def _server_secrets(config: ClusterConfig) -> str:
    """Return the secrets that sign requests between servers; empty where none are demanded."""
    if config.server_auth.mode == AUTH_OFF:
        return ""
    try:
        read_secrets(config.secret_path)
        with open(config.secret_path, encoding="ascii") as file:
            lines = (line.split() for line in file)
            return "".join(f"{words[0]} {words[1]}\n" for words in lines if words and words[0][0] != "#")
    except FileNotFoundError:
        raise AdoptError(f"{config.secret_path} is missing: copy it from a node")
    except SecretError as error:
        raise AdoptError(f"the secrets of servers cannot be adopted: {error}")


def _load_builder(swift_dir: str, name: str) -> RingBuilder:
    """Return the builder of a ring, if it agrees with the ring file beside it."""
    path, ring = (os.path.join(swift_dir, f"{name}.{suffix}") for suffix in ("builder", "ring.gz"))
    try:
        builder = RingBuilder.load(path)
    except FileNotFoundError:
        raise AdoptError(
            f"{path} is missing: copy it from the machine where rings are made; "
            f"if it is lost, run: swift-ring-builder {path} write_builder"
        )
    if builder.rows is None or builder.devs_changed:
        raise AdoptError(
            f"{path} has changes that wait for a rebalance: rebalance it, and distribute its ring"
        )
    if os.path.exists(ring) and [row.tolist() for row in load_table(ring).rows] != [
        row.tolist() for row in builder.rows
    ]:
        raise AdoptError(
            f"{path} and {ring} differ: use the builder of this ring, or distribute the builder's ring"
        )
    return builder


# --- options ------------------------------------------------------------------------------------------


def _read_conf(path: str) -> Sections:
    """Return the options of a file, or of a directory in its place; none if there is neither."""
    if not os.path.exists(path) and not os.path.isdir(f"{path}.d"):
        return {}
    sections = raw_sections(path)
    for section, options in sections.items():
        if "pipeline" in options:
            options["pipeline"] = " ".join(options["pipeline"].split())
        for name, value in options.items():
            if "\n" in value:
                raise AdoptError(f"{path} [{section}]: {name} has several lines: write it in one")
    for section, name, value in _OTHER_DEFAULTS:
        if section in sections:
            sections[section].setdefault(name, value)
    return sections


def _pipeline(confs: Confs) -> list[str]:
    pipeline = confs.get("proxy-server.conf", {}).get("pipeline:main", {}).get("pipeline", "").split()
    if pipeline and pipeline[-1] != "proxy-server":
        raise AdoptError(f"proxy-server.conf: its pipeline ends with {pipeline[-1]}, not with proxy-server")
    return pipeline


def _key_lines(swift_dir: str) -> str:
    """Return the text of the file with the keys of the cluster's users; raise ``ConfigError``."""
    path = os.path.join(swift_dir, "swiftauth.key")
    read_key_file(path)
    with open(path, encoding="ascii") as file:
        return file.read()


def _users(confs: Confs) -> dict[str, User]:
    """Return the users of tempauth that an inventory can express, by their options."""
    pipeline = _pipeline(confs)
    if pipeline and "tempauth" not in pipeline:
        return {}
    options = confs.get("proxy-server.conf", {}).get(_TEMPAUTH, {})
    users = {
        name: user
        for name, value in options.items()
        if is_user(_TEMPAUTH, name)
        for user in parse_users({name: value}).values()
    }
    return {name: user for name, user in users.items() if user.storage_url is None}


def _split_options(
    confs: Confs, inventory: Inventory, secrets: Secrets, users: Mapping[str, User]
) -> tuple[dict[str, Sections], dict[str, Sections]]:
    """Return the options that an inventory would not write of itself: plain ones, and secret ones."""
    first = (inventory.hosts_of(STORAGE)[0], inventory.hosts_of(PROXY)[0])
    defaults = {
        name: sections
        for host in first
        for name, sections in default_sections(inventory, host, secrets).items()
    }
    addresses = [
        address
        for host in inventory.hosts
        for address in (host.address, host.replication_address, host.proxy_address)
    ]
    plain: dict[str, Sections] = {}
    secret: dict[str, Sections] = {}
    for file, sections in confs.items():
        for section, options in sections.items():
            for name, value in options.items():
                is_address = name in _ADDRESSES and value in addresses
                is_default = defaults.get(file, {}).get(section, {}).get(name) == value
                if is_address or is_default or (section == _TEMPAUTH and name in users):
                    continue
                kept = secret if is_secret(section, name, value) else plain
                kept.setdefault(file, {}).setdefault(section, {})[name] = value
    return plain, secret


# --- the text of the inventory ------------------------------------------------------------------------


def _lines(
    config: ClusterConfig,
    policies: Policies,
    builders: Mapping[str, RingBuilder],
    confs: Confs,
    users: Mapping[str, User],
    proxies: Sequence[str],
) -> Iterator[str]:
    yield _HEADER.format(os.path.dirname(config.path))
    yield "[cluster]"
    for key in ("part_power", "min_part_hours", "overload"):
        values = {name: getattr(builder, key) for name, builder in builders.items()}
        yield f"{key} = {_number(_common(values, key))}"
    if user := _shared(confs, ("proxy-server.conf", *_STORAGE_FILES), "user", "swift"):
        yield f"user = {_text(user)}"
    if config.server_auth.mode != AUTH_OFF:
        yield f"server_auth = {_text(config.server_auth.mode)}"
    yield "\n[storage]"
    replicas = _common({name: builders[name].replicas for name in ("account", "container")}, "replicas")
    yield f"replicas = {_number(replicas)}"
    for kind in PORTS:
        devices = {
            f"{dev['ip']}/{dev['device']} of {name}": dev["port"]
            for name, builder in builders.items()
            if name.partition("-")[0] == kind
            for dev in builder.live_devs
        }
        yield f"{kind}_port = {_common(devices, 'port')}"
    if folder := _shared(confs, _STORAGE_FILES, "devices", "/srv/node"):
        yield f"devices = {_text(folder)}"
    yield from _proxy_lines(confs, users)
    for policy in policies:
        yield from _policy_lines(policy, builders[policy.ring_name].replicas)
    yield from _conf_lines(config)
    yield from _host_lines(builders, proxies)


def _shared(confs: Confs, names: Sequence[str], option: str, default: str) -> str:
    """Return the value that [DEFAULT] of all these files has; an empty text for the default, or several."""
    found = {confs[name].get("DEFAULT", {}).get(option, default) for name in names if name in confs}
    return found.pop() if len(found) == 1 and default not in found else ""


def _proxy_lines(confs: Confs, users: Mapping[str, User]) -> Iterator[str]:
    yield "\n[proxy]"
    port = confs.get("proxy-server.conf", {}).get("DEFAULT", {}).get("bind_port", "")
    if port.isdecimal():
        yield f"port = {port}"
    if pipeline := _pipeline(confs):
        yield f"pipeline = {_text_list(pipeline)}"
    if SWIFTAUTH in _pipeline(confs):
        yield f"auth = {_text(SWIFTAUTH)}"
    if users:
        yield "\n[proxy.users]"
        for user in users.values():
            yield f"{_text(f'{user.account}:{user.name}')} = {_text_list(user.groups)}"
    servers = confs.get("memcache.conf", {}).get("memcache", {}).get("memcache_servers", _MEMCACHED)
    yield "\n[memcached]"
    yield f"servers = {_text_list([each.strip() for each in servers.split(',')])}"


def _common(values: Mapping[str, object], key: str) -> object:
    """Return the value that all rings share."""
    if not values:
        raise AdoptError(f"there is no {key} to adopt: a ring has no devices; add devices first")
    if len(set(values.values())) > 1:
        found = ", ".join(f"{name} has {value}" for name, value in values.items())
        raise AdoptError(f"an inventory has one {key}: {found}")
    return next(iter(values.values()))


def _policy_lines(policy: Policy, replicas: float) -> Iterator[str]:
    yield "\n[[policy]]"
    yield f"name = {_text(policy.name)}"
    yield f"index = {policy.index}"
    if policy.is_default:
        yield "default = true"
    if policy.ec is None:
        yield f"replicas = {_number(replicas)}"
        return
    if policy.ec.duplication != 1:
        raise AdoptError(f"policy {policy.name} has ec_duplication_factor, which an inventory does not have")
    if replicas != policy.ec.data + policy.ec.parity:
        raise AdoptError(
            f"policy {policy.name}: its ring has {replicas:g} replicas, not one for each fragment"
        )
    yield f"data = {policy.ec.data}"
    yield f"parity = {policy.ec.parity}"
    yield f"ec_type = {_text(policy.ec.ec_type)}"


def _conf_lines(config: ClusterConfig) -> Iterator[str]:
    """Yield the options of swift.conf that have no key in an inventory."""
    for section, options in raw_sections(config.path).items():
        is_policy = section.startswith("storage-policy:")
        kept = {
            name: value
            for name, value in options.items()
            if not name.startswith("swift_hash_path_")
            and not (is_policy and name in _POLICY_KEYS)
            and not (section == SERVERS_SECTION and name in ("mode", "secret_file"))
        }
        if kept:
            yield f'\n[conf."swift.conf".{_text(section)}]'
            for name, value in kept.items():
                yield f"{_text(name)} = {_text(value)}"


def _other_conf_lines(confs: Confs) -> Iterator[str]:
    """Yield the options of other files as an inventory has them."""
    for file, sections in confs.items():
        for section, options in sections.items():
            if options:
                yield f"\n[conf.{_text(file)}.{_text(section)}]"
                yield from (f"{_text(name)} = {_text(value)}" for name, value in options.items())


def _host_lines(builders: Mapping[str, RingBuilder], proxies: Sequence[str]) -> Iterator[str]:
    if not proxies:
        raise AdoptError("no file lists the proxies: name each of them with --proxy ADDRESS")
    hosts: dict[str, dict[str, dict[str, DeviceRecord]]] = {}
    for ring, builder in builders.items():
        for dev in builder.live_devs:
            records = hosts.setdefault(dev["ip"], {}).setdefault(dev["device"], {})
            if ring in records:
                raise AdoptError(f"ring {ring} has {dev['ip']}/{dev['device']} twice")
            records[ring] = dev
    for address, disks in hosts.items():
        yield from _storage_host_lines(address, disks, tuple(builders), address in proxies)
    for address in proxies:
        if address not in hosts:
            yield from _host_head(address, '["proxy"]')
            yield "zone = 1"


def _host_head(address: str, roles: str) -> Iterator[str]:
    yield "\n[[host]]"
    yield f"name = {_text(address.replace(':', '-').strip('-'))}"
    yield f"address = {_text(address)}"
    yield f"roles = {roles}"


def _storage_host_lines(
    address: str, disks: Mapping[str, Mapping[str, DeviceRecord]], rings: Sequence[str], is_proxy: bool
) -> Iterator[str]:
    records = {f"{ring}/{name}": dev for name, devs in disks.items() for ring, dev in devs.items()}
    yield from _host_head(address, '["proxy", "storage"]' if is_proxy else '["storage"]')
    replication = _common(
        {name: dev.get("replication_ip") or dev["ip"] for name, dev in records.items()},
        "replication_ip of a host",
    )
    if replication != address:
        yield f"replication_address = {_text(str(replication))}"
    for name, dev in records.items():
        if (dev.get("replication_port") or dev["port"]) != dev["port"]:
            raise AdoptError(
                f"{address}/{name} has another replication_port than port: an inventory has one for both"
            )
    places = [(dev["region"], dev["zone"]) for dev in records.values()]
    region, zone = max(sorted(set(places)), key=places.count)
    yield f"region = {region}"
    yield f"zone = {zone}"
    yield "disks = ["
    for name, devs in sorted(disks.items()):
        yield f"    {{ {', '.join(_disk_keys(name, devs, rings, (region, zone)))} }},"
    yield "]"


def _disk_keys(
    name: str, devs: Mapping[str, DeviceRecord], rings: Sequence[str], place: tuple[int, int]
) -> Iterator[str]:
    yield f"device = {_text(name)}"
    weights = {ring: float(dev["weight"]) for ring, dev in devs.items()}
    if set(devs) == set(rings) and len(set(weights.values())) == 1:
        yield f"weight = {_number(next(iter(weights.values())))}"
    else:
        pairs = ", ".join(f"{ring} = {_number(weight)}" for ring, weight in weights.items())
        yield f"weights = {{ {pairs} }}"
    found = _common(
        {f"{ring}/{name}": (dev["region"], dev["zone"]) for ring, dev in devs.items()}, "zone of a disk"
    )
    if found != place:
        region, zone = next((dev["region"], dev["zone"]) for dev in devs.values())
        yield f"region = {region}, zone = {zone}"


def _text(value: str) -> str:
    """Return a string of TOML, which has no surrogates and no DEL of its own."""
    text = json.dumps(value.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")


def _text_list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _number(value: object) -> str:
    assert isinstance(value, int | float), "rings have numbers"
    return str(int(value)) if value == int(value) else repr(value)


# --- what remains to be done --------------------------------------------------------------------------


def _notes(inventory: Inventory, swift_dir: str) -> Iterator[str]:
    source = RingSource(lambda name: RingBuilder.load(os.path.join(swift_dir, f"{name}.builder")))
    for ring in update_rings(inventory, source, remove=False, go_on=False):
        yield from (f"ring {ring.name}: apply will {change}" for change in ring.changes)
    for name in CONF_FILES:
        path = os.path.join(swift_dir, name)
        if not os.path.exists(path) and not os.path.isdir(f"{path}.d"):
            yield f"{name}: {swift_dir} does not have it; its options on hosts are not adopted, see plan"
    for name in sorted(os.listdir(swift_dir)):
        if name.endswith(".conf") and name not in CONF_FILES:
            yield f"{name}: an inventory does not have this file; it stays on hosts as it is"
