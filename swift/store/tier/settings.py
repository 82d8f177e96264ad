"""The options of ``[cache-tier]`` in object-server.conf, and those that can change at run time."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace

from swift.base.errors import ConfigError
from swift.config.kinds import ABSOLUTE_PATH, COUNT, SECONDS, Kind, choice, integer
from swift.config.schema import Settings, Writes, option
from swift.store.tier.policy import (
    ALWAYS,
    CLASSES,
    MODES,
    SECOND_TOUCH,
    ClassRules,
    Refused,
    Rules,
    check_mode,
)

SECTION = "cache-tier"
_MIB = 1 << 20
_PRIORITY = integer(1, 9)
_PERCENT = integer(0, 100)
_ADMISSION = choice(ALWAYS, SECOND_TOUCH)


def _mode_kind(of: str) -> Kind:
    def parse(text: str) -> str:
        mode = text.strip().lower()
        check_mode(of, mode)
        return mode

    return Kind(" or ".join(MODES), parse)


def owner_of(path: str) -> tuple[int, int] | None:
    """Return the owner of the SSD's directory; None if it is missing."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_uid, found.st_gid


@dataclass(frozen=True)
class TierSettings(Settings):
    """``[cache-tier]``: object server and object daemons of a node read the same section."""

    enabled: bool = option(
        False,
        "Use the cache tier. Changing this needs a restart of the object server and of all object "
        "daemons at once; all other options may be changed while they run.",
    )
    path: str = option(
        "/srv/cache/swift",
        "Directory of its own on the SSD.",
        kind=ABSOLUTE_PATH,
        writes=Writes(when="enabled"),
    )
    state_path: str = option(
        "",
        "Directory in memory that object server and daemons share; it must not outlive a boot. Empty: "
        "/dev/shm/swift-cache-tier-UID, UID being the number of the user to whom ``path`` belongs.",
        kind=ABSOLUTE_PATH,
    )
    size_mb: int = option(10240, "Megabytes of the SSD that may be used.", kind=integer(16))
    classes: tuple[str, ...] = option(
        ("metadata", "hashes", "small-data"), f"Classes of I/O that are on: {', '.join(CLASSES)}."
    )
    metadata_mode: str = option("write-through", "Mode of metadata.", kind=_mode_kind("metadata"))
    metadata_priority: int = option(
        1, "Priority of this class; the class with the lowest number stays longest.", kind=_PRIORITY
    )
    metadata_share: int = option(40, "Percent of the size for metadata.", kind=_PERCENT)
    metadata_admission: str = option(
        ALWAYS, "always, or second-touch: not before the second read.", kind=_ADMISSION
    )
    hashes_mode: str = option(
        "write-through",
        "Mode of suffix hashes; the only one that may be write-back.",
        kind=_mode_kind("hashes"),
    )
    hashes_priority: int = option(2, "See metadata_priority.", kind=_PRIORITY)
    hashes_share: int = option(5, "Percent of the size for suffix hashes.", kind=_PERCENT)
    hashes_admission: str = option(ALWAYS, "See metadata_admission.", kind=_ADMISSION)
    small_data_mode: str = option(
        "write-around", "Mode of whole small bodies.", kind=_mode_kind("small-data")
    )
    small_data_priority: int = option(3, "See metadata_priority.", kind=_PRIORITY)
    small_data_share: int = option(40, "Percent of the size for small bodies.", kind=_PERCENT)
    small_data_admission: str = option(SECOND_TOUCH, "See metadata_admission.", kind=_ADMISSION)
    small_data_max: int = option(65536, "Largest size of a small body, bytes.", kind=integer(1, 16 * _MIB))
    data_mode: str = option("write-invalidate", "Mode of pieces of larger bodies.", kind=_mode_kind("data"))
    data_priority: int = option(4, "See metadata_priority.", kind=_PRIORITY)
    data_share: int = option(15, "Percent of the size for pieces of larger bodies.", kind=_PERCENT)
    data_admission: str = option(SECOND_TOUCH, "See metadata_admission.", kind=_ADMISSION)
    file_handles: bool = option(
        True, "Open bodies by handle, without a walk through directories, where the kernel permits it."
    )
    written_per_day_mb: int = option(
        0,
        "Megabytes that may be written to the SSD in a day; beyond that nothing new is cached. 0: "
        "any number.",
        kind=COUNT,
    )
    retry_interval: float = option(10.0, "Seconds after which a failed SSD is tried again.", kind=SECONDS)
    warm_rate: int = option(
        0, "Objects a second that swift-cache warm reads at most; 0: any number.", kind=COUNT
    )
    scrub_rate: int = option(
        100, "Entries a second that swift-cache verify compares with the disk; 0: any number.", kind=COUNT
    )

    @property
    def state_directory(self) -> str:
        """Directory in memory, of the user of the SSD's directory unless the options name one."""
        owner = owner_of(self.path)
        return self.state_path or f"/dev/shm/swift-cache-tier-{os.geteuid() if owner is None else owner[0]}"

    def check(self) -> None:
        """Raise ``Refused`` for what does not fit together."""
        unknown = [name for name in self.classes if name not in CLASSES]
        if unknown:
            raise Refused(f"{unknown[0]!r} is not a class; there are {', '.join(CLASSES)}")
        for name in CLASSES:
            check_mode(name, getattr(self, f"{_key(name)}_mode"))
        total = sum(getattr(self, f"{_key(name)}_share") for name in self.classes)
        if total > 100:
            raise Refused(f"the shares of the classes make {total} percent")

    def rules(self) -> Rules:
        """Return the rules of every enabled class."""
        return {name: self._rules_of(_key(name)) for name in CLASSES if name in self.classes}

    def _rules_of(self, key: str) -> ClassRules:
        return ClassRules(
            getattr(self, f"{key}_mode"),
            getattr(self, f"{key}_priority"),
            self.size_mb * _MIB * getattr(self, f"{key}_share") // 100,
            getattr(self, f"{key}_admission"),
        )

    def changed(self, values: object) -> TierSettings:
        """With other values of some options, as ``swift-cache`` leaves them in JSON; raises ``Refused``."""
        if not isinstance(values, dict):
            raise Refused("the changes are not a table of options")
        known = {each.name for each in fields(self)} - FIXED
        unknown = [name for name in values if name not in known]
        if unknown:
            raise Refused(f"{unknown[0]!r} cannot be changed while the tier runs")
        texts = {name: _as_text(value) for name, value in values.items()}
        try:
            parsed = TierSettings.parse(texts)
        except ConfigError as error:
            raise Refused(str(error))
        made = replace(self, **{name: getattr(parsed, name) for name in texts})
        made.check()
        return made


#: Options that need a restart.
FIXED = frozenset(("enabled", "path", "state_path"))


def _key(of: str) -> str:
    return of.replace("-", "_")


def _as_text(value: object) -> str:
    """Return the value as text for a configuration file."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def option_of(of: str, what: str) -> str:
    """Return the name of a class's option."""
    return f"{_key(of)}_{what}"
