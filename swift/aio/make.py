"""Making the files of a cluster: directories, configuration, rings, loop-mounted devices."""

from __future__ import annotations

import base64
import os
import pwd
import secrets
import shutil
from importlib.util import find_spec
from pathlib import Path

from swift.aio.metadatalimits import fitting_limits, measure_attribute_room
from swift.aio.plan import IMAGES, PLAN_FILE, ClusterPlan, daemon_options, parse_ec
from swift.aio.xfs import check_xfs, make_image, mount_image, unmount_image
from swift.base.errors import ConfigError
from swift.cluster.serverauth import make_secret
from swift.config import declared
from swift.config.cluster import SERVERS_SECTION, ServerAuthSettings
from swift.ec.codec import DEFAULT_EC_TYPE, Codec, CodecError, available_types
from swift.identity.clusterkeys import create_key_file
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.ring.builder import RingBuilder
from swift.ring.device import address

#: Sections of the proxy's pipeline; the second proxy-logging logs what the other filters ask for.
PIPELINE = (
    *(each.section for each in declared.filters("proxy").values() if each.default),
    *("proxy-logging", "proxy-server"),
)
#: Section → its options.
_SWITCHES = {
    each.section: "".join(f"{name} = {value}\n" for name, value in each.small_cluster.items())
    for each in declared.filters("proxy").values()
}


def create_cluster(plan: ClusterPlan) -> None:
    """Make a new cluster in an empty or missing directory and remember its plan.

    Raises ``ConfigError`` and OSError, after which the directory is as it was.
    """
    existed = plan.root.exists()
    try:
        plan.root.mkdir(parents=True, exist_ok=True)
        make_cluster(plan)
        plan.save()
    except BaseException:
        for path in plan.root.iterdir() if plan.root.exists() else ():
            _remove(path)
        if not existed and plan.root.exists():
            plan.root.rmdir()
        raise


def remove_cluster(plan: ClusterPlan) -> None:
    """Remove a stopped cluster with its data; raises ``ConfigError`` when other things are beside it."""
    foreign = plan.foreign_entries()
    if foreign:
        raise ConfigError(
            f"{plan.root} holds what is not of a cluster ({', '.join(foreign[:5])}); "
            "nothing was removed, move that away first"
        )
    for path in sorted(plan.root.iterdir(), key=lambda path: path.name == PLAN_FILE):
        # The plan goes last: what is left of a removal that broke off can be removed again.
        _remove(path)
    plan.root.rmdir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def move_cluster(old: ClusterPlan, new: ClusterPlan) -> None:
    """Give a stopped cluster other ports, and its proxy another address: in configuration, rings and plan."""
    moved = {old_port: port for (_, old_port), (_, port) in zip(old.ports(), new.ports(), strict=True)}

    def moved_line(line: str) -> str:
        name, equals, value = line.partition(" = ")
        if name in ("bind_port", "metrics_bind_port") and value.isdigit():
            return f"{name}{equals}{moved.get(int(value), value)}"
        if line == f"bind_ip = {old.ip}" and old.ip != new.ip and conf.name == "proxy-server.conf":
            return f"bind_ip = {new.ip}"
        if name == "memcache_servers":
            return line.replace(f":{old.cache_port}", f":{new.cache_port}")
        return line

    for conf in sorted(new.etc.rglob("*.conf")):
        text = conf.read_text()
        changed = "\n".join(map(moved_line, text.split("\n")))
        if changed != text:
            replace_file(Disk(), str(conf), changed.encode(), mode=conf.stat().st_mode & 0o777)
    for path in sorted(new.etc.glob("*.builder")) if old.base_port != new.base_port else ():
        builder = RingBuilder.load(str(path))
        for device in builder.live_devs:
            port = moved[device["port"]]
            builder.set_info(device["id"], port=port, replication_port=port)
        builder.save(str(path))
        builder.write_ring(str(path.with_suffix(".ring.gz")))
    new.save()


