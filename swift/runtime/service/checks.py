"""Checks of ``--test-config`` beside the text of the configuration: can this machine serve it?

The user must exist, the address must be one of this machine, and the user must be able to write where the
configuration says, also within the sandbox of the unit.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from swift.base.errors import ConfigError
from swift.config.common import ServerSettings, StorageSettings
from swift.config.written import WrittenPath, written_paths
from swift.platform.privileges import drop_privileges, find_user
from swift.runtime.service.services import MAIN_SERVERS, SWIFT_DIR

#: Units of systemd are looked at where it is process 1.
_SYSTEMD = "/run/systemd/system"
_STORAGE_SERVERS = tuple(name for name in MAIN_SERVERS if name != "proxy-server")
_SYSTEMCTL_TIMEOUT_S = 10.0
#: Trees that ProtectSystem=strict leaves writable.
_API_FILE_SYSTEMS = ("/dev", "/proc", "/sys")
#: Property of a unit → trees in whose place it has others, whatever ``ReadWritePaths`` says.
_HIDDEN = {"ProtectHome": ("/home", "/root", "/run/user"), "PrivateTmp": ("/tmp", "/var/tmp")}
#: Trees that the units of this project may write to: /srv has devices, indexes and the cache tier.
UNIT_PATHS = ("/srv", "/var/cache/swift", "/var/lib/swift", "/var/log/swift", "/var/lock")
WRITABLE_PATHS = (*UNIT_PATHS, *_API_FILE_SYSTEMS)

#: Returns the properties of a unit; none where there is no such unit or no systemd.
ShowUnit = Callable[[str], Mapping[str, str]]


def show_unit(unit: str) -> Mapping[str, str]:
    """Return the sandbox of a unit that is enabled or runs, unless this process runs in it."""
    if not os.path.isdir(_SYSTEMD) or "INVOCATION_ID" in os.environ:
        return {}
    names = "ActiveState,UnitFileState,ProtectSystem,ReadWritePaths,ProtectHome,PrivateTmp"
    try:
        done = subprocess.run(
            ["systemctl", "show", f"--property={names}", unit],
            capture_output=True,
            text=True,
            timeout=_SYSTEMCTL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    is_used = found.get("ActiveState") == "active" or found.get("UnitFileState") in ("enabled", "alias")
    return found if is_used else {}


def unit_of(name: str, path: str, swift_dir: str = SWIFT_DIR) -> str:
    """Return the unit that runs a server or daemon with a configuration; empty if none does."""
    folder, file = os.path.split(os.path.abspath(path))
    if folder == os.path.abspath(swift_dir):
        return f"swift-{name}.service"
    if os.path.dirname(folder) == os.path.abspath(swift_dir):
        return f"swift-{name}@{file.removesuffix('.conf')}.service"
    return ""


def machine_problems(
    name: str,
    path: str,
    settings: ServerSettings,
    *,
    listens: bool,
    show: ShowUnit = show_unit,
    swift_dir: str = SWIFT_DIR,
) -> Iterator[str]:
    """Yield why this machine cannot run a server or daemon with a configuration, a sentence each.

    Raises ``ConfigError``.
    """
    if os.geteuid() == 0:
        try:
            find_user(settings.user)
        except ConfigError as error:
            yield f"{path} [DEFAULT] user: {error}"
            return
    if listens:
        yield from _address_problems(path, settings)
    written = list({each.directory: each for each in written_paths(path)}.values())
    if listens and name in _STORAGE_SERVERS and not any(each.has_devices for each in written):
        written.append(WrittenPath(StorageSettings.devices, f"{path} [DEFAULT] devices", has_devices=True))
    failures = _as_user(settings.user, written)
    for each in written:
        if reason := failures.get(each.directory):
            yield f"{each.option}: the user {_user_name(settings)} cannot write to {each.directory}: {reason}"
    unit = unit_of(name, path, swift_dir)
    if unit and (sandbox := show(unit)):
        yield from _sandbox_problems(
            unit, sandbox, [each for each in written if each.directory not in failures]
        )


def _user_name(settings: ServerSettings) -> str:
    return settings.user if os.geteuid() == 0 else "that runs this command"


def _address_problems(path: str, settings: ServerSettings) -> Iterator[str]:
    family = socket.AF_INET6 if ":" in settings.bind_ip else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((settings.bind_ip, 0))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                yield f"{path} [DEFAULT] bind_ip: no interface of this machine has {settings.bind_ip}"
            elif not isinstance(error, socket.gaierror):
                yield f"{path} [DEFAULT] bind_ip: {settings.bind_ip}: {error.strerror}"
            else:
                yield f"{path} [DEFAULT] bind_ip: {settings.bind_ip} is no address"


def _as_user(user: str, written: Iterable[WrittenPath]) -> dict[str, str]:
    """Return why directories cannot be written to by a user: directory → reason."""
    if os.geteuid() != 0:
        return _try_all(written)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            drop_privileges(user)
            with open(writer, "w") as pipe:
                json.dump(_try_all(written), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    found: dict[str, str] = json.loads(text)
    return found


def _try_all(written: Iterable[WrittenPath]) -> dict[str, str]:
    failures = {each.directory: _try_directory(each) for each in written}
    return {directory: reason for directory, reason in failures.items() if reason}


def _try_directory(path: WrittenPath) -> str:
    """Return why a directory cannot be written to; empty if it can. Of devices one is enough."""
    directory = path.directory
    try:
        if not path.has_devices:
            return _try_writing(directory)
        devices = [each.path for each in os.scandir(directory) if each.is_dir()]
    except OSError as error:
        return error.strerror or str(error)
    reasons = [_try_writing(device) for device in devices]
    # A device that fails is no fault of the configuration.
    return reasons[0] if reasons and all(reasons) else ""


def _try_writing(directory: str) -> str:
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".test-config-"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _sandbox_problems(unit: str, sandbox: Mapping[str, str], written: Iterable[WrittenPath]) -> Iterator[str]:
    strict = sandbox.get("ProtectSystem") == "strict"
    allowed = [*sandbox.get("ReadWritePaths", "").split(), *_API_FILE_SYSTEMS]
    hidden = {
        tree: name for name, trees in _HIDDEN.items() if sandbox.get(name, "no") != "no" for tree in trees
    }
    for each in written:
        if tree := next((tree for tree in hidden if is_below(each.directory, [tree])), ""):
            yield (
                f"{each.option}: {unit} has another {tree} ({hidden[tree]}), and what it writes to "
                f"{each.directory} is lost; name a directory elsewhere"
            )
        elif strict and not is_below(each.directory, allowed):
            yield (
                f"{each.option}: {unit} may not write to {each.directory}; "
                "run swift-config --units, then restart the unit"
            )


def is_below(directory: str, allowed: Iterable[str]) -> bool:
    """Return True if a directory is one of those allowed, or below one."""
    resolved = Path(os.path.realpath(directory))
    return any(resolved.is_relative_to(os.path.realpath(path.lstrip("-+"))) for path in allowed)
