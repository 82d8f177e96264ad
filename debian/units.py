"""Put the units of etc/systemd into their packages, under the names that Debian has for them.

python3 debian/units.py etc/systemd debian
"""

import re
import sys
from pathlib import Path

#: Commands and units outside the package whose name theirs begins with.
OTHERS = {
    "swift-aio": "swift-aio",
    "swift-cache": "swift-object",
    "swift-cache-verify": "swift-object",
    "swift-container-deleter": "swift",
    "swift-daemons": "swift",
    "swift-load": "swift-tools",
    "swift-manage-shard-ranges": "swift-container",
    "swift-plan": "swift-tools",
    "swift-recon-cron": "swift-object",
    "swift-reconciler-enqueue": "swift-container",
    "swift-s3-lifecycle": "swift-proxy",
    "swift-s3-notifier": "swift-proxy",
    "swift-usage": "swift-account",
}
PACKAGES = (
    *("swift-object-expirer", "swift-drive-audit", "swift-proxy"),
    *("swift-account", "swift-container", "swift-object", "swift"),
)


def package_of(name: str) -> str:
    """Return the package of a command or unit."""
    return OTHERS.get(name) or next(package for package in PACKAGES if name.startswith(package))


def main(source: Path, debian: Path) -> None:
    """Copy each unit to ``debian/<package>/lib/systemd/system``."""
    for unit in sorted(source.iterdir()):
        base, at, suffix = re.fullmatch(r"([^@.]+)(@?)(\..+)", unit.name).groups()
        package, text, name = package_of(base), unit.read_text(), base.removesuffix("-server")
        if name != base:
            instance = f"{at}%i" if at else ""
            text = text.replace("\nAlias=", f"\nAlias={base}{instance}{suffix} ", 1)
        place = debian / package / "lib/systemd/system"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}{at}{suffix}").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
