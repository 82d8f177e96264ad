"""Naming devices on the command line: add values, search values, change values and the options.

Text in, plain dicts out. The short forms look like ``r1z2-10.0.0.1:6200R10.1.0.1:6300/sda_text``; what each
subcommand makes of them is not known here. spec: ring.md §11 "Device arguments"
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Sequence
from typing import NoReturn, cast

from swift.ring.builder import RingBuilder
from swift.ring.commands.session import EndSubcommand, WrongUsage
from swift.ring.device import DeviceRecord, describe

_IP = r"\[[^\]]*\]|[0-9.]+"
_WORD = r"\[[^\]]*\]|[^:/R\[\]]*"
_ADD = re.compile(
    rf"(?:r(?P<region>\d+))?z(?P<zone>\d+)-(?P<ip>{_WORD})(?P<port>:[^/R]*)?"
    rf"(?:R(?P<replication_ip>{_WORD})(?P<replication_port>:[^/]*)?)?"
    r"/(?P<device>[^_]*)(?:_(?P<meta>.*))?",
    re.DOTALL,
)
_SEARCH = re.compile(
    rf"(?:d(?P<id>\d+))?(?:r(?P<region>\d+))?(?:z(?P<zone>\d+))?-?(?P<ip>{_IP})?(?::(?P<port>\d+))?"
    rf"(?:R(?P<replication_ip>{_IP})?(?::(?P<replication_port>\d+))?)?"
    r"(?:/(?P<device>[^_]*))?(?:_(?P<meta>.*))?",
    re.DOTALL,
)
_CHANGE = re.compile(
    rf"(?P<ip>{_IP})?(?::(?P<port>\d+))?(?:R(?P<replication_ip>{_IP})?(?::(?P<replication_port>\d+))?)?"
    r"(?:/(?P<device>[^_]*))?(?:_(?P<meta>.*))?",
    re.DOTALL,
)
_HOST_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_HOST_LENGTH_MAX = 255
_INTEGERS = ("id", "region", "zone", "port", "replication_port")
PORT_MAX = 65535
#: Longer numbers name nothing.
_DIGITS_MAX = 10


class BadValue(Exception):
    """A device value does not parse; the text is what the operator sees."""


def parse_ip(text: str) -> str:
    """Return a canonical IP literal: no brackets, IPv6 compressed and lower-case. Raises BadValue."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        raise BadValue(f"Invalid ip {text}")


def parse_address(text: str) -> str:
    """Return a canonical IP literal or a lower-case host name. Raises BadValue."""
    try:
        return parse_ip(text)
    except BadValue:
        host = text.lower().removesuffix(".")
        labels = host.split(".")
        if not host or len(host) > _HOST_LENGTH_MAX or not all(map(_HOST_LABEL.fullmatch, labels)):
            raise BadValue(f"Invalid address {text}")
        return host


def parse_device_name(text: str) -> str:
    """Return a directory name below ``devices``. Raises BadValue."""
    if not text or text != text.strip(" ") or "/" in text:
        raise BadValue("Invalid device name")
    return text


def _parse_port(text: str | None) -> int:
    if not text:
        raise BadValue("Invalid port in add value")
    if not text[1:].isascii() or not text[1:].isdigit() or int(text[1:]) > PORT_MAX:
        raise BadValue(f"Invalid port {text} in add value")
    return int(text[1:])


def parse_add_value(text: str) -> DeviceRecord:
    """Return the device fields of an add value, without weight; ``region`` is missing when not given."""
    match = _ADD.fullmatch(text)
    if match is None:
        raise BadValue(f"Invalid add value: {text}")
    found = match.groupdict()
    fields: DeviceRecord = {
        "zone": int(found["zone"]),
        "ip": parse_ip(found["ip"]),
        "port": _parse_port(found["port"]),
        "device": parse_device_name(found["device"]),
        "meta": found["meta"] or "",
    }
    if found["region"] is not None:
        fields["region"] = int(found["region"])
    fields["replication_ip"] = fields["ip"]
    fields["replication_port"] = fields["port"]
    if found["replication_ip"] is not None:
        fields["replication_ip"] = parse_ip(found["replication_ip"])
        fields["replication_port"] = _parse_port(found["replication_port"])
    return fields


def _fields(match: re.Match[str]) -> DeviceRecord:
    fields: dict[str, object] = {}
    for name, value in match.groupdict().items():
        if value is None:
            continue
        if name in _INTEGERS:
            if len(value) > _DIGITS_MAX:
                raise BadValue(f"Invalid {name}: a number of {len(value)} digits")
            fields[name] = int(value)
        elif name in ("ip", "replication_ip"):
            fields[name] = parse_ip(value)
        else:
            fields[name] = value
    return cast(DeviceRecord, fields)


