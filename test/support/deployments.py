"""Configurations of deployment projects: their sections, options and pipelines, with small values.

Taken from the templates of openstack-helm (swift/values.yaml), swift-operator (templates/swiftproxy and
templates/swiftstorage), kolla-ansible (roles/swift/templates), the juju charms and puppet-swift.
"""

from configparser import RawConfigParser

SERVERS = ("account", "container", "object")
#: The daemons that the projects start, by the server whose configuration they read.
DAEMONS = {
    "account": ("account-auditor", "account-reaper", "account-replicator"),
    "container": ("container-auditor", "container-replicator", "container-sync", "container-updater"),
    "object": ("object-auditor", "object-reconstructor", "object-replicator", "object-updater"),
}
HELM_LOGGING = {
    "loggers": {"keys": "root,swift"},
    "handlers": {"keys": "console"},
    "formatters": {"keys": "simple"},
    "logger_root": {"level": "INFO", "handlers": "console"},
    "logger_swift": {"level": "INFO", "handlers": "console", "qualname": "swift", "propagate": "0"},
    "handler_console": {"class": "StreamHandler", "formatter": "simple", "args": "(sys.stdout,)"},
    "formatter_simple": {
        "format": "%%(asctime)s %%(levelname)s [%%(process)d] %%(name)s: %%(message)s",
        "datefmt": "%Y-%m-%d %H:%M:%S",
    },
}
STATSD = {"log_statsd_host": "127.0.0.1", "log_statsd_port": "8125", "log_statsd_default_sample_rate": "1"}
KEYSTONE = {
    "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
    "auth_url": "http://127.0.0.1:5000",
    "username": "swift",
    "password": "secret",
    "project_name": "service",
    "delay_auth_decision": "True",
}
CEILOMETER = {
    "paste.filter_factory": "ceilometermiddleware.swift:filter_factory",
    "url": "rabbit://u:p@127.0.0.1:5672",
    "driver": "messagingv2",
    "topic": "notifications",
    "log_level": "WARN",
}
#: The names that the projects give to filters with other entry points.
ENTRY_POINTS = {"keystone": "keystoneauth", "cache": "memcache", "proxy-logging": "proxy_logging"}


def _helm(server):
    default = {"log_name": f"{server}-server", "log_facility": "", "log_address": "", "workers": "2"}
    return default, {
        **HELM_LOGGING,
        f"{server}-replicator": {"concurrency": "2"},
        **({"container-updater": {"concurrency": "2"}} if server == "container" else {}),
    }


def _operator(server):
    return {}, {"filter:xprofile": {"use": "egg:swift#xprofile"}}


def _kolla(server):
    default = {
        "log_udp_host": "127.0.0.1",
        "log_udp_port": "5140",
        "log_name": f"swift-{server}-server",
        "log_facility": "local0",
    }
    return default, {f"{server}-replicator": {"sync_module": "{replication_ip}:{meta}:" + server}}


def _charm(server):
    app = {"container": {"allow_versions": "true"}, "object": {"threads_per_disk": "4"}}.get(server, {})
    return STATSD, {f"app:{server}-server": app, "object-sync": {}}


def _puppet(server):
    app = {f"set {name}": "LOG_LOCAL1" for name in ("log_name", "log_facility")}
    return {"log_address": "/dev/log", **STATSD}, {
        f"app:{server}-server": {**app, "set log_requests": "true", "splice": "False"},
        f"{server}-auditor": {"disk_chunk_size": "65536"},
    }


