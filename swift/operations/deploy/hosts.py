"""Hosts as a deployment reaches them: scripts for ``sh``, sent through the inventory's ssh command.

A script travels on standard input and the words of the command need no quotes. Therefore ``ssh``,
``ip netns exec NAME`` and other wrappers work alike. Nothing of a script is printed: it may have secrets.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import select
import selectors
import shlex
import subprocess
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from swift.base.errors import SwiftError
from swift.operations.deploy.files import ETC, LAYOUT_KEYS, HostFile
from swift.operations.deploy.inventory import ClusterOptions, Host

TIMEOUT_S = 300.0
#: Bytes that a host may print; the states of a thousand files are far fewer.
OUTPUT_MAX = 4 << 20
#: Bytes that it may print of the content of files: rings of a large cluster have a few MiB each.
CONTENT_MAX = 256 << 20
#: Names of units whose services wait for a reload since an interrupted ``apply``.
PENDING = f"{ETC}/.swift-deploy-pending"
#: Digests and paths of the files that ``apply`` wrote, one a line.
RECORD = f"{ETC}/.swift-deploy-files"
_SUFFIX = ".swift-deploy"
#: Added to the name of a file that was there before the first ``apply``.
BEFORE_SUFFIX = ".before-swift-deploy"
_ERROR_CHARS = 300
_ENABLED = ("enabled", "alias", "static", "generated")
_ACTIVE = ("active", "activating", "reloading")
#: Names that a host may report: they are printed, and go into later scripts.
_NAME = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_.:@/-]*")

#: First words of the lines that are read; others may be printed at login.
_ANSWERS = (["file"], ["unit"], ["hash"], ["written"], ["pending"])

#: ``/etc/swift`` may belong to the servers' user, as in some packages. So its links are not followed, and its
#: records are believed only if they are the deploying user's.
_TRUST = r"""
trusted() { [ -f "$1" ] && [ ! -L "$1" ] && [ "$(stat -c %u "$1")" = "$(id -u)" ]; }
"""
_INSPECT = r"""
file() {
    if [ -f "$1" ]; then
        digest=$(sha256sum <"$1") && access=$(stat -c %u:%g:%a "$1") || exit 1
        # Names that share a number are equal.
        if [ "$access" = "$(id -u "$2"):$(getent group "$3" | cut -d: -f3):$4" ]; then
            access=$2:$3:$4
        else
            access=$(stat -c %U:%G:%a "$1")
        fi
        echo "file $1 ${digest%% *} $access"
    fi
}
unit() {
    wanted=$1
    shift
    for name in "$@"; do
        if systemctl cat "$name" >/dev/null 2>&1; then
            enabled=$(systemctl is-enabled "$name" 2>/dev/null)
            active=$(systemctl is-active "$name" 2>/dev/null)
            echo "unit $wanted $name ${enabled:-unknown} ${active:-unknown}"
            return
        fi
    done
}
if trusted {record}; then
    while read -r written path; do
        current=
        [ ! -f "$path" ] || current=$(sha256sum <"$path") || exit 1
        echo "written $path $written ${current%% *}"
    done <{record}
fi
conf=/etc/swift/swift.conf
if [ -f $conf ]; then
    option='^[ \t]*\(swift_hash_path_[a-z]*\)[ \t]*=[ \t]*\(.*[^ \t]\)[ \t]*$'
    digest=$(sed -n "s/$option/\1=\2/p" $conf | sort | sha256sum)
    echo "hash ${digest%% *}"
