"""swift-object-reconstructor: rebuild lost fragment archives, and bring those in a wrong place home."""

from __future__ import annotations

from swift import green

green.patch()

from swift.cli.comparers import comparer  # noqa: E402
from swift.obj.reconstructor.settings import ObjectReconstructorSettings  # noqa: E402
from swift.obj.reconstructor.task import NAME, ObjectReconstructor  # noqa: E402
from swift.runtime.service.daemonize import run_daemon  # noqa: E402

DAEMON = comparer(
    NAME,
    "Rebuild lost archives of erasure coded policies, and bring strays home.",
    ObjectReconstructorSettings,
    ObjectReconstructor,
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
