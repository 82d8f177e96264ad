"""swift-object-info: tell what a file of an object says, and where the object belongs.

spec: cli-and-config.md §9
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from swift.base.entity import BadPath, EntityPath, quote_path, split_path
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.compose import Cluster, cluster_of
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.config.files import read_section
from swift.http import fields
from swift.operations.info import Located, locate, metadata_lines
from swift.operations.packed import CONFIG, PackedNode, describe_error
from swift.operations.volumes import external_file, find_hash, object_versions, record_facts
from swift.platform.disk import Disk
from swift.platform.regularfiles import IrregularFile, open_regular
from swift.policy.policy import Policy
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from swift.runtime.service.services import SWIFT_DIR
from swift.store.lmdbindex import IndexFailed
from swift.store.metadata import BadMetadata, Metadata, decode_metadata, read_metadata

_POLICY = re.compile(r"/objects(?:-(\d+))?/")
_BLOCK = 1 << 20
GROUPS = (
    ("System Metadata", fields.OBJECT_SYSMETA.title()),
    ("Transient System Metadata", fields.OBJECT_TRANSIENT_SYSMETA.title()),
    ("User Metadata", "X-Object-Meta-"),
)
#: Metadata that is printed apart from the other.
OWN = frozenset(("name", "Content-Type", "X-Timestamp", "ETag", "Content-Length"))
NOT_FOUND = "Not found in metadata"
_NO_FILE_HINT = "name a file, or an object of a packed device: DEVICE ACCOUNT/CONTAINER/OBJECT"
CRYPTO = (
    ("Data crypto details", f"{GROUPS[0][1]}Crypto-Body-Meta"),
    ("Metadata crypto details", f"{GROUPS[1][1]}Crypto-Meta"),
)


class NoObjectFile(Exception):
    """The file does not belong to an object; the text has the reason."""


@dataclass(frozen=True)
class ObjectFileContent:
    """Content of an object file."""

    metadata: Metadata
    path: EntityPath
    size: int
    #: MD5 of the content; empty when it was not computed.
    digest: str

    @property
    def etag(self) -> str:
        """The verdict on the checksum."""
        have = self.metadata.get("ETag")
        if have is None:
            return NOT_FOUND
        if not self.digest:
            return f"{have} (not checked)"
        if have == self.digest:
            return f"{have} (valid)"
        return f"{have} doesn't match file hash of {self.digest}!"

    @property
    def length(self) -> str:
        """The verdict on the length."""
        have = self.metadata.get("Content-Length")
        if have is None:
            return NOT_FOUND
        return (
            f"{have} (valid)"
            if have == str(self.size)
            else (f"{have} doesn't match file length of {self.size}")
        )


def read_object_file(file: str, *, check_etag: bool, disk: Disk | None = None) -> ObjectFileContent:
    """Read a file. Raises ``NoObjectFile`` and OSError."""
    disk = disk or Disk()
    try:
        fd = open_regular(disk, file, os.O_RDONLY)
    except FileNotFoundError:
        raise NoObjectFile("Data file doesn't exist")
    except IrregularFile:
        # In the peer's words; a FIFO would make it wait.
        raise NoObjectFile("Invalid metadata")
    try:
        try:
            metadata = read_metadata(disk, fd)
        except BadMetadata:
            raise NoObjectFile("Invalid metadata")
        path = _path_of(metadata)
        digest = _digest(fd) if check_etag and "ETag" in metadata else ""
        return ObjectFileContent(metadata, path, disk.fstat(fd).st_size, digest)
    finally:
        disk.close(fd)


@dataclass(frozen=True)
class PackedObjectContent:
    """Content of a record of a packed object."""

    content: ObjectFileContent
    #: Its position, and the path of its body if that is a file.
    record: dict[str, object]
    policy: Policy | None


def read_packed(
    conf: str, device: str, name: str, policy: str, *, check_etag: bool
) -> Iterator[PackedObjectContent]:
    """Yield the records of an object on a device of this node.

    Raises ``NoObjectFile``, ``BadRecord``, ``ConfigError``, ``IndexFailed``, OSError.
    """
    node = PackedNode(conf, lambda text: print(f"swift-object-info: {text}", file=sys.stderr))
    try:
        (device,) = node.device_names([device])
        opened = node.open(device)
        policies = node.policies([policy] if policy else [])
        for record in object_versions(opened, find_hash(node, name), policies):
            header = record.header
            found = node.cluster.policies.get(header.policy)
            facts = record_facts(node, record.position, header)
            if header.external and found is not None:
                path = external_file(opened, found, header)
                content = read_object_file(path, check_etag=check_etag)
                yield PackedObjectContent(content, {**facts, "file": path}, found)
                continue
            metadata = decode_metadata(record.metadata)
            digest = ""
            if check_etag and "ETag" in metadata:
                # Damage is shown, not refused, as it is of files.
                digest = hashlib.md5(record.raw_body(), usedforsecurity=False).hexdigest()
            content = ObjectFileContent(metadata, _path_of(metadata), header.body_bytes, digest)
            yield PackedObjectContent(content, facts, found)
    finally:
        node.close()


def _path_of(metadata: Metadata) -> EntityPath:
    try:
        account, container, obj = split_path(quote_path(metadata["name"]), 3, 3, rest_with_last=True)
    except (KeyError, BadPath):
        raise NoObjectFile(f"Path is invalid for object {metadata.get('name')!r}")
    return EntityPath(str(account), container, obj)


def _digest(fd: int) -> str:
    digest, offset = hashlib.md5(usedforsecurity=False), 0
    while block := os.pread(fd, _BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def _text(value: str) -> str:
    """Return text from a value that is stored as the Latin-1 view of its bytes."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def lines(seen: ObjectFileContent, hash_hex: str, *, drop_prefixes: bool) -> Iterator[str]:
    """Yield all lines about the file."""
    metadata, path = seen.metadata, seen.path
    yield f"Path: {path}"
    yield from (f"  Account: {path.account}", f"  Container: {path.container}", f"  Object: {path.obj}")
    yield f"  Object hash: {hash_hex}"
    yield f"Content-Type: {metadata.get('Content-Type', NOT_FOUND)}"
    yield f"Timestamp: {_format_timestamp(metadata.get('X-Timestamp'))}"
    shown = set(OWN)
    for title, prefix in GROUPS:
        values = {name: _text(value) for name, value in metadata.items() if name.startswith(prefix)}
        shown.update(values)
        yield from metadata_lines(title, values, prefix, drop=drop_prefixes)
    other = {name: _text(value) for name, value in metadata.items() if name not in shown}
    yield from metadata_lines("Other Metadata", other, "", drop=False)
    for title, name in CRYPTO:
        if name in metadata:
            yield f"{title}: {metadata[name]}"
    yield f"ETag: {seen.etag}"
    yield f"Content-Length: {seen.length}"