def make_cluster(plan: ClusterPlan) -> None:
    """Create everything that does not exist yet."""
    for path in (plan.root, plan.etc, plan.run, plan.logs, plan.cache):
        path.mkdir(parents=True, exist_ok=True)
    for node in plan.node_numbers():
        plan.devices(node).mkdir(exist_ok=True)
        plan.recon(node).mkdir(exist_ok=True)
    for device in plan.device_paths():
        # Other users of the machine may not read the stored objects.
        device.mkdir(mode=0o700, exist_ok=True)
    _write_configs(plan)
    if not plan.tempauth and not plan.key_file.exists():
        create_key_file(str(plan.key_file))
    if not (plan.etc / "object.ring.gz").exists():
        _make_rings(plan)


def _write_configs(plan: ClusterPlan) -> None:
    swift_conf = f"[swift-hash]\nswift_hash_path_suffix = {plan.hash_suffix}\n"
    policy = "\n[storage-policy:0]\nname = gold\ndefault = yes\n" + _engine(plan, "replication")
    servers = f"\n[{SERVERS_SECTION}]\nmode = require\n"
    text = swift_conf + policy + _ec_policy(plan) + servers + _constraints(plan)
    # Those of an older cluster keep their swift.conf, which demands no signatures.
    _write(plan.etc / ServerAuthSettings.secret_file, f"1 {make_secret()}\n", mode=0o600)
    _write(plan.etc / "swift.conf", text, mode=0o600)
    _write(plan.etc / "proxy-server.conf", _proxy_conf(plan), mode=0o600)
    _write(plan.etc / "internal-client.conf", _internal_client_conf(plan), mode=0o600)
    _write(
        plan.etc / "s3-client.conf",
        _internal_client_conf(plan, ("slo", "versioned_writes", "symlink")),
        mode=0o600,
    )
    for kind in ("account", "container", "object"):
        for node in plan.node_numbers():
            _write(plan.etc / f"{kind}-server" / f"{node}.conf", _storage_conf(plan, kind, node))
    for node in plan.node_numbers():
        _write(plan.etc / "layout-server" / f"{node}.conf", _layout_conf(plan, node))


def _constraints(plan: ClusterPlan) -> str:
    """Return the limits of metadata that fit into the attributes of files here; devices of XFS take all."""
    if plan.xfs:
        return ""
    limits = fitting_limits(measure_attribute_room(plan.root), coded=bool(plan.ec))
    lines = [f"{name} = {value}\n" for name, value in limits.items()]
    return "".join(("\n[swift-constraints]\n", *lines)) if lines else ""


def _ec_policy(plan: ClusterPlan) -> str:
    if not plan.ec:
        return ""
    data, parity = parse_ec(plan.ec)
    return (
        "\n[storage-policy:1]\nname = ec\npolicy_type = erasure_coding\n"
        f"ec_type = {available_types()[0]}\n"
        f"ec_num_data_fragments = {data}\nec_num_parity_fragments = {parity}\n"
        + _engine(plan, "erasure_coding")
    )


def _engine(plan: ClusterPlan, policy_type: str) -> str:
    """Return the option of a policy that names its engine; none for the file engine."""
    return f"diskfile_module = egg:swift#{policy_type}.packed\n" if plan.packed else ""


def check_ec(plan: ClusterPlan) -> None:
    """Raise ``ConfigError`` when the plan's erasure code cannot work here."""
    if not plan.ec:
        return
    data, parity = parse_ec(plan.ec)
    if plan.fragments > plan.disks_in_all:
        raise ConfigError(f"{plan.ec} needs at least {plan.fragments} devices, not {plan.disks_in_all}")
    types = available_types()
    try:
        Codec(types[0] if types else DEFAULT_EC_TYPE, data, parity)
    except CodecError as error:
        raise ConfigError(f"--ec {plan.ec}: {error}")


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=mode)
    path.write_text(text)


