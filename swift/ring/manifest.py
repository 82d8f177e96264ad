"""The manifest of a cluster's layout: checksums of its ring and builder files, under a signature.

A manifest is one line with the signature, then JSON in one fixed form: equal manifests are equal bytes.
Nothing of the JSON is parsed before its signature holds. Of two manifests the one with the higher ``rank``
is the newer. Everything here is pure; ``layoutfiles`` has the files of a node. doc/formats/layout-manifest.md
"""

from __future__ import annotations

import base64
import json
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple, TypeGuard

from swift.ring.errors import LayoutError

FORMAT_VERSION = 1
#: The content type of a manifest.
MANIFEST_TYPE = "application/vnd.swift.layout"
MANIFEST_BYTES_MAX = 1 << 18
#: A ring of 2^22 partitions with 14 replicas fits, uncompressed and with ids of 4 bytes.
FILE_BYTES_MAX = 1 << 28
FILES_MAX = 1024
VERSION_MAX = (1 << 53) - 1
_KEY_BYTES = 32
_HEAD = b"swift-layout 1 "
_TRUSTED_BYTES_MAX = 1 << 16
_RING, _BUILDER = ".ring.gz", ".builder"

is_layout_file = re.compile(
    r"(?:account|container|object(?:-[1-9][0-9]{0,5})?)(?:\.ring\.gz|\.builder)", re.ASCII
).fullmatch
is_digest = re.compile(r"[0-9a-f]{64}", re.ASCII).fullmatch
_is_cluster = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII).fullmatch
_parse_signature = re.compile(rb"([0-9a-f]{16}) ([A-Za-z0-9+/]{86}==)").fullmatch


class FileEntry(NamedTuple):
    """Checksum and size of one file."""

    sha256: str
    size_bytes: int

    @classmethod
    def of(cls, data: bytes) -> FileEntry:
        """Return the entry of a file with this content."""
        return cls(sha256(data).hexdigest(), len(data))


@dataclass(frozen=True)
class Manifest:
    """The ring and builder files of a cluster's nodes; ``issued_s`` is Unix time."""

    cluster: str
    version: int
    issued_s: float
    files: Mapping[str, FileEntry]
    #: A short name of exactly this manifest.
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", sha256(encode(self)).hexdigest()[:16])

    @property
    def rank(self) -> tuple[int, float, str]:
        """The order of manifests; different ones with one version have an order as well."""
        return self.version, self.issued_s, self.id

    def __str__(self) -> str:
        return f"layout version {self.version} ({self.id})"


@dataclass(frozen=True)
class TrustedKeys:
    """The cluster whose manifests are taken, and the public keys of their signatures by key id."""

    cluster: str
    keys: Mapping[str, bytes]


def builder_of(ring_name: str) -> str:
    """Return the name of the builder file that a ring file is made from."""
    return ring_name.removesuffix(_RING) + _BUILDER


def ring_of(builder_name: str) -> str:
    """Return the name of the ring file that is made from a builder file."""
    return builder_name.removesuffix(_BUILDER) + _RING


def is_ring_name(name: str) -> bool:
    """Return True for the name of a ring, without the suffix of its file, as a manifest can have it."""
    return is_layout_file(name + _RING) is not None


def is_ring(name: str) -> bool:
    """Return True for the name of a ring file, False for that of a builder."""
    return name.endswith(_RING)


# --- manifests ----------------------------------------------------------------------------------------


def encode(manifest: Manifest) -> bytes:
    """Return the JSON of a manifest, in its one form."""
    content = {
        "format": FORMAT_VERSION,
        "cluster": manifest.cluster,
        "version": manifest.version,
        "issued_s": manifest.issued_s,
        "files": {name: entry._asdict() for name, entry in manifest.files.items()},
    }
    return json.dumps(content, indent=1, sort_keys=True).encode("ascii") + b"\n"


def sign(manifest: Manifest, private_key: bytes) -> bytes:
    """Return a manifest with its signature. Raises LayoutError for one that no node would take."""
    body = encode(manifest)
    _check_size(body)
    _checked(json.loads(body))
    return sign_text(_HEAD, body, private_key)


def sign_text(head: bytes, body: bytes, private_key: bytes) -> bytes:
    """Return a text after a line with its kind (``head``, which ends with a space), key and signature."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signature = Ed25519PrivateKey.from_private_bytes(private_key).sign(head + body)
    key_id = key_id_of(public_key_of(private_key)).encode("ascii")
    return head + key_id + b" " + base64.b64encode(signature) + b"\n" + body


def verify_text(head: bytes, data: bytes, trusted: TrustedKeys) -> bytes:
    """Return the text of ``sign_text``, if a trusted key signed it. Raises LayoutError."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    line, end, body = data.partition(b"\n")
    found = _parse_signature(line.removeprefix(head)) if end and line.startswith(head) else None
    if found is None:
        raise LayoutError(f"it does not begin with {head.decode('ascii').strip()!r} and a signature")
    key_id = found[1].decode("ascii")
    if key_id not in trusted.keys:
        raise LayoutError(f"it is signed by the key {key_id}, which is not in layout.pub")
    try:
        key = Ed25519PublicKey.from_public_bytes(trusted.keys[key_id])
        key.verify(base64.b64decode(found[2], validate=True), head + body)
    except (InvalidSignature, ValueError):
        raise LayoutError(f"its signature does not match the key {key_id}")
    return body


