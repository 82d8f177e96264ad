"""Changes of a host's files: the diff without secrets, and what the new file no longer has.

Items of the second list have names that ``apply --drop`` takes: ``FILE``, ``FILE/SECTION``,
``FILE/SECTION/OPTION``, ``FILE/SECTION/pipeline/FILTER`` and, for rings, ``FILE/ADDRESS:PORT/DEVICE``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.config.files import parse_raw
from swift.middleware.tempauth.users import parse_users
from swift.operations.deploy.files import ETC, SECRET_PATH, HostFile
from swift.operations.deploy.rings import RingUpdate
from swift.operations.deploy.state import is_secret, is_user
from swift.ring.device import DeviceRecord
from swift.ring.errors import RingError
from swift.ring.ringfile import decode_file
from swift.ring.table import RingTable

_OPTION = re.compile(r"\s*[#;]*\s*([^\s=:#;\[][^=:]*?)\s*[=:]\s*(.*)")
_SECTION = re.compile(r"\s*\[(.*)\]")
#: A section for the options of rsyncd.conf that stand before its modules.
_GLOBAL = "global"

#: Options of keymasters; the first ones have no id.
_ROOT_SECRETS = ("encryption_root_secret", "wrapped_root_secret")

#: Characters of the id of a server's secret.
_ID_MAX = 32

#: section → option → value.
_Options = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class FileChange:
    """The replacement of a file."""

    path: str
    #: Lines of a unified diff; secrets are replaced.
    diff: tuple[str, ...]
    #: Names of what the new file no longer has.
    dropped: tuple[str, ...]
    #: Why the file must not be replaced; empty if it may be.
    error: str = ""


def describe_change(
    file: HostFile, found: bytes | None, ring: RingUpdate | None, *, is_written: bool
) -> FileChange:
    """Return what changes when ``file`` replaces the content ``found``; None if there is no file.

    ``ring`` is the ring of a ring file. ``is_written`` tells that ``found`` is what ``apply`` wrote: then
    options that left the inventory are no news, but filters, policies and secrets are.
    """
    if ring is not None:
        return _describe_ring(file, found, ring, is_written=is_written)
    if file.path == SECRET_PATH:
        return _describe_secrets(file, found or b"", is_written=is_written)
    name = name_of(file.path)
    former, text = (data.decode("utf-8", "replace") for data in (found or b"", file.content))
    diff = _masked_diff(former, text, file.path)
    if found is None:
        return FileChange(file.path, diff, ())
    try:
        before, after = _sections(file.path, former), _sections(file.path, text)
    except ConfigError:
        return FileChange(file.path, diff, (name,))
    dropped = list(_dropped(before, after))
    if is_written:
        dropped = [item for item in dropped if "/pipeline/" in item or item.startswith("storage-policy:")]
    lost = _lost_secrets(before, after, is_written=is_written)
    dropped += [item for item in lost if not is_named(item, dropped)]
    return FileChange(file.path, diff, tuple(f"{name}/{item}" for item in dropped))


def name_of(path: str) -> str:
    """Return a path as items have it: without the directory of the configuration."""
    return path.removeprefix(f"{ETC}/")


def is_named(item: str, names: Sequence[str]) -> bool:
    """Return True if an item, or something that it is part of, is one of ``names``."""
    return any(item == name or item.startswith(f"{name.rstrip('/')}/") for name in names)


def _describe_secrets(file: HostFile, found: bytes, *, is_written: bool) -> FileChange:
    """Return the change of the secrets of servers, by their ids; the host's own ones are dropped."""
    before, after = (data.decode("utf-8", "replace").splitlines() for data in (found, file.content))
    diff = [f"-{_id_of(line)} <former secret>" for line in before if line not in after]
    diff += [f"+{_id_of(line)} <new secret>" for line in after if line not in before]
    lost = bool(found) and not is_written and any(line not in after for line in before)
    return FileChange(file.path, tuple(diff), (name_of(file.path),) if lost else ())


def _id_of(line: str) -> str:
    word = line.split()[0] if " " in line.strip() else ""
    return word if word.isprintable() and len(word) <= _ID_MAX else "?"


# --- configuration files ------------------------------------------------------------------------------


def _sections(path: str, text: str) -> _Options:
    """Return the options of a file. Raises ``ConfigError``."""
    if path.endswith("/memcached.conf"):
        lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and line[0] != "#"]
        return {"options": {words[0]: " ".join(words[1:]) for words in lines}}
    if path.endswith("/rsyncd.conf"):
        text = f"[{_GLOBAL}]\n{text}"
    return parse_raw(text, path)


def _dropped(former: _Options, new: _Options) -> Iterator[str]:
    for section, options in former.items():
        if section not in new:
            if options:
                yield section
            continue
        kept = new[section]
        users = {name for name in options if is_user(section, name)}
        if users and not _has_users(options, kept):
            yield from (f"{section}/{name}" for name in users if name not in kept)
        for name, value in options.items():
            if name == "pipeline" and name in kept:
                filters = kept[name].split()
                yield from (f"{section}/pipeline/{each}" for each in value.split() if each not in filters)
            elif name not in kept and name not in users:
                yield f"{section}/{name}"
            elif (name == "use" or name.startswith("paste.")) and value != kept[name]:
                # Another filter or application stood there.
                yield f"{section}/{name}"


