"""Put the units of etc/systemd into their packages, under the names that Debian has for them.

python3 debian/units.py etc/systemd debian
"""

import re
import sys
from pathlib import Path

#: Unit, without its suffix and instance → package; others belong to the longest package name they begin with.
OTHERS = {
    "swift": "swift",
    "swift-cache-verify": "swift-object",
    "swift-health-history": "swift",
    "swift-recon-cron": "swift-object",
    "swift-s3-lifecycle": "swift-proxy",
    "swift-s3-notifier": "swift-proxy",
}
PACKAGES = (
    *("swift-object-expirer", "swift-drive-audit", "swift-proxy"),
    *("swift-account", "swift-container", "swift-object"),
)


def package_of(name: str) -> str:
    """Return the package of a unit."""
    if name in OTHERS:
        return OTHERS[name]
    return next(package for package in PACKAGES if name.startswith(package))


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


main(Path(sys.argv[1]), Path(sys.argv[2]))
