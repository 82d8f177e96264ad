"""Every command of the distribution, said once: ``setup.py`` installs them, ``cli.manpages`` describes them.

It imports nothing, because ``setup.py`` reads it before anything is installed.
"""

SERVERS = ("proxy", "account", "container", "object")
DAEMONS = (
    "object_auditor",
    "object_expirer",
    "object_replicator",
    "object_reconstructor",
    "object_updater",
    "container_updater",
    "container_auditor",
    "container_reconciler",
    "container_sharder",
    "container_sync",
    "account_auditor",
    "account_reaper",
    "account_replicator",
    "container_replicator",
    "s3_lifecycle",
    "s3_notifier",
)
#: Command → module below ``swift.cli`` in which its ``main`` is.
TOOLS = {
    "swift-aio": "aio",
    "swift-ring-builder": "ring_builder",
    "swift-ring-builder-safe": "ring_builder",
    "swift-ring-builder-analyzer": "ring_builder_analyzer",
    "swift-ring-composer": "ring_composer",
    "swift-init": "init",
    "swift-reload": "reload",
    "swift-config": "show_config",
    "swift-oldies": "oldies",
    "swift-orphans": "orphans",
    "swift-get-nodes": "get_nodes",
    "swift-object-info": "object_info",
    "swift-account-info": "account_info",
    "swift-container-info": "container_info",
    "swift-recon": "recon",
    "swift-recon-cron": "recon_cron",
    "swift-dispersion-populate": "dispersion_populate",
    "swift-dispersion-report": "dispersion_report",
    "swift-drive-audit": "drive_audit",
    "swift-account-audit": "account_audit",
    "swift-object-relinker": "object_relinker",
    "swift-container-deleter": "container_deleter",
    "swift-form-signature": "form_signature",
    "swift-reconciler-enqueue": "reconciler_enqueue",
    "swift-manage-shard-ranges": "manage_shard_ranges",
    "swift-health": "health",
    "swift-quarantine": "quarantine",
    "swift-future": "future",
    "swift-load": "load",
    "swift-plan": "plan",
    "swift-cache": "cache",
}
MODULES = {
    **TOOLS,
    **{f"swift-{name}-server": f"{name}_server" for name in SERVERS},
    **{f"swift-{name.replace('_', '-')}": name for name in DAEMONS},
}
#: What ``console_scripts`` are made of.
COMMANDS = {name: f"swift.cli.entry:{name.replace('-', '_')}" for name in MODULES}
