"""The ports of a cluster on one machine, and the check that they are free.

It needs Python alone: ``bin/swift-aio`` runs it before it installs anything.
"""

import argparse
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PROXY_PORT, BASE_PORT, CACHE_PORT, NODES = 8080, 6200, 11311, 4
LOOPBACK = "127.0.0.1"
#: Every node gets this many ports: object, container, account, and the metrics page of each.
PORTS_PER_NODE = 10
METRICS_OFFSET = 3
OFFSETS = {"object": 0, "container": 1, "account": 2}
OPTIONS = ("--port", "--base-port", "--cache-port")
#: More ports than these are only counted.
NAMED_MAX = 3


def storage_ip(ip: str) -> str:
    """Return where storage servers, cache and metrics listen: on loopback, whatever the proxy's address is.

    They do not authenticate requests.
    """
    return ip if ip == "::1" or ip.startswith("127.") else LOOPBACK


def listeners(
    ip: str, proxy_port: int, base_port: int, cache_port: int, nodes: int
) -> Iterator[tuple[str, str, int]]:
    """Name, address and port of everything that listens."""
    inner = storage_ip(ip)
    yield "cache", inner, cache_port
    for node in range(1, nodes + 1):
        for kind in ("account", "container", "object"):
            yield f"{kind}-{node}", inner, base_port + PORTS_PER_NODE * node + OFFSETS[kind]
    yield "proxy", ip, proxy_port
    yield "metrics of proxy", inner, base_port
    for node in range(1, nodes + 1):
        for kind in ("account", "container", "object"):
            port = base_port + PORTS_PER_NODE * node + OFFSETS[kind] + METRICS_OFFSET
            yield f"metrics of {kind}-{node}", inner, port


def port_is_free(ip: str, port: int) -> bool:
    """Return True if nothing listens there now."""
    with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((ip, port))
        except OSError:
            return False
    return True


def _is_forbidden(ip: str, port: int) -> bool:
    """Return True if this user may not listen on a port."""
    with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as sock:
        try:
            sock.bind((ip, port))
        except PermissionError:
            return True
        except OSError:
            return False
    return False


def _option(name: str) -> str:
    """Return the option that chooses the port of a listener."""
    return {"cache": "--cache-port", "proxy": "--port"}.get(name, "--base-port")


def _other_ports(rows: Sequence[tuple[str, str, int]], option: str) -> str:
    """Return the option with a value whose ports are free, if there is one."""
    mine = [(ip, port) for name, ip, port in rows if _option(name) == option]
    used = {port for _name, _ip, port in rows}
    for shift in range(1000, 50_001, 1000):
        if all(
            port + shift <= 65_535 and port + shift not in used and port_is_free(ip, port + shift)
            for ip, port in mine
        ):
            return f"{option} {min(port for _ip, port in mine) + shift}"
    return option


def taken_ports_message(found: Iterator[tuple[str, str, int]]) -> str:
    """Return a sentence about ports that something listens on, with free ones; empty when all are free."""
    rows = list(found)
    busy = [row for row in rows if not port_is_free(row[1], row[2])]
    if not busy:
        return ""
    for name, ip, port in busy:
        if _is_forbidden(ip, port):
            return f"port {port} ({name}) is for root alone; choose another with {_option(name)}"
    named = ", ".join(f"{port} ({name})" for name, _ip, port in busy[:NAMED_MAX])
    rest = f" and {len(busy) - NAMED_MAX} more" if len(busy) > NAMED_MAX else ""
    options = {_option(name) for name, _ip, _port in busy}
    free = [_other_ports(rows, option) for option in OPTIONS if option in options]
    ports = f"port {named} is" if len(busy) == 1 else f"ports {named}{rest} are"
    return f"{ports} taken; choose others, such as {' '.join(free)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Check the ports of ``swift-aio start`` with these arguments; 1 when one is taken, said on stderr.

    Arguments that cannot be used are left to the command itself.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("command", nargs="?")
    parser.add_argument("data", nargs="?", type=Path)
    for option, default in (
        ("--port", PROXY_PORT),
        ("--base-port", BASE_PORT),
        ("--cache-port", CACHE_PORT),
        ("--nodes", NODES),
    ):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--ip", default=LOOPBACK)
    try:
        args, _others = parser.parse_known_args(argv)
        if args.command != "start" or args.data is None or (args.data / "aio.json").exists():
            return 0
        problem = taken_ports_message(
            listeners(args.ip, args.port, args.base_port, args.cache_port, args.nodes)
        )
    except (SystemExit, OSError, OverflowError, ValueError):
        return 0
    if problem:
        print(f"swift-aio: {problem}", file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    raise SystemExit(main())