def _format_timestamp(text: str | None) -> str:
    if text is None:
        return NOT_FOUND
    try:
        timestamp = Timestamp(text)
    except InvalidTimestamp:
        return text
    return f"{timestamp.isoformat} ({timestamp.internal})"


def as_json(seen: ObjectFileContent, hash_hex: str, located: Located | None) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "path": str(seen.path),
        "hash": hash_hex,
        "metadata": {name: _text(value) for name, value in seen.metadata.items()},
        "file_length": seen.size,
        "file_md5": seen.digest or None,
        "etag_is_valid": seen.etag.endswith("(valid)") if seen.digest else None,
        "length_is_valid": None if seen.length == NOT_FOUND else seen.length.endswith("(valid)"),
        "location": None if located is None else located.as_json(),
    }


def _policy_of(file: str, cluster: Cluster, name: str) -> tuple[Policy | None, list[str]]:
    """Return the policy of a file by its path, else by name; and warnings."""
    # Above the devices there may be directories of any name: the last one is the object's.
    match = next(reversed([*_POLICY.finditer(os.path.abspath(file))]), None)
    found = cluster.policies.get(int(match[1] or 0)) if match else None
    if not name:
        return found or (None if match else cluster.policies.get(0)), []
    named = cluster.policies.named(name)
    if named is None:
        return found, [f"No policy named {name!r}"]
    if found is not None and found is not named:
        return found, ["WARNING: Ring does not match policy!", "Double check your policy name!"]
    return named, []


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-object-info",
        description="Show the metadata of an object's file, and where the object belongs.",
        epilog="examples:\n"
        "  swift-object-info /srv/node/sdb1/objects/11/788/b6c6…2788/1795228430.52472.data\n"
        "  swift-object-info sdb1 AUTH_test/photos/cat.jpg",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", nargs="?", help="a .data, .meta or .ts file, or a packed device")
    add("object", nargs="?", help="with a packed device: ACCOUNT/CONTAINER/OBJECT, or its hash")
    add("-c", "--conf", default=CONFIG, help="configuration of the object server (%(default)s)")
    add("-n", "--no-check-etag", action="store_true", help="do not read the content")
    add(
        "-d",
        "--swift-dir",
        default="",
        help=f"directory of the rings (that of --conf; {SWIFT_DIR} without it)",
    )
    add("--drop-prefixes", action="store_true", help="leave out the prefix of each section")
    add("-P", "--policy-name", default="", help="the policy of the object")
    parser.add_format("how to show it")
    return parser


