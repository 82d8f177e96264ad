"""``egg:swift#proxy``: the proxy application from its configuration section."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from swift.base.errors import ConfigError
from swift.cluster.rings import Rings
from swift.compose import (
    cluster_of,
    connections_to_nodes,
    local_reads_of,
    merged,
    process_of,
    telemetry_of,
    traced,
)
from swift.config.files import read_sections
from swift.config.schema import Conf
from swift.ec.codec import Codec, CodecError
from swift.policy.policy import Policies
from swift.proxy.app import ProxyApp
from swift.proxy.context import ProxyContext
from swift.proxy.settings import ProxySettings
from swift.ring.device import Device
from swift.telemetry.telemetry import Telemetry

#: The library reads it whenever it writes a fragment.
_LEGACY_CRC = "LIBERASURECODE_WRITE_LEGACY_CRC"
_POLICY_SECTION = re.compile(r"proxy-server:policy:(\d+)\Z")
#: Options that a policy section may override (proxy.md §5).
PER_POLICY = frozenset(
    (
        "sorting_method",
        "read_affinity",
        "write_affinity",
        "write_affinity_node_count",
        "write_affinity_handoff_delete_count",
        "rebalance_missing_suppression_count",
        "concurrent_gets",
        "concurrency_timeout",
        "concurrent_ec_extra_requests",
    )
)


def app_factory(global_conf: Conf, **local_conf: str) -> ProxyApp:
    """Make the proxy; raises ``ConfigError`` naming the option."""
    conf = merged(global_conf, local_conf)
    cluster = cluster_of(conf)
    telemetry = telemetry_of(conf, name="proxy-server")
    texts = {key: value for key, value in conf.items() if isinstance(value, str)}
    settings = ProxySettings.parse(texts, source="[app:proxy-server]")
    if settings.write_legacy_ec_crc is not None:
        os.environ[_LEGACY_CRC] = "1" if settings.write_legacy_ec_crc else ""
    _report_unusable_codes(cluster.policies, telemetry)
    swift_dir = conf.get("swift_dir", "/etc/swift")
    rings = Rings(swift_dir, cluster.policies, report=telemetry.log.error)
    # In memory from the start: a ring that is damaged before its first use would cost requests.
    process_of(conf).problems.extend(rings.load())
    network = connections_to_nodes(conf, telemetry, rings.is_only_server)
    local = local_reads_of(settings.local_reads, network, conf, telemetry) if settings.local_reads else None
    context = ProxyContext(
        settings=settings,
        rings=rings,
        transport=traced(conf, network if local is None else local),
        is_own=None if local is None else local.is_own,
        policies=cluster.policies,
        limits=cluster.config.limits,
        hasher=cluster.config.hasher,
        telemetry=telemetry,
        policy_settings=_policy_settings(conf, texts),
    )
    process_of(conf).node_health = context.health
    if local and not any(map(local.has_endpoint, _devices_of(rings))):
        telemetry.log.warning(
            "local_reads is without effect: no ring has a device at the address and port of "
            f"{', '.join(settings.local_reads)}"
        )
    for index in context.policy_settings:
        if cluster.policies.get(index) is None:
            raise ConfigError(f"[proxy-server:policy:{index}] is for a policy that does not exist")
    return ProxyApp(context, process_of(conf).info, swift_dir=swift_dir)


def _devices_of(rings: Rings) -> Iterator[Device]:
    return (device for view in rings.readable_views() for device in view.devices if device is not None)


def _report_unusable_codes(policies: Policies, telemetry: Telemetry) -> None:
    """Log the policies that this machine cannot serve; the others are served."""
    for policy in policies:
        if policy.ec is not None:
            try:
                Codec(policy.ec.ec_type, policy.ec.data, policy.ec.parity)
            except CodecError as error:
                telemetry.log.error(f"policy {policy.name} cannot be served by this proxy: {error}")


def _policy_settings(conf: Conf, texts: dict[str, str]) -> dict[int, ProxySettings]:
    path = conf.get("__file__")
    if not path:
        return {}
    found = {}
    for name, values in read_sections(path).items():
        match = _POLICY_SECTION.match(name)
        if match:
            special = {key: value for key, value in values.items() if key in PER_POLICY}
            found[int(match[1])] = ProxySettings.parse({**texts, **special}, source=f"[{name}]")
    return found
