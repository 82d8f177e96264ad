"""systemd units of all servers and daemons.

Every server and daemon has a unit that reads ``/etc/swift/<type>-server.conf``, and a template whose
instances read ``/etc/swift/<type>-server/<instance>.conf``. ``swift-daemons.service`` runs all daemons in one
process in their place. ``swift.target`` stands for all of a node. The units are made from the list of
commands, so that none is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from swift.config.declared import daemons
from swift.runtime.service.checks import UNIT_PATHS
from swift.runtime.service.services import MAIN_SERVERS

#: Where packages install commands.
BIN = "/usr/bin"
TARGET = "swift.target"
ALL_DAEMONS = "swift-daemons.service"

#: What a process that serves devices needs of the machine, and nothing else.
SANDBOX = f"""\
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths={" ".join(f"-{path}" for path in UNIT_PATHS)}
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service open_by_handle_at
SystemCallErrorNumber=EPERM
UMask=0022
"""

#: The same of units whose processes place ring files.
RING_SANDBOX = SANDBOX.replace("\nProtectHome", " -/etc/swift\nProtectHome")

UNIT = """\
# Generated from the list of commands; change it with: systemctl edit {unit}
[Unit]
Description=Object storage: {about}{instance}
Documentation=man:swift-{name}(1)
After=network-online.target local-fs.target remote-fs.target
Wants=network-online.target
PartOf={target}
{condition}
[Service]
Type=notify
User=swift
Group=swift
ExecStart={bin}/swift-{name}{arguments}
{reload}KillMode=mixed
TimeoutStopSec=45
Restart=on-failure
RestartSec=2
LimitNOFILE=32768
RuntimeDirectory=swift
RuntimeDirectoryPreserve=yes
{sandbox}
[Install]
WantedBy={target}
{alias}"""

#: Unit → what it says: the target, and what runs now and then, as root because it reads logs and unmounts.
OTHERS = {
    TARGET: """\
# Everything of object storage on this machine: systemctl start swift.target
[Unit]
Description=Object storage: all servers and daemons
Documentation=man:swift-init(1)

[Install]
WantedBy=multi-user.target
""",
    "swift-recon-cron.service": f"""\
[Unit]
Description=Object storage: count what waits, for recon
Documentation=man:swift-recon-cron(1)
ConditionPathExists=/etc/swift/object-server.conf

[Service]
Type=oneshot
User=swift
Group=swift
ExecStart={BIN}/swift-recon-cron /etc/swift/object-server.conf
{SANDBOX}""",
    "swift-recon-cron.timer": """\
[Unit]
Description=Object storage: count what waits every five minutes

[Timer]
OnCalendar=*:0/5
RandomizedDelaySec=30

[Install]
WantedBy=timers.target
""",
    "swift-cache-verify.service": f"""\
[Unit]
Description=Object storage: compare samples of the cache tier with the disks; fails for differences
Documentation=man:swift-cache(1)
ConditionPathExists=/etc/swift/object-server.conf

[Service]
Type=oneshot
User=swift
Group=swift
ExecStart={BIN}/swift-cache verify --every 100
{SANDBOX}""",
    "swift-cache-verify.timer": """\
[Unit]
Description=Object storage: compare samples of the cache tier with the disks every day

[Timer]
OnCalendar=daily
RandomizedDelaySec=3600

[Install]
WantedBy=timers.target
""",
    "swift-health-history.service": f"""\
[Unit]
Description=Object storage: keep the disk usage, and forecast when policies and zones are full
Documentation=man:swift-health(1)
After=network-online.target
Wants=network-online.target
ConditionPathExists=/etc/swift/object.ring.gz

[Service]
Type=oneshot
User=swift
Group=swift
StateDirectory=swift
ExecStart={BIN}/swift-health --history /var/lib/swift/capacity.jsonl --metrics /var/cache/swift/capacity.prom
# A cluster with problems has a forecast, too. With nodes of OpenStack Swift the state is unknown (3).
SuccessExitStatus=1 2 3
{SANDBOX}""",
    "swift-health-history.timer": """\
[Unit]
Description=Object storage: keep the disk usage every 15 minutes

[Timer]
OnCalendar=*:0/15
RandomizedDelaySec=60

[Install]
WantedBy=timers.target
""",
    "swift-drive-audit.service": f"""\
[Unit]
Description=Object storage: unmount devices with errors
Documentation=man:swift-drive-audit(1)
ConditionPathExists=/etc/swift/drive-audit.conf

[Service]
Type=oneshot
ExecStart={BIN}/swift-drive-audit /etc/swift/drive-audit.conf
""",
    "swift-drive-audit.timer": """\
[Unit]
Description=Object storage: look for devices with errors every hour

[Timer]
OnCalendar=hourly
RandomizedDelaySec=300

[Install]
WantedBy=timers.target
""",
}


def _unit(name: str, *, is_template: bool) -> tuple[str, str]:
    is_server = name.endswith("-server")
    conf = name if is_server else daemons()[name].conf_base
    config = f"/etc/swift/{conf}/%i.conf" if is_template else f"/etc/swift/{conf}.conf"
    unit = f"swift-{name}{'@' if is_template else ''}.service"
    # RDO's names.
    alias = f"openstack-swift-{name.removesuffix('-server')}{'@%i' if is_template else ''}.service"
    text = UNIT.format(
        unit=unit.replace("@", "@<instance>"),
        name=name,
        about=name.replace("-", " "),
        instance=" %i" if is_template else "",
        target=TARGET,
        bin=BIN,
        condition=f"ConditionPathExists={config}\n",
        arguments=f" {config}",
        reload=f"ExecReload={BIN}/swift-reload $MAINPID\n" if is_server else "",
        sandbox=SANDBOX if is_server or daemons()[name].server_type != "layout" else RING_SANDBOX,
        alias=f"Alias={alias}\n",
    )
    return unit, text


def _unit_of_all_daemons() -> str:
    files = sorted({daemon.conf_base for daemon in daemons().values()})
    # Any of the files will do; started, it ends the units whose work it does.
    condition = "".join(f"ConditionPathExists=|/etc/swift/{name}.conf\n" for name in files)
    others = " ".join(f"swift-{name}.service" for name in daemons())
    return UNIT.format(
        unit=ALL_DAEMONS,
        name="daemons",
        about="all daemons in one process",
        instance="",
        target=TARGET,
        bin=BIN,
        condition=f"{condition}Conflicts={others}\n",
        arguments="",
        reload="",
        sandbox=RING_SANDBOX,
        alias="",
    )


def units() -> Iterator[tuple[str, str]]:
    """Return every unit with its text."""
    yield ALL_DAEMONS, _unit_of_all_daemons()
    for name in (*MAIN_SERVERS, *daemons()):
        yield _unit(name, is_template=False)
        yield _unit(name, is_template=True)
    yield from OTHERS.items()


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every unit below ``root`` with its text."""
    for unit, text in units():
        yield root / "etc" / "systemd" / unit, text
