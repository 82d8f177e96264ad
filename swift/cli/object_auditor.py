"""swift-object-auditor: read every object again and again, and quarantine what is damaged."""

from __future__ import annotations

from swift import green

green.patch()

import argparse  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402

from swift.config.files import parser_of  # noqa: E402
from swift.obj.auditor.settings import ObjectAuditorSettings, temporary_age_s  # noqa: E402
from swift.obj.auditor.task import ALL, NAME, ZERO_BYTE, AuditMode, ObjectAuditor  # noqa: E402
from swift.obj.auditor.watchers import load_watchers  # noqa: E402
from swift.obj.settings import ObjectSettings  # noqa: E402
from swift.obj.stores import make_stores  # noqa: E402
from swift.runtime.daemon import DaemonTask, Schedule  # noqa: E402
from swift.runtime.service.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402
from swift.store.tier.conf import settings_of  # noqa: E402


def _task(parts: DaemonParts, kind: AuditMode) -> ObjectAuditor:
    parser = parser_of(parts.conf_path)

    def conf_of(watcher: str) -> Mapping[str, str]:
        section = f"{NAME}:watcher:{watcher}"
        own = dict(parser.items(section)) if parser.has_section(section) else {}
        return {**parts.conf, **own}

    rsync_timeout = parser.get("object-replicator", "rsync_timeout", fallback=None)
    return ObjectAuditor(
        parts.context,
        kind,
        parts.settings,
        make_stores(
            parts.context, ObjectSettings.parse(parts.conf), parts.storage, tier=settings_of(parts.conf_path)
        ),
        load_watchers(parts.settings.watchers, conf_of, parts.context.telemetry.log),
        temporary_age_s(parts.settings, rsync_timeout),
        selection=parts.selection,
    )


def _only_zero_byte(parts: DaemonParts) -> float:
    """The pace that the command line gives to the quick pass, which is the only one then; 0: it does not."""
    return float(getattr(parts.args, "zero_byte_fps", 0) or 0)


def _main_task(parts: DaemonParts) -> DaemonTask:
    return _task(parts, ZERO_BYTE if _only_zero_byte(parts) else ALL)


def _main_schedule(parts: DaemonParts) -> Schedule:
    settings: ObjectAuditorSettings = parts.settings
    quick = _only_zero_byte(parts)
    return settings.zero_byte_schedule(quick) if quick else settings.schedule


def _companions(parts: DaemonParts) -> Sequence[tuple[DaemonTask, Schedule]]:
    settings: ObjectAuditorSettings = parts.settings
    per_second = settings.zero_byte_files_per_second
    if not per_second or _only_zero_byte(parts):
        return ()
    return ((_task(parts, ZERO_BYTE), settings.zero_byte_schedule(per_second)),)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-z", "--zero_byte_fps", type=int, default=0, help="only look at metadata and sizes, so many a second"
    )


DAEMON = Daemon(
    NAME,
    "object",
    "Read every object again and again, and quarantine what is damaged.",
    ObjectAuditorSettings,
    _main_task,
    _main_schedule,
    _companions,
    _add_arguments,
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
