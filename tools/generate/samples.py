"""``etc/*.conf-sample`` and the references of options and internal names, from their declarations."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from swift.account.server import AccountSettings
from swift.aio.make import PIPELINE
from swift.base.limits import Limits
from swift.cli.drive_audit import NAME as DRIVE_AUDIT_SECTION
from swift.cli.drive_audit import DriveAuditSettings
from swift.cli.object_relinker import RelinkerSettings
from swift.cluster.memcache import MemcacheSettings
from swift.config.common import (
    AccessLineSettings,
    LogSettings,
    PortSettings,
    PrioritySettings,
    ServerSettings,
    StorageSettings,
    TraceSettings,
)
from swift.config.schema import Settings
from swift.config.unknown import DEFAULT, KNOWN_FILE, KnownOptions, section_key
from swift.container.accounts import ContainerSettings
from swift.http import environkeys, fields
from swift.middleware.keymaster.filter import KeymasterSettings
from swift.middleware.keymaster.kmip import KmipKeymasterSettings
from swift.middleware.keymaster.kms import KmsKeymasterSettings
from swift.middleware.keymaster.vaultclient import VaultKeymasterSettings
from swift.middleware.memcache import CacheSettings
from swift.obj.auditor.settings import DarkDataSettings
from swift.obj.settings import ObjectSettings
from swift.operations.dispersion import SECTION as DISPERSION_SECTION
from swift.operations.dispersion import DispersionSettings
from swift.proxy.factory import PER_POLICY
from swift.proxy.settings import ProxySettings
from swift.runtime.declaration import Daemon
from swift.store.packed.settings import SECTION as PACKED_SECTION
from swift.store.packed.settings import PackedSettings
from swift.store.tier.settings import SECTION as TIER_SECTION
from swift.store.tier.settings import TierSettings
from tools.generate.declared import daemons, filters
from tools.generate.render import Sample, Section, reference_text, sample_text

#: The usual ports of storage servers.
PORTS = {"object": 6200, "container": 6201, "account": 6202}
PROXY_PIPELINE = " ".join(PIPELINE)


def _filter(name: str, *lines: str, with_options: bool = True) -> Section:
    """Return the section of a filter by the name of its entry point."""
    _module, declared = filters()[name]
    settings = (declared.settings,) if with_options and declared.settings is not Settings else ()
    own = declared.sample_lines if with_options else ()
    return Section(f"filter:{declared.section or name}", settings, (f"use = egg:swift#{name}", *own, *lines))


def _storage(
    kind: str, settings: type[Settings], *others: Section, more: tuple[type[Settings], ...] = ()
) -> Sample:
    return Sample(
        f"{kind}-server.conf",
        f"Configuration of the {kind} server of a storage node.",
        (
            Section(
                "DEFAULT",
                (ServerSettings, LogSettings, PrioritySettings, TraceSettings, StorageSettings, *more),
                (f"bind_port = {PORTS[kind]}",),
            ),
            Section("pipeline:main", lines=(f"pipeline = healthcheck recon {kind}-server",)),
            Section(f"app:{kind}-server", (settings, AccessLineSettings), (f"use = egg:swift#{kind}",)),
            *(_filter(name) for name, (_, each) in filters().items() if "storage" in each.servers),
            *(
                Section(daemon.name, (daemon.settings,), daemon.sample_lines)
                for _module, daemon in daemons().values()
                if daemon.server_type == kind and not daemon.conf_name
            ),
            *others,
        ),
    )


PROXY = Sample(
    "proxy-server.conf",
    "Configuration of the proxy server, which clients talk to.",
    (
        Section(
            "DEFAULT",
            (ServerSettings, LogSettings, PrioritySettings, TraceSettings),
            ("bind_port = 8080",),
        ),
        Section("pipeline:main", lines=(f"pipeline = {PROXY_PIPELINE}",)),
        Section("app:proxy-server", (ProxySettings,), ("use = egg:swift#proxy",)),
        *(_filter(name) for name, (_, each) in filters().items() if "proxy" in each.servers),
    ),
)

_ENCRYPTED = (
    "Where proxies encrypt, daemons that read objects (container-sync, s3-lifecycle, s3-notifier) need "
    "keymaster and encryption right before proxy-server, with the options that they have at proxies; they "
    "do nothing to what they cannot decrypt. The expirer, the sharder and the reconciler move and remove "
    "what is stored as it is, and need neither."
)

INTERNAL_CLIENT = Sample(
    "internal-client.conf",
    "The pipeline of daemons and tools that are clients themselves; options as in proxy-server.conf.",
    (
        Section("DEFAULT"),
        Section(
            "pipeline:main",
            lines=("pipeline = catch_errors proxy-logging cache proxy-server",),
            note=_ENCRYPTED,
        ),
        Section(
            "app:proxy-server",
            lines=(
                "use = egg:swift#proxy",
                "account_autocreate = true",
                "allow_account_management = true",
            ),
        ),
        _filter("catch_errors", with_options=False),
        _filter("proxy_logging", with_options=False),
        _filter("memcache", with_options=False),
    ),
)

#: Further options of filters in a daemon's own pipeline.
_IN_OWN_PIPELINE = {"versioned_writes": ("allow_object_versioning = true",)}


def _own_conf(daemon: Daemon) -> Sample:
    """Return the sample of a daemon that has a configuration file of its own."""
    sections = [
        Section("DEFAULT", (ServerSettings, LogSettings, PrioritySettings, StorageSettings)),
        Section(daemon.name, (daemon.settings,), daemon.sample_lines),
    ]
    if daemon.pipeline is not None:
        pipeline = " ".join(("catch_errors proxy-logging cache", *daemon.pipeline, "proxy-server"))
        sections += [
            Section("pipeline:main", lines=(f"pipeline = {pipeline}",), note=_ENCRYPTED),
            *INTERNAL_CLIENT.sections[2:],
            *(_filter(name, *_IN_OWN_PIPELINE.get(name, ()), with_options=False) for name in daemon.pipeline),
        ]
    return Sample(daemon.conf_name, daemon.conf_about, tuple(sections))


SAMPLES = (
    PROXY,
    INTERNAL_CLIENT,
    *(_own_conf(daemon) for _module, daemon in daemons().values() if daemon.conf_name),
    _storage("account", AccountSettings),
    _storage("container", ContainerSettings),
    _storage(
        "object",
        ObjectSettings,
        Section("object-relinker", (RelinkerSettings,)),
        Section(TIER_SECTION, (TierSettings,)),
        Section(PACKED_SECTION, (PackedSettings,)),
        Section("object-auditor:watcher:dark_data", (DarkDataSettings,)),
        more=(PortSettings,),
    ),
    Sample(
        "memcache.conf",
        "memcached servers of all processes of a machine. [filter:cache] of a pipeline overrides it.",
        (Section("memcache", (MemcacheSettings,)),),
    ),
    Sample(
        "dispersion.conf",
        "swift-dispersion-populate and swift-dispersion-report: who asks, and how much is covered.",
        (Section(DISPERSION_SECTION, (DispersionSettings,)),),
    ),
    Sample(
        "drive-audit.conf",
        "swift-drive-audit: where the kernel logs errors of devices, and what is done about them.",
        (
            Section(
                DRIVE_AUDIT_SECTION,
                (DriveAuditSettings,),
                ("# regex_pattern_<n> = <regular expression whose first group is the device>",),
            ),
        ),
    ),
)


def headers_text() -> str:
    """Return the reference of internal headers and environment keys."""
    lines = [
        "# Internal headers and environment keys",
        "",
        "Generated from `swift/http/fields.py` and `environkeys.py` beside it. None of these headers comes",
        "in from clients or goes out to them: the gatekeeper removes them in both directions. A name that",
        "ends in `-` stands for all that begin with it.",
    ]
    for title, group in (("Headers", fields.HEADERS), ("Environment keys", environkeys.ENVIRON)):
        lines += ["", f"## {title}", "", "| name | value | direction | meaning |", "|---|---|---|---|"]
        lines += [f"| `{f.name}` | {f.kind.value} | {f.direction.value} | {f.doc} |" for f in group.values()]
    return "\n".join(lines) + "\n"


def known_text() -> str:
    """Return the names of the options of each section, as ``config.unknown`` reads them."""
    shared = (
        *(ServerSettings, LogSettings, PrioritySettings, TraceSettings),
        *(StorageSettings, PortSettings),
    )
    hashing = frozenset(("swift_hash_path_prefix", "swift_hash_path_suffix"))
    known = {
        "shared": KnownOptions.of(*shared),
        "proxy-server:policy": KnownOptions(PER_POLICY),
        "swift-hash": KnownOptions(hashing),
        "swift-constraints": KnownOptions(frozenset(field.name for field in dataclasses.fields(Limits))),
        "memcache": KnownOptions.of(CacheSettings),
        "keymaster": KnownOptions.of(KeymasterSettings),
        "kms_keymaster": KnownOptions.of(KmsKeymasterSettings),
        "kmip_keymaster": KnownOptions.of(KmipKeymasterSettings),
        "vault_keymaster": KnownOptions.of(VaultKeymasterSettings),
    }
    for section in (section for sample in SAMPLES for section in sample.sections):
        use = next((line.removeprefix("use = ") for line in section.lines if line.startswith("use = ")), "")
        key = section_key(section.heading, use)
        if key != DEFAULT and not key.startswith("pipeline:"):
            known[key] = known.get(key, KnownOptions()) | KnownOptions.of(*section.settings)
    data = {key: options.data() for key, options in sorted(known.items())}
    return json.dumps(data, indent=1) + "\n"


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every generated file below ``root`` with its text."""
    for sample in SAMPLES:
        yield root / "etc" / f"{sample.name}-sample", sample_text(sample)
    yield root / "doc" / "reference" / "configuration.md", reference_text(SAMPLES)
    yield root / "doc" / "reference" / "headers.md", headers_text()
    yield root / "swift" / "config" / KNOWN_FILE.name, known_text()