fi
"""

#: A configuration that stands in a directory is its files in the order of their names.
_READ = r"""
set -eu
content() {
    if [ -f "$1" ]; then
        cat "$1"
        return
    fi
    [ -d "$1" ] && folder=$1 || folder=$1.d
    for part in "$folder"/*.conf; do
        [ ! -f "$part" ] || { cat "$part" && echo; }
    done
}
show() {
    if [ -e "$1" ] || [ -d "$1.d" ]; then
        text=$(content "$1" | base64 | tr -d '\n')
        echo "content $1 ${text:-=}"
    fi
}
"""
_BEGIN = rf"""
set -eu
umask 077
{_TRUST}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# A link in the place of the new file is replaced, not followed.
place() {{
    cp --preserve=mode,ownership --remove-destination "$1" "$2{_SUFFIX}"
    sync "$2{_SUFFIX}"
}}
rename() {{ mv -fT "$1{_SUFFIX}" "$1"; }}
"""
_INSTALL = r"""
if ! getent group {group} >/dev/null; then
    echo "there is no group {group}: install the packages first" >&2
    exit 1
fi
[ -d {etc} ] || install -d -o root -g {group} -m 1770 {etc}
base64 -d <<'END_OF_FILES' | tar -x -o -f - -C "$stage"
{archive}
END_OF_FILES
prepare() {{
    if [ -d "$2" ]; then
        echo "$2 is a directory: move it away" >&2
        exit 1
    fi
    folder=$(dirname "$2")
    [ -d "$folder" ] || install -d -o root -g {group} -m 750 "$folder"
    if [ -f "$2" ] && [ ! -e "$2{before}" ] && ! {{ trusted {record} && grep -qF " $2" {record}; }}; then
        cp -p --remove-destination "$2" "$2{before}"
    fi
    chown "$3" "$stage/$1"
    chmod "$4" "$stage/$1"
    place "$stage/$1" "$2"
}}
"""
#: Lets the layout agent, which runs as the servers' user, replace the files of the layout and no others.
_LET_AGENT_REPLACE = r"""
chmod 1770 {etc}
for file in {etc}/*.ring.gz {etc}/*.builder; do
    [ ! -f "$file" ] || chown --no-dereference {user} "$file"
done
"""
#: Adds units to those that wait for a reload.
_ADD_PENDING = r"""
! trusted {pending} || cat {pending} >"$stage/pending"
printf '%s\n' {units} >>"$stage/pending"
place "$stage/pending" {pending}
rename {pending}
"""
#: Replaces the lines of paths in the record by others.
_KEEP_RECORD = r"""
{{
    ! trusted {record} || while read -r digest path; do
        case ' {paths} ' in *" $path "*) ;; *) echo "$digest $path" ;; esac
    done <{record}
    cat <<'END_OF_LINES'
{lines}
END_OF_LINES
}} | sed '/^$/d' >"$stage/record"
place "$stage/record" {record}
rename {record}
[ -s {record} ] || rm {record}
"""
#: Lets the units write where the configuration says. A reload does not change where a process may write.
_LET_WRITE = r"""
if command -v swift-config >/dev/null; then
    changed=$(swift-config --units | sed -n 's/^Then run: .* try-restart //p')
    [ -z "$changed" ] || { systemctl daemon-reload && systemctl try-restart $changed; }
fi
"""
_REMOVE = r"""
remove() {{
    if [ -e "$1{before}" ]; then mv -fT "$1{before}" "$1"; else rm -f "$1"; fi
    folder=$(dirname "$1")
    case $folder in {etc}/*) rmdir --ignore-fail-on-non-empty "$folder" ;; esac
}}
"""


class HostError(SwiftError):
    """A host cannot be reached, or a step failed there; the text names the host."""


@dataclass(frozen=True)
class FileState:
    """A file as it is on a host."""

    digest: str
    #: user:group:mode
    access: str


@dataclass(frozen=True)
class UnitState:
    """A unit as it is on a host; ``name`` is the one that the host's packages have."""

    name: str
    is_enabled: bool
    is_active: bool


@dataclass(frozen=True)
class HostState:
    """Files and units as they are on a host."""

    files: dict[str, FileState] = field(default_factory=dict)
    units: dict[str, UnitState] = field(default_factory=dict)
    #: SHA-256 of the lines with the hash path values; empty without swift.conf.
    hash_digest: str = ""
    #: Units that still have to reload.
    pending: tuple[str, ...] = ()
    #: Path of each file that ``apply`` wrote → True if the file is there, as it was written.
    written: dict[str, bool] = field(default_factory=dict)


class HostAccess(Protocol):
    """Access of a deployment to its hosts. Methods raise ``HostError``."""

    def inspect(self, host: Host, files: Sequence[HostFile], units: Sequence[str]) -> HostState:
        """Return the state of files and units of a host."""

    def read(self, host: Host, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the content of files of a host; a directory there or ``PATH.d`` stands for it."""

    def install(self, host: Host, files: Sequence[HostFile], pending: Sequence[str]) -> None:
        """Replace files of a host, and record them; ``pending`` are the units that have to reload then."""

    def remove(self, host: Host, paths: Sequence[str]) -> None:
        """Remove recorded files of a host; what was there before the first ``install`` comes back."""

    def switch_units(
        self, host: Host, enable: Sequence[str], disable: Sequence[str], reload: Sequence[str]
    ) -> None:
        """Enable and start units, stop and disable units, and let running ones reload their configuration."""


def state_of(file: HostFile) -> FileState:
    """Return the state that a file has once it is installed."""
    return FileState(hashlib.sha256(file.content).hexdigest(), f"{file.owner}:{file.mode}")


class _OutputTooLong(Exception):
    """A command printed more than it may; it was killed."""


def _communicate(command: Sequence[str], script: bytes, bytes_max: int) -> tuple[int, bytes, bytes]:
    """Run a command with a script on its standard input; return its status, output and errors.

    Raises OSError, ``TimeoutExpired``, ``_OutputTooLong``.
    """
    pipe, deadline = subprocess.PIPE, time.monotonic() + TIMEOUT_S
    with (
        subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe) as process,
        selectors.DefaultSelector() as selector,
    ):
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        printed = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        selector.register(process.stdin, selectors.EVENT_WRITE)
        for fd in printed:
            selector.register(fd, selectors.EVENT_READ)
        rest = memoryview(script)
        try:
            while selector.get_map():
                for key, _events in selector.select(max(0.0, deadline - time.monotonic())):
                    if key.fd not in printed:
                        try:
                            rest = rest[os.write(key.fd, rest[: select.PIPE_BUF]) :]
                        except BrokenPipeError:
                            rest = rest[:0]
                        if not rest:
                            selector.unregister(process.stdin)
                            process.stdin.close()
                        continue
                    data = os.read(key.fd, 1 << 16)
                    printed[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
                    if len(printed[key.fd]) > bytes_max:
                        raise _OutputTooLong
                if time.monotonic() >= deadline:
                    raise subprocess.TimeoutExpired(command, TIMEOUT_S)
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:
            process.kill()
            raise
    output, errors = printed.values()
    return status, bytes(output), bytes(errors)


class RemoteHosts:
    """Hosts that are reached by a command such as ssh."""

    def __init__(self, options: ClusterOptions):
        self._options = options

    def command(self, host: Host) -> list[str]:
        """Return the command that runs a script from its standard input on a host."""
        prefix = [*self._options.ssh, host.target] if host.target else []
        return [*prefix, *(("sudo", "-n") if self._options.sudo else ()), "sh", "-s"]

    def _run(self, host: Host, what: str, script: str, bytes_max: int = OUTPUT_MAX) -> str:
        command = self.command(host)
        try:
            status, output, errors = _communicate(command, script.encode(), bytes_max)
        except OSError as error:
            raise HostError(f"host {host.name}: cannot run {command[0]}: {error.strerror}")
        except subprocess.TimeoutExpired:
            # The error's own text is the command only, but its chain has the script.
            raise HostError(f"host {host.name}: {what} took longer than {TIMEOUT_S:g} s") from None
        except _OutputTooLong:
            raise HostError(f"host {host.name}: {what} printed more than {bytes_max} bytes")
        if status:
            lines = errors.decode(errors="replace").strip().splitlines()
            reason = _printable(lines[-1][:_ERROR_CHARS]) if lines else f"exit code {status}"
            raise HostError(f"host {host.name}: {what} failed: {reason}")
        return output.decode(errors="replace")

    def inspect(self, host: Host, files: Sequence[HostFile], units: Sequence[str]) -> HostState:
        """See ``HostAccess``."""
        lines = [_TRUST, _INSPECT.replace("{record}", RECORD)]
        lines += ["file " + shlex.join((file.path, *file.owner.split(":"), file.mode)) for file in files]
        lines += [f"unit {_full_name(unit)} {shlex.join(_unit_names(unit))}" for unit in units]
        lines.append(f"! trusted {PENDING} || sed 's/^/pending /' {PENDING}")
        lines.append("echo end")
        output = self._run(host, "reading its state", "\n".join(lines))
        return _parse_state(host, output, {_full_name(unit): unit for unit in units})

    def read(self, host: Host, paths: Sequence[str]) -> dict[str, bytes]:
        """See ``HostAccess``."""
        script = "\n".join((_READ, *(f"show {shlex.quote(path)}" for path in paths), "echo end", ""))
        lines = self._run(host, "reading its files", script, CONTENT_MAX).splitlines()
        if lines[-1:] != ["end"]:
            raise HostError(f"host {host.name}: its response is incomplete; is something printed at login?")
        words = [line.split(" ") for line in lines if line.startswith("content ")]
        try:
            return {
                path: b"" if text == "=" else base64.b64decode(text, validate=True)
                for _content, path, text in words
                if path in paths
            }
        except ValueError:
            raise HostError(f"host {host.name}: its response with files is damaged")

    def install(self, host: Host, files: Sequence[HostFile], pending: Sequence[str]) -> None:
        """See ``HostAccess``."""
        group = shlex.quote(self._options.user)
        script = [
            _BEGIN,
            _INSTALL.format(
                group=group, etc=ETC, before=BEFORE_SUFFIX, record=RECORD, archive=_archive(files)
            ),
        ]
        for number, file in enumerate(files):
            words = (str(number), file.path, file.owner, file.mode)
            script.append(f"prepare {shlex.join(words)}")
        if any(file.path == LAYOUT_KEYS for file in files):
            script.append(_LET_AGENT_REPLACE.format(etc=ETC, user=group))
        # An apply that breaks off after this line leaves the reload to the next one.
        if pending:
            script.append(_ADD_PENDING.format(pending=PENDING, units=shlex.join(pending)))
        lines = [f"{state_of(file).digest} {file.path}" for file in files]
        script.append(_record([file.path for file in files], lines))
        script += [f"rename {shlex.quote(file.path)}" for file in files]
        self._run(host, "writing files", "\n".join((*script, "")))

    def remove(self, host: Host, paths: Sequence[str]) -> None:
        """See ``HostAccess``."""
        script = [_BEGIN, _REMOVE.format(etc=ETC, before=BEFORE_SUFFIX)]
        script += [f"remove {shlex.quote(path)}" for path in paths]
        self._run(host, "removing files", "\n".join((*script, _record(paths, ()), "")))

    def switch_units(
        self, host: Host, enable: Sequence[str], disable: Sequence[str], reload: Sequence[str]
    ) -> None:
        """See ``HostAccess``."""
        script = ["set -eu"]
        if disable:
            script.append(f"systemctl disable --now {shlex.join(disable)}")
        if reload or enable:
            script.append(_LET_WRITE)
        if reload:
            script.append(f"systemctl try-reload-or-restart {shlex.join(reload)}")
        if enable:
            script.append(f"systemctl enable --now {shlex.join(enable)}")
        script.append(f"rm -f {PENDING}")
        self._run(host, "starting services", "\n".join((*script, "")))


def _record(paths: Sequence[str], lines: Sequence[str]) -> str:
    """Return the script that takes paths out of the record, and adds lines."""
    return _KEEP_RECORD.format(record=RECORD, paths=" ".join(paths), lines="\n".join(lines))


def _printable(text: str) -> str:
    """Return a host's text without characters that a terminal obeys."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _full_name(unit: str) -> str:
    return unit if unit.endswith((".timer", ".target")) else f"{unit}.service"


def _unit_names(unit: str) -> tuple[str, ...]:
    """Return the names of a unit: the one of Debian's packages, where ours is an alias, and ours."""
    name = _full_name(unit)
    return tuple(dict.fromkeys((name.replace("-server", "", 1), name)))


def _archive(files: Sequence[HostFile]) -> str:
    """Return a tar archive of the files in base64; their names in it are numbers."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for number, file in enumerate(files):
            member = tarfile.TarInfo(str(number))
            member.size = len(file.content)
            member.mode = 0o600
            archive.addfile(member, io.BytesIO(file.content))
    return base64.encodebytes(data.getvalue()).decode().strip()


def _parse_state(host: Host, output: str, units: dict[str, str]) -> HostState:
    files: dict[str, FileState] = {}
    found: dict[str, UnitState] = {}
    written: dict[str, bool] = {}
    digest, pending, is_complete = "", [], False
    for line in output.splitlines():
        words = line.split()
        if words[:1] in _ANSWERS and not all(map(_NAME.fullmatch, words[1:])):
            # Its names would be printed, and be words of scripts.
            raise HostError(
                f"host {host.name}: its response has an odd name: {_printable(line)[:_ERROR_CHARS]}"
            )
        match words:
            case ["file", path, file_digest, access]:
                files[path] = FileState(file_digest, access)
            case ["unit", full_name, name, enabled, active] if full_name in units:
                found[units[full_name]] = UnitState(name, enabled in _ENABLED, active in _ACTIVE)
            case ["hash", digest]:
                pass
            case ["written", path, recorded, *current] if current:
                written[path] = current == [recorded]
            case ["pending", unit]:
                pending.append(unit)
            case ["end"]:
                is_complete = True
    if not is_complete:
        raise HostError(f"host {host.name}: its response is incomplete; is something printed at login?")
    return HostState(files, found, digest, tuple(dict.fromkeys(pending)), written)
