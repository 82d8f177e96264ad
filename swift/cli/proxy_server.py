"""swift-proxy-server: run the proxy server in the foreground."""

from __future__ import annotations

from swift.runtime.service.serve import run_server


def main() -> int:
    """Run the command; return the exit code."""
    return run_server("proxy-server")


if __name__ == "__main__":
    raise SystemExit(main())