def parse_search_value(text: str) -> DeviceRecord:
    """Return the fields that a device must have. Raises BadValue."""
    match = _SEARCH.fullmatch(text)
    if match is None or not text:
        raise BadValue(f"Invalid <search-value>: {text!r}")
    return _fields(match)


def parse_change_value(text: str) -> DeviceRecord:
    """Return the fields that set_info changes. Raises BadValue."""
    match = _CHANGE.fullmatch(text)
    if match is None or not text:
        raise BadValue(f"Invalid set info change value: {text!r}")
    return _with_good_ports(_fields(match))


def _with_good_ports(fields: DeviceRecord) -> DeviceRecord:
    """Return the fields, if servers can listen where they say. Raises BadValue."""
    for name in ("port", "replication_port"):
        port = cast(int, fields.get(name, 0))
        if not 0 <= port <= PORT_MAX:
            raise BadValue(f"Invalid {name} {port}")
    return fields


def matching(builder: RingBuilder, wanted: DeviceRecord) -> list[DeviceRecord]:
    """Devices that have all the fields; meta may stand anywhere in theirs, the rest is exact."""
    return [
        dev
        for dev in builder.live_devs
        if all(
            str(value) in dev["meta"] if name == "meta" else dev.get(name) == value
            for name, value in wanted.items()
        )
    ]


def matching_any(builder: RingBuilder, wanted: Sequence[DeviceRecord]) -> list[DeviceRecord]:
    """Devices that match one of several, in id order, each once."""
    found = {dev["id"]: dev for fields in wanted for dev in matching(builder, fields)}
    return [found[dev_id] for dev_id in sorted(found)]


class _Parser(argparse.ArgumentParser):
    """Reports errors as one line instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise EndSubcommand(f"swift-ring-builder: error: {message}")


_OPTIONS = (
    ("-u", "id", int),
    ("-r", "region", int),
    ("-z", "zone", int),
    ("-i", "ip", str),
    ("-p", "port", int),
    ("-j", "replication-ip", str),
    ("-q", "replication-port", int),
    ("-d", "device", str),
    ("-w", "weight", float),
    ("-m", "meta", str),
    ("-I", "change-ip", str),
    ("-P", "change-port", int),
    ("-J", "change-replication-ip", str),
    ("-Q", "change-replication-port", int),
    ("-D", "change-device", str),
    ("-M", "change-meta", str),
)


class Arguments:
    """The words and options of a subcommand that names devices."""

    def __init__(self, argv: Sequence[str]):
        parser = _Parser(prog="swift-ring-builder", add_help=False, allow_abbrev=False)
        for short, name, kind in _OPTIONS:
            parser.add_argument(short, f"--{name}", type=kind)
        parser.add_argument("-y", "--yes", action="store_true")
        parser.add_argument("words", nargs="*")
        options = vars(parser.parse_intermixed_args(argv))
        self.words: list[str] = options.pop("words")
        self.yes: bool = options.pop("yes")
        given = {name: value for name, value in options.items() if value is not None}
        changes, wanted = {}, {}
        for name, value in given.items():
            if name.startswith("change_"):
                changes[name.removeprefix("change_")] = value
            else:
                wanted[name] = value
        for fields in (wanted, changes):
            for name in ("ip", "replication_ip"):
                if name in fields:
                    fields[name] = parse_address(fields[name])
        # The parser has made what ``_OPTIONS`` says of each.
        self.changes = _with_good_ports(cast(DeviceRecord, changes))
        self.wanted = cast(DeviceRecord, wanted)

    def searches(self, words: Sequence[str]) -> list[DeviceRecord]:
        """Return the search values: the options, or each of ``words``; WrongUsage for both or none."""
        if bool(self.wanted) == bool(words):
            raise WrongUsage
        return [self.wanted] if self.wanted else [parse_search_value(word) for word in words]

    def value_pairs(self) -> list[tuple[DeviceRecord, str]]:
        """Return (what to look for, value) pairs of the set_ subcommands, in both forms."""
        if self.wanted:
            if len(self.words) != 1:
                raise WrongUsage
            return [(self.wanted, self.words[0])]
        if not self.words or len(self.words) % 2:
            raise WrongUsage
        return [
            (parse_search_value(search), value)
            for search, value in zip(self.words[::2], self.words[1::2], strict=True)
        ]


def list_names(devs: Sequence[DeviceRecord]) -> list[str]:
    """Return the lines that show which devices matched."""
    return ["Matched more than one device:", *(f"    {describe(dev)}" for dev in devs)]