#: Each project's storage servers: its own options of [DEFAULT] and sections, and its filters.
STORAGE = {
    "openstack-helm": (_helm, "healthcheck recon"),
    "swift-operator": (_operator, "healthcheck recon"),
    "kolla-ansible": (_kolla, ""),
    "juju": (_charm, "recon"),
    "puppet-swift": (_puppet, "healthcheck recon"),
}
#: Each project's proxy: its pipeline and its own sections.
PROXIES = {
    "openstack-helm": (
        "catch_errors gatekeeper healthcheck proxy-logging cache listing_formats container_sync bulk "
        "ratelimit authtoken keystoneauth copy container-quotas account-quotas slo dlo versioned_writes "
        "symlink proxy-logging",
        {
            **HELM_LOGGING,
            "filter:authtoken": {
                **KEYSTONE,
                "memcache_security_strategy": "ENCRYPT",
                "memcache_secret_key": "x",
                "service_token_roles_required": "true",
            },
            "filter:keystoneauth": {
                "operator_roles": "admin,member,swiftoperator",
                "reseller_prefix": "AUTH_",
                "reseller_admin_role": "ResellerAdmin",
            },
            "filter:versioned_writes": {"allow_versioned_writes": "true"},
        },
    ),
    "swift-operator": (
        "catch_errors gatekeeper healthcheck proxy-logging cache listing_formats container_sync bulk tempurl "
        "ratelimit formpost authtoken s3api s3token keystone staticweb copy container-quotas account-quotas "
        "slo dlo versioned_writes proxy-logging",
        {
            "filter:authtoken": {**KEYSTONE, "auth_plugin": "password"},
            "filter:keystone": {
                "operator_roles": "admin, SwiftOperator",
                "cache": "swift.cache",
                "reseller_prefix": "AUTH_",
                "system_reader_roles": "SwiftSystemReader",
                "project_reader_roles": "SwiftProjectReader",
            },
            "filter:cache": {"tls_enabled": "false"},
            "filter:s3token": {"auth_uri": "http://127.0.0.1:5000/v3"},
        },
    ),
    "kolla-ansible": (
        "catch_errors gatekeeper healthcheck cache container_sync bulk ratelimit authtoken keystoneauth slo "
        "dlo ceilometer",
        {
            "filter:authtoken": {**KEYSTONE, "auth_uri": "http://127.0.0.1:5000"},
            "filter:keystoneauth": {"operator_roles": "admin,_member_,ResellerAdmin"},
            "filter:ceilometer": {**CEILOMETER, "control_exchange": "swift"},
        },
    ),
    "juju": (
        "ceilometer catch_errors gatekeeper healthcheck proxy-logging cache container_sync bulk tempurl "
        "ratelimit formpost authtoken s3api s3token keystoneauth staticweb copy container-quotas "
        "account-quotas slo dlo versioned_writes symlink proxy-logging",
        {
            "filter:authtoken": {**KEYSTONE, "signing_dir": "/var/cache/swift", "cache": "swift.cache"},
            "filter:keystoneauth": {"operator_roles": "Member,Admin"},
            "filter:slo": {"max_manifest_size": "536870912", "max_manifest_segments": "1000"},
            "filter:s3token": {"auth_uri": "http://127.0.0.1:35357", "auth_version": "3"},
            "filter:ceilometer": CEILOMETER,
        },
    ),
}


def storage_conf(project, server, default):
    """Return the sections of a project's storage server; ``default`` has the machine's options."""
    make, filters = STORAGE[project]
    own_default, own = make(server)
    sections = {
        "DEFAULT": {**own_default, **default},
        "pipeline:main": {"pipeline": f"{filters} {server}-server".strip()},
        f"app:{server}-server": {"use": f"egg:swift#{server}"},
        **{f"filter:{name}": {"use": f"egg:swift#{name}"} for name in filters.split()},
        **{daemon: {} for daemon in DAEMONS[server]},
    }
    return _merge(sections, own)


def proxy_conf(project, default):
    """Return the sections of a project's proxy."""
    pipeline, own = PROXIES[project]
    sections = {
        "DEFAULT": {"log_headers": "false", "user": "root", **default},
        "pipeline:main": {"pipeline": f"{pipeline} proxy-server"},
        "app:proxy-server": {
            "use": "egg:swift#proxy",
            "account_autocreate": "true",
            "allow_account_management": "true",
        },
    }
    for name in dict.fromkeys(pipeline.split()):
        if "paste.filter_factory" not in own.get(f"filter:{name}", {}):
            entry_point = ENTRY_POINTS.get(name, name.replace("-", "_"))
            sections[f"filter:{name}"] = {"use": f"egg:swift#{entry_point}"}
    return _merge(sections, own)


def _merge(sections, own):
    return {name: {**sections.get(name, {}), **own.get(name, {})} for name in {**sections, **own}}


def write_conf(path, sections):
    """Write sections as an INI file."""
    parser = RawConfigParser(default_section="")
    parser.optionxform = str
    parser.read_dict(sections)
    with open(path, "w", encoding="utf-8") as file:
        parser.write(file)