def parse_verified(data: bytes, trusted: TrustedKeys) -> Manifest:
    """Return a manifest that a trusted key signed for the trusted cluster. Raises LayoutError."""
    _check_size(data)
    body = verify_text(_HEAD, data, trusted)
    try:
        manifest = _checked(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"it is no JSON ({error})")
    if encode(manifest) != body:
        raise LayoutError("its JSON is not in the form of the format")
    if manifest.cluster != trusted.cluster:
        raise LayoutError(f"it is of the cluster {manifest.cluster}, this one is {trusted.cluster}")
    return manifest


def _check_size(data: bytes) -> None:
    if len(data) > MANIFEST_BYTES_MAX:
        raise LayoutError(f"it is longer than {MANIFEST_BYTES_MAX} bytes")


def _checked(content: object) -> Manifest:
    """Return the manifest of a parsed JSON text. Raises LayoutError."""
    if not isinstance(content, dict) or not {"cluster", "version", "issued_s", "files"} <= content.keys():
        raise LayoutError("a field is missing")
    if content.get("format") != FORMAT_VERSION:
        raise LayoutError("its format version is not 1")
    cluster, version, issued_s = content["cluster"], content["version"], content["issued_s"]
    if not isinstance(cluster, str) or not _is_cluster(cluster):
        raise LayoutError("its cluster is no id")
    if not _is_count(version, VERSION_MAX) or not version:
        raise LayoutError("its version is no number from 1 on")
    if not isinstance(issued_s, float) or not math.isfinite(issued_s) or issued_s < 0:
        raise LayoutError("its time is no time")
    files = content["files"]
    if not isinstance(files, dict) or not 0 < len(files) <= FILES_MAX:
        raise LayoutError(f"it has no files, or more than {FILES_MAX}")
    return Manifest(cluster, version, issued_s, {name: _entry(name, files[name]) for name in sorted(files)})


def _entry(name: str, entry: object) -> FileEntry:
    if not is_layout_file(name):
        raise LayoutError(f"{name[:64]!a} is not the name of a ring or builder file")
    fields = entry if isinstance(entry, dict) else {}
    digest, size = fields.get("sha256"), fields.get("size_bytes")
    if not isinstance(digest, str) or not is_digest(digest) or not _is_count(size, FILE_BYTES_MAX):
        raise LayoutError(f"the checksum or size of {name} is no checksum or size")
    return FileEntry(digest, size)


def _is_count(value: object, maximum: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= maximum


# --- keys ---------------------------------------------------------------------------------------------


def new_private_key() -> bytes:
    """Return a new private key."""
    return secrets.token_bytes(_KEY_BYTES)


def public_key_of(private_key: bytes) -> bytes:
    """Return the public key of a private one."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = Ed25519PrivateKey.from_private_bytes(private_key).public_key()
    return public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def key_id_of(public_key: bytes) -> str:
    """Return the id of a public key: the start of its SHA-256."""
    return sha256(public_key).hexdigest()[:16]


def render_private_key(key: bytes) -> str:
    """Return the content of layout.key."""
    return base64.b64encode(key).decode("ascii") + "\n"


def parse_private_key(text: str) -> bytes:
    """Return the key in layout.key. Raises LayoutError."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) != 1:
        raise LayoutError("it must have one line with the key")
    return _key(lines[0])


def render_trusted_keys(trusted: TrustedKeys) -> str:
    """Return the content of layout.pub."""
    keys = "".join(f"{base64.b64encode(key).decode('ascii')}\n" for key in trusted.keys.values())
    return f"cluster {trusted.cluster}\n{keys}"


def parse_trusted_keys(text: str) -> TrustedKeys:
    """Return the cluster and the public keys in layout.pub. Raises LayoutError."""
    if len(text) > _TRUSTED_BYTES_MAX:
        raise LayoutError(f"it is longer than {_TRUSTED_BYTES_MAX} bytes")
    clusters, keys = [], []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "cluster":
            clusters.append(" ".join(words[1:]))
        else:
            keys.append(_key(line.strip()))
    if len(clusters) != 1 or not _is_cluster(clusters[0]):
        raise LayoutError("it must have one line 'cluster <id>'")
    if not keys:
        raise LayoutError("it has no public key")
    return TrustedKeys(clusters[0], {key_id_of(key): key for key in keys})


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise LayoutError(f"a key is {_KEY_BYTES} bytes in base64")
    return key