def _defaults(plan: ClusterPlan, ip: str, port: int, metrics_port: int, workers: int) -> str:
    user = pwd.getpwuid(os.geteuid()).pw_name
    return (
        f"[DEFAULT]\nbind_ip = {ip}\nbind_port = {port}\nworkers = {workers}\n"
        f"user = {user}\nswift_dir = {plan.etc}\n"
        f"metrics_bind_ip = {plan.storage_ip}\nmetrics_bind_port = {metrics_port}\n"
    )


def _proxy_conf(plan: ClusterPlan) -> str:
    account = plan.user.partition(":")[0]
    # Requests without a signature reach public buckets of the user.
    own = {"s3api": f"anonymous_account = AUTH_{account}\n"}
    if plan.public_console:
        own["console"] = "public = true\n"
    if plan.tempauth:
        filters = [name for name in PIPELINE if name != "console"]
    else:
        filters = ["swiftauth" if name == "tempauth" else name for name in PIPELINE]
    return (
        _defaults(plan, plan.ip, plan.proxy_port, plan.metrics_port("proxy"), plan.proxy_workers)
        + f"""
[pipeline:main]
pipeline = {" ".join(filters)}

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
{_local_reads(plan)}
[filter:cache]
use = egg:swift#memcache
memcache_servers = {address(plan.storage_ip, plan.cache_port)}
memcache_max_connections = 32
"""
        + (_tempauth_section(plan) if plan.tempauth else "")
        + "".join(_plain_filter(name, own.get(name, "")) for name in dict.fromkeys(filters[:-1]))
    )


def _tempauth_section(plan: ClusterPlan) -> str:
    """Return the section with the users."""
    account, _, name = plan.user.partition(":")
    test_users = (
        f"user_{account}_{name}3 = {plan.key}3\n"
        f"user_{account}2_{name}2 = {plan.key}2 .admin\n"
        f"user_admin_admin = {plan.key}admin .admin .reseller_admin\n"
    )
    if not plan.has_test_users:
        test_users = ""
    access_key = f"s3_key_{plan.access_key} = {plan.user} {plan.secret_key}\n" if plan.access_key else ""
    return f"""
[filter:tempauth]
use = egg:swift#tempauth
{_token_key()}user_{account}_{name} = {plan.key} .admin
{test_users}{access_key}"""


def _local_reads(plan: ClusterPlan) -> str:
    """Return the option by which the proxy reads the devices of the only node itself.

    Several nodes stand for several machines, between which there is a network.
    """
    if plan.nodes > 1:
        return ""
    return f"local_reads = {plan.etc / 'object-server' / '1.conf'}\n"


def _internal_client_conf(plan: ClusterPlan, filters: tuple[str, ...] = ()) -> str:
    """Return the pipeline of daemons that are clients themselves.

    ``filters`` are those that they need besides.
    """
    return f"""[DEFAULT]
swift_dir = {plan.etc}

[pipeline:main]
pipeline = {" ".join(("catch_errors", "cache", *filters))} proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true

[filter:catch_errors]
use = egg:swift#catch_errors

[filter:cache]
use = egg:swift#memcache
memcache_servers = {address(plan.storage_ip, plan.cache_port)}
""" + "".join(map(_plain_filter, filters))


def _daemon_section(plan: ClusterPlan, name: str) -> str:
    options: dict[str, object] = {**daemon_options(name)}
    if name == "object-replicator":
        # It needs no daemon beside the servers.
        options["sync_method"] = "ssync"
    if name == "object-expirer":
        options["dequeue_from_legacy"] = "true"
        options["internal_client_conf_path"] = plan.etc / "internal-client.conf"
    if name in (
        "container-reconciler",
        "container-sharder",
        "container-sync",
        "layout-controller",
        "s3-notifier",
    ):
        options["internal_client_conf_path"] = plan.etc / "internal-client.conf"
    if name == "s3-lifecycle":
        options["internal_client_conf_path"] = plan.etc / "s3-client.conf"
    return "".join((f"\n[{name}]\n", *(f"{key} = {value}\n" for key, value in options.items())))


