"""Write ``etc/*.conf-sample`` and the references of options and internal names from their declarations.

python -m swift.cli.samples          write them
python -m swift.cli.samples --check  exit 1 when a file is not what would be written
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from swift.account.auditor import AccountAuditorSettings
from swift.account.reaper import AccountReaperSettings
from swift.account.settings import AccountSettings
from swift.base.limits import Limits
from swift.cli.aio.make import LIFECYCLE_FILTERS, PIPELINE
from swift.cli.dispersion.conf import SECTION as DISPERSION_SECTION
from swift.cli.dispersion.conf import DispersionSettings
from swift.cli.drive_audit import NAME as DRIVE_AUDIT_SECTION
from swift.cli.drive_audit import DriveAuditSettings
from swift.cli.generated import write_or_check
from swift.cli.listeners import PortSettings
from swift.cli.object_relinker import RelinkerSettings
from swift.config.common import (
    AccessLineSettings,
    LogSettings,
    PrioritySettings,
    ServerSettings,
    StorageSettings,
)
from swift.config.render import Sample, Section, reference_text, sample_text
from swift.config.schema import Settings
from swift.config.unknown import DEFAULT, KNOWN_FILE, KnownOptions, section_key
from swift.container.auditor import ContainerAuditorSettings
from swift.container.reconciler.settings import ContainerReconcilerSettings
from swift.container.settings import ContainerSettings
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.sync.settings import ContainerSyncSettings as ContainerSyncDaemonSettings
from swift.container.updater import ContainerUpdaterSettings
from swift.dbsync.settings import ReplicatorSettings
from swift.http import environkeys, fields
from swift.middleware.admission.settings import AdmissionSettings, DeviceAdmissionSettings
from swift.middleware.backend_ratelimit import BackendRatelimitSettings
from swift.middleware.bulk.filter import BulkSettings
from swift.middleware.catch_errors import CatchErrorsSettings
from swift.middleware.cname_lookup import CnameLookupSettings
from swift.middleware.container_sync import ContainerSyncFilterSettings
from swift.middleware.copy import CopySettings
from swift.middleware.crossdomain import CrossdomainSettings
from swift.middleware.dlo import DloSettings
from swift.middleware.domain_remap import DomainRemapSettings
from swift.middleware.encryption.filter import EncryptionSettings
from swift.middleware.etag_quoter import EtagQuoterSettings
from swift.middleware.formpost.filter import FormPostSettings
from swift.middleware.gatekeeper import GatekeeperSettings
from swift.middleware.healthcheck import HealthcheckSettings
from swift.middleware.keymaster.filter import KeymasterSettings
from swift.middleware.keymaster.kmip import KmipKeymasterSettings
from swift.middleware.keymaster.kms import KmsKeymasterSettings
from swift.middleware.keystoneauth.settings import KeystoneauthSettings
from swift.middleware.list_endpoints import ListEndpointsSettings
from swift.middleware.memcache import CacheSettings
from swift.middleware.name_check import NameCheckSettings
from swift.middleware.proxy_logging import ProxyLoggingSettings
from swift.middleware.ratelimit.filter import RatelimitSettings
from swift.middleware.read_only import ReadOnlySettings
from swift.middleware.recon.filter import ReconSettings
from swift.middleware.s3token.settings import S3TokenSettings
from swift.middleware.slo.settings import SloSettings
from swift.middleware.staticweb.filter import StaticWebSettings
from swift.middleware.symlink import SymlinkSettings
from swift.middleware.tempauth.users import TempauthSettings
from swift.middleware.tempurl.filter import TempURLSettings
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.middleware.xprofile import XprofileSettings
from swift.obj.auditor.settings import DarkDataSettings, ObjectAuditorSettings
from swift.obj.expirer.settings import ObjectExpirerSettings
from swift.obj.reconstructor.settings import ObjectReconstructorSettings
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.obj.settings import ObjectSettings
from swift.obj.updater.settings import ObjectUpdaterSettings
from swift.proxy.factory import PER_POLICY
from swift.proxy.settings import ProxySettings
from swift.s3.daemons.lifecycle import LifecycleSettings
from swift.s3.daemons.notifier import NotifierSettings
from swift.s3.settings import S3Settings
from swift.store.tier.settings import SECTION as TIER_SECTION
from swift.store.tier.settings import TierSettings

#: The usual ports of storage servers.
PORTS = {"object": 6200, "container": 6201, "account": 6202}
PROXY_PIPELINE = " ".join(PIPELINE)


def _filter(name: str, entry: str, settings: type[Settings] | None = None, *lines: str) -> Section:
    return Section(f"filter:{name}", (settings,) if settings else (), (f"use = egg:swift#{entry}", *lines))


def _storage(
    kind: str, settings: type[Settings], *daemons: Section, more: tuple[type[Settings], ...] = ()
) -> Sample:
    return Sample(
        f"{kind}-server.conf",
        f"Configuration of the {kind} server of a storage node.",
        (
            Section(
                "DEFAULT",
                (ServerSettings, LogSettings, PrioritySettings, StorageSettings, *more),
                (f"bind_port = {PORTS[kind]}",),
            ),
            Section("pipeline:main", lines=(f"pipeline = healthcheck recon {kind}-server",)),
            Section(f"app:{kind}-server", (settings, AccessLineSettings), (f"use = egg:swift#{kind}",)),
            _filter("healthcheck", "healthcheck", HealthcheckSettings),
            _filter("backend_ratelimit", "backend_ratelimit", BackendRatelimitSettings),
            _filter("device_admission", "device_admission", DeviceAdmissionSettings),
            _filter("recon", "recon", ReconSettings),
            *daemons,
        ),
    )


PROXY = Sample(
    "proxy-server.conf",
    "Configuration of the proxy server, which clients talk to.",
    (
        Section("DEFAULT", (ServerSettings, LogSettings, PrioritySettings), ("bind_port = 8080",)),
        Section("pipeline:main", lines=(f"pipeline = {PROXY_PIPELINE}",)),
        Section("app:proxy-server", (ProxySettings,), ("use = egg:swift#proxy",)),
        _filter("catch_errors", "catch_errors", CatchErrorsSettings),
        _filter("gatekeeper", "gatekeeper", GatekeeperSettings),
        _filter("healthcheck", "healthcheck", HealthcheckSettings),
        _filter("proxy-logging", "proxy_logging", ProxyLoggingSettings),
        _filter("cache", "memcache", CacheSettings),
        _filter("listing_formats", "listing_formats"),
        _filter("etag-quoter", "etag_quoter", EtagQuoterSettings),
        _filter("container_sync", "container_sync", ContainerSyncFilterSettings),
        _filter("bulk", "bulk", BulkSettings),
        _filter("tempurl", "tempurl", TempURLSettings),
        _filter(
            "ratelimit",
            "ratelimit",
            RatelimitSettings,
            "# container_ratelimit_<objects> = <requests a second>",
            "# container_listing_ratelimit_<objects> = <requests a second>",
        ),
        _filter("crossdomain", "crossdomain", CrossdomainSettings),
        _filter("formpost", "formpost", FormPostSettings),
        _filter("s3api", "s3api", S3Settings),
        _filter("s3token", "s3token", S3TokenSettings, "# stands between s3api and keystoneauth"),
        _filter(
            "tempauth",
            "tempauth",
            TempauthSettings,
            "# fernet_key_<id> = <32 bytes in URL-safe base64>",
            "# user_<account>_<user> = <key> [group] [group] [...] [storage_url]",
            "# user_test_tester = <a key of your own> .admin",
        ),
        _filter(
            "keystoneauth",
            "keystoneauth",
            KeystoneauthSettings,
            "# needs auth_token of keystonemiddleware left of it",
            "# <PREFIX>_operator_roles, <PREFIX>_service_roles, <PREFIX>_project_reader_roles = <role>",
        ),
        _filter("admission", "admission", AdmissionSettings),
        _filter("staticweb", "staticweb", StaticWebSettings),
        _filter("container-quotas", "container_quotas"),
        _filter("account-quotas", "account_quotas"),
        _filter("copy", "copy", CopySettings),
        _filter("slo", "slo", SloSettings),
        _filter("dlo", "dlo", DloSettings),
        _filter("versioned_writes", "versioned_writes", VersionedWritesSettings),
        _filter("symlink", "symlink", SymlinkSettings),
        _filter(
            "keymaster",
            "keymaster",
            KeymasterSettings,
            "# encryption_root_secret_<id> = <base64 of 32 bytes or more>",
        ),
        _filter("kms_keymaster", "kms_keymaster", KmsKeymasterSettings, "# key_id_<id> = <key id>"),
        _filter("kmip_keymaster", "kmip_keymaster", KmipKeymasterSettings, "# key_id_<id> = <key id>"),
        _filter("encryption", "encryption", EncryptionSettings),
        _filter("cname_lookup", "cname_lookup", CnameLookupSettings),
        _filter("domain_remap", "domain_remap", DomainRemapSettings),
        _filter("name_check", "name_check", NameCheckSettings),
        _filter("list-endpoints", "list_endpoints", ListEndpointsSettings),
        _filter("read_only", "read_only", ReadOnlySettings),
        _filter("xprofile", "xprofile", XprofileSettings),
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
        _filter("catch_errors", "catch_errors"),
        _filter("proxy-logging", "proxy_logging"),
        _filter("cache", "memcache"),
    ),
)

RECONCILER = Sample(
    "container-reconciler.conf",
    "The container reconciler, and the pipeline by which it moves objects; one for the cluster is enough.",
    (
        Section("DEFAULT", (ServerSettings, LogSettings, PrioritySettings, StorageSettings)),
        Section("container-reconciler", (ContainerReconcilerSettings,)),
        *INTERNAL_CLIENT.sections[1:],
    ),
)

LIFECYCLE = Sample(
    "s3-lifecycle.conf",
    "The daemon that carries out lifecycles and inventories of S3 buckets, and its pipeline; one is enough.",
    (
        Section("DEFAULT", (ServerSettings, LogSettings, PrioritySettings, StorageSettings)),
        Section("s3-lifecycle", (LifecycleSettings,)),
        Section(
            "pipeline:main",
            lines=(
                f"pipeline = catch_errors proxy-logging cache {' '.join(LIFECYCLE_FILTERS)} proxy-server",
            ),
            note=_ENCRYPTED,
        ),
        *INTERNAL_CLIENT.sections[2:],
        _filter("slo", "slo"),
        _filter("versioned_writes", "versioned_writes", None, "allow_object_versioning = true"),
        _filter("symlink", "symlink"),
    ),
)

NOTIFIER = Sample(
    "s3-notifier.conf",
    "The daemon that tells webhooks what happened in S3 buckets, and its pipeline; one is enough.",
    (
        Section("DEFAULT", (ServerSettings, LogSettings, PrioritySettings, StorageSettings)),
        Section("s3-notifier", (NotifierSettings,)),
        *INTERNAL_CLIENT.sections[1:],
    ),
)

SAMPLES = (
    PROXY,
    INTERNAL_CLIENT,
    RECONCILER,
    LIFECYCLE,
    NOTIFIER,
    _storage(
        "account",
        AccountSettings,
        Section("account-replicator", (ReplicatorSettings,)),
        Section("account-auditor", (AccountAuditorSettings,)),
        Section("account-reaper", (AccountReaperSettings,)),
    ),
    _storage(
        "container",
        ContainerSettings,
        Section("container-replicator", (ReplicatorSettings,)),
        Section("container-updater", (ContainerUpdaterSettings,)),
        Section("container-auditor", (ContainerAuditorSettings,)),
        Section("container-sharder", (ContainerSharderSettings,)),
        Section("container-sync", (ContainerSyncDaemonSettings,)),
    ),
    _storage(
        "object",
        ObjectSettings,
        Section("object-replicator", (ObjectReplicatorSettings,)),
        Section("object-reconstructor", (ObjectReconstructorSettings,)),
        Section("object-updater", (ObjectUpdaterSettings,)),
        Section("object-auditor", (ObjectAuditorSettings,)),
        Section(
            "object-expirer",
            (ObjectExpirerSettings,),
            ("# delay_reaping_<account>[/<container>] = <seconds>",),
        ),
        Section("object-relinker", (RelinkerSettings,)),
        Section(TIER_SECTION, (TierSettings,)),
        Section("object-auditor:watcher:dark_data", (DarkDataSettings,)),
        more=(PortSettings,),
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
    """The reference of internal headers and environment keys."""
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
    shared = (ServerSettings, LogSettings, PrioritySettings, StorageSettings, PortSettings)
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
    }
    for section in (section for sample in SAMPLES for section in sample.sections):
        use = next((line.removeprefix("use = ") for line in section.lines if line.startswith("use = ")), "")
        key = section_key(section.heading, use)
        if key != DEFAULT and not key.startswith("pipeline:"):
            known[key] = known.get(key, KnownOptions()) | KnownOptions.of(*section.settings)
    data = {key: options.data() for key, options in sorted(known.items())}
    return json.dumps(data, indent=1) + "\n"


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Every generated file below ``root`` with its text."""
    for sample in SAMPLES:
        yield root / "etc" / f"{sample.name}-sample", sample_text(sample)
    yield root / "doc" / "reference" / "configuration.md", reference_text(SAMPLES)
    yield root / "doc" / "reference" / "headers.md", headers_text()
    yield root / "swift" / "config" / KNOWN_FILE.name, known_text()


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check; 0 when all is as it should be."""
    return write_or_check("swift.cli.samples", __doc__, files, argv)


if __name__ == "__main__":
    raise SystemExit(main())