def _lost_secrets(former: _Options, new: _Options, *, is_written: bool) -> Iterator[str]:
    """Yield secrets that no file has any more: they cannot be made again.

    Those that ``apply`` wrote may change, except root secrets: without them nothing can be decrypted.
    """
    for section, options in former.items():
        for name, value in options.items():
            if is_user(section, name) or not is_secret(section, name, value):
                continue
            found = new.get(section, {}).get(name)
            may_change = is_written and not name.startswith(_ROOT_SECRETS)
            if found is None or (found != value and not may_change):
                yield f"{section}/{name}"


def _has_users(former: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Return True if all users of tempauth are there, however their options are spelled."""
    try:
        return parse_users(former).keys() <= parse_users(new).keys()
    except ConfigError:
        return False


def _masked_diff(former: str, new: str, path: str) -> tuple[str, ...]:
    """Return a unified diff; values of secrets are replaced by words that tell whether they change."""
    before, after = _secrets_of(former), _secrets_of(new)
    lines = _masked_lines(former, _words(before, after, "<former secret>"))
    masked = _masked_lines(new, _words(after, before, "<new secret>"))
    return tuple(difflib.unified_diff(lines, masked, path, path, lineterm="", n=1))


#: section, option → value.
_Secrets = dict[tuple[str, str], str]


def _words(own: _Secrets, other: _Secrets, word: str) -> _Secrets:
    """Return the words that stand for secrets: those that differ have words of their own."""
    return {key: "<secret>" if other.get(key) == value else word for key, value in own.items()}


def _parsed_lines(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield each line with its section, option and value; continued lines belong to the option above."""
    section = option = ""
    for line in text.splitlines():
        if header := _SECTION.match(line):
            section, option = header[1], ""
            yield line, section, "", ""
        elif line[:1].isspace() and line.strip() and option:
            yield line, section, option, line.strip()
        elif match := _OPTION.fullmatch(line):
            option = match[1]
            yield line, section, option, match[2]
        else:
            yield line, section, "", ""


def _secrets_of(text: str) -> _Secrets:
    found: _Secrets = {}
    for _line, section, option, value in _parsed_lines(text):
        if option and is_secret(section, option, value):
            key = section, option
            found[key] = found.get(key, "") + value
    return found


def _masked_lines(text: str, words: _Secrets) -> list[str]:
    lines = []
    for line, section, option, value in _parsed_lines(text):
        word = words.get((section, option))
        # The value stands at the end of its line.
        lines.append(line if word is None or not value else line.rstrip()[: -len(value.rstrip())] + word)
    return [line if line.isprintable() else repr(line) for line in lines]


# --- rings --------------------------------------------------------------------------------------------


def _describe_ring(file: HostFile, found: bytes | None, ring: RingUpdate, *, is_written: bool) -> FileChange:
    new = ring.builder.table()
    if found is None:
        return FileChange(file.path, tuple(f"+{_device_line(dev)}" for dev in filter(None, new.records)), ())
    name = name_of(file.path)
    try:
        former = decode_file(found)
    except RingError:
        return FileChange(file.path, ("-a file that is no ring",), (name,))
    error = ""
    if (former.build_version or 0) > (new.build_version or 0):
        error = (
            f"{file.path} has version {former.build_version}, which is newer than {new.build_version} of the "
            "state directory's builder: copy the newer builder there"
        )
    lost = [
        dev
        for dev in former.records
        if dev is not None and not _has_device(new, dev) and dev["id"] not in ring.removed
    ]
    dropped = () if is_written else tuple(f"{name}/{dev['ip']}:{dev['port']}/{dev['device']}" for dev in lost)
    return FileChange(file.path, tuple(_ring_diff(former, new)), dropped, error)


def _has_device(table: RingTable, device: DeviceRecord) -> bool:
    """Return True if a ring has a device: of its number and name, or of its address and name."""
    return any(
        dev is not None
        and dev["device"] == device["device"]
        and (dev["id"] == device["id"] or dev["ip"] == device["ip"])
        for dev in table.records
    )


def _device_line(dev: DeviceRecord) -> str:
    place = f"r{dev.get('region', 1)}z{dev['zone']}-{dev['ip']}:{dev['port']}/{dev['device']}"
    return f"d{dev['id']} {place} weight {dev['weight']:g}"


def _ring_diff(former: RingTable, new: RingTable) -> Iterator[str]:
    before, after = (
        [_device_line(dev) for dev in table.records if dev is not None] for table in (former, new)
    )
    yield from list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
    moved = sum(
        left != right
        for row, other in zip(former.rows, new.rows, strict=False)
        for left, right in zip(row, other, strict=False)
    )
    yield f" {moved} partition replicas have another device"