def _plain_filter(name: str, own: str = "") -> str:
    """Return the section of a filter, with its ``own`` options of this cluster.

    None for those that are written elsewhere.
    """
    if name in ("cache", "tempauth"):
        return ""
    return f"\n[filter:{name}]\nuse = egg:swift#{name.replace('-', '_')}\n{_SWITCHES.get(name, '')}{own}"


def _token_key() -> str:
    """Return the options of tokens that need no cache; none without the library."""
    if find_spec("cryptography") is None:
        return ""
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return f"active_fernet_key_id = aio\nfernet_key_aio = {key}\n"


def _daemon_sections(plan: ClusterPlan, server_type: str) -> str:
    """Return the sections of all daemons of a kind of node."""
    daemons = declared.daemons().items()
    return "".join(_daemon_section(plan, name) for name, each in daemons if each.server_type == server_type)


def _layout_conf(plan: ClusterPlan, node: int) -> str:
    user = pwd.getpwuid(os.geteuid()).pw_name
    return (
        f"[DEFAULT]\nuser = {user}\nswift_dir = {plan.etc}\ndevices = {plan.devices(node)}\n"
        f"recon_cache_path = {plan.recon(node)}\n" + _daemon_sections(plan, "layout")
    )


def _storage_conf(plan: ClusterPlan, kind: str, node: int) -> str:
    mount_check = "true" if plan.xfs else "false"
    return (
        _defaults(
            plan, plan.storage_ip, plan.port(kind, node), plan.metrics_port(kind, node), plan.storage_workers
        )
        + f"""devices = {plan.devices(node)}
mount_check = {mount_check}
recon_cache_path = {plan.recon(node)}

[pipeline:main]
pipeline = healthcheck recon {kind}-server

[app:{kind}-server]
use = egg:swift#{kind}

[filter:healthcheck]
use = egg:swift#healthcheck

[filter:recon]
use = egg:swift#recon
recon_lock_path = {plan.recon(node)}
"""
        + _daemon_sections(plan, kind)
    )


def _make_rings(plan: ClusterPlan) -> None:
    rings = {kind: (kind, plan.replicas) for kind in ("account", "container", "object")}
    if plan.ec:
        rings["object-1"] = ("object", plan.fragments)
    for name, (kind, replicas) in rings.items():
        builder = RingBuilder(plan.part_power, replicas, 1)
        for node in plan.node_numbers():
            for device in plan.device_names(node):
                builder.add_device(
                    region=1,
                    zone=node,
                    ip=plan.storage_ip,
                    port=plan.port(kind, node),
                    device=device,
                    weight=100.0,
                )
        builder.rebalance(seed=1)
        builder.save(str(plan.etc / f"{name}.builder"))
        builder.write_ring(str(plan.etc / f"{name}.ring.gz"))


# --- XFS on loop devices ----------------------------------------------------------------------------


def mount_devices(plan: ClusterPlan, *, reserved: bool = False) -> None:
    """Create missing images, their space ``reserved`` at once, and mount them all; raises ``ConfigError``."""
    check_xfs()
    images = plan.root / IMAGES
    images.mkdir(exist_ok=True)
    for target in plan.device_paths():
        image = images / f"{target.name}.img"
        if not image.exists():
            make_image(image, plan.xfs_bytes, reserved=reserved)
        if not os.path.ismount(target):
            mount_image(image, target)
            target.chmod(0o700)


def unmount_devices(plan: ClusterPlan) -> None:
    """Unmount what is mounted; raises ``ConfigError``."""
    for target in plan.device_paths():
        unmount_image(target)