def _located(swift_dir: str, policy: Policy | None, digest: bytes, path: EntityPath) -> Located | None:
    if policy is None:
        return None
    ring = os.path.join(swift_dir, f"{policy.ring_name}.ring.gz")
    if not os.path.exists(ring):
        return None
    return locate(RingView(load_table(ring, thorough=False)), digest, path, policy=policy)


def _swift_dir(args: argparse.Namespace) -> str:
    """Return the directory of the rings. Raises ``ConfigError``, OSError."""
    if args.swift_dir:
        return str(args.swift_dir)
    if args.conf == CONFIG and not os.path.exists(CONFIG):
        # A machine that is no storage node has the rings alone.
        return SWIFT_DIR
    return read_section(args.conf, "app:object-server").get("swift_dir", SWIFT_DIR)


@reports_errors("swift-object-info", BadMetadata, IndexFailed, describe=describe_error, plain=(NoObjectFile,))
def _show_packed(args: argparse.Namespace) -> int:
    """Show the records of a packed object; return the exit code."""
    swift_dir = _swift_dir(args)
    found = list(
        read_packed(args.conf, args.file, args.object, args.policy_name, check_etag=not args.no_check_etag)
    )
    if not found:
        raise NoObjectFile(f"{args.file} has no object {args.object}")
    facts, out = [], []
    for each in found:
        record, name_hash = each.record, str(each.record["hash"])
        located = _located(swift_dir, each.policy, bytes.fromhex(name_hash), each.content.path)
        if located is not None:
            # Other nodes may have files, so the paths are shown as well.
            located = replace(located, may_be_packed=True)
        facts.append({**as_json(each.content, name_hash, located), "record": record})
        out.append(
            f"Record: {record['kind']} at {record['offset']} of volume {record['volume']}, "
            f"partition {record['partition']}"
        )
        out += lines(each.content, name_hash, drop_prefixes=args.drop_prefixes)
        out += located.lines() if located else [""]
    print_report(args, facts, out)
    return 0


@reports_errors("swift-object-info")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if not args.file:
        parser.print_help()
        return 1
    if args.object:
        return _show_packed(args)
    try:
        swift_dir = _swift_dir(args)
        cluster = cluster_of({"swift_dir": swift_dir})
        seen = read_object_file(args.file, check_etag=not args.no_check_etag)
        digest = cluster.config.hasher.digest(*seen.path)
        policy, warnings = _policy_of(args.file, cluster, args.policy_name)
        located = _located(swift_dir, policy, digest, seen.path)
    except NoObjectFile as error:
        print(error)
        if not os.path.exists(args.file):
            print(f"swift-object-info: {_NO_FILE_HINT}", file=sys.stderr)
        return 1
    out = [*warnings, *lines(seen, digest.hex(), drop_prefixes=args.drop_prefixes)]
    facts = as_json(seen, digest.hex(), located)
    print_report(args, facts, [*out, *(located.lines() if located else ())])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
