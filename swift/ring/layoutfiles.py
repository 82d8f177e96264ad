"""The layout files of a node: ring and builder files, the manifest that names them, and its keys.

A change is prepared first: every file is staged beside the others and checked. Then the new manifest is
stored as ``layout.staged/manifest``. From then on the change is carried out, also after a crash: each staged
file is renamed to its place, and the manifest last. A full disk is therefore met before anything changes.

Without ``layout.pub`` there is no layout, and ring files are those that the operator placed.
doc/formats/layout-manifest.md
"""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from swift.base.clock import Clock, SystemClock
from swift.platform import durable
from swift.platform.disk import Disk, names_in
from swift.platform.locks import lock_directory
from swift.platform.privileges import give_owner
from swift.platform.regularfiles import FileIdentity, file_identity, read_through_links
from swift.platform.syncing import sync_directory
from swift.ring.builder import RingBuilder
from swift.ring.errors import LayoutError, RingError
from swift.ring.manifest import (
    FileEntry,
    Manifest,
    TrustedKeys,
    builder_of,
    is_layout_file,
    is_ring,
    key_id_of,
    new_private_key,
    parse_private_key,
    parse_trusted_keys,
    parse_verified,
    public_key_of,
    render_private_key,
    render_trusted_keys,
    ring_of,
    sign,
)
from swift.ring.ringfile import load_table
from swift.ring.split import phase
from swift.ring.table import RingTable, check_usable

MANIFEST = "layout.manifest"
PUBLIC_KEYS = "layout.pub"
PRIVATE_KEY = "layout.key"
#: The key that will follow it.
NEXT_KEY = "layout.key.next"
_STAGED = "layout.staged"
_RECORD = "manifest"
_FILE_MODE = 0o644

#: Raises a RingError for the ring file of a name that the cluster's policies cannot use.
TableCheck = Callable[[str, RingTable], None]


def accept_table(_name: str, _table: RingTable) -> None:
    """Take every ring."""


@dataclass(frozen=True)
class Installed:
    """The manifest of a node, as a value and as its bytes."""

    manifest: Manifest
    data: bytes


@dataclass(frozen=True)
class FileStates:
    """Names of files that are not as the manifest has them."""

    missing: tuple[str, ...] = ()
    #: Files that are no rings or builders.
    damaged: tuple[str, ...] = ()
    #: Rings and builders with another content.
    changed: tuple[str, ...] = ()


class LayoutFolder:
    """The layout files in ``swift_dir``; checksums of files are kept while those do not change."""

    def __init__(self, swift_dir: str, *, disk: Disk | None = None):
        self.path = os.path.abspath(swift_dir)
        self.disk = disk or Disk()
        self._known: dict[str, tuple[FileIdentity, str]] = {}
        self._installed: tuple[object, Installed | None] = (None, None)

    def path_of(self, name: str) -> str:
        """Return the path of a file."""
        return f"{self.path}/{name}"

    def staged_path(self, name: str) -> str:
        """Return the path of a staged file."""
        return f"{self.path}/{_STAGED}/{name}"

    def owner_model(self) -> str:
        """Return the path whose owner new files get if root makes them: a ring or builder file, if any.

        The directory may belong to root, while the files are those of the user that replaces them.
        """
        names = filter(is_layout_file, names_in(self.disk, self.path))
        return next((self.path_of(name) for name in sorted(names)), self.path)

    def trusted_keys(self) -> TrustedKeys | None:
        """Return the content of layout.pub, None if it is missing. Raises LayoutError and OSError."""
        path = self.path_of(PUBLIC_KEYS)
        try:
            return parse_trusted_keys(read_through_links(path).decode("ascii"))
        except FileNotFoundError:
            return None
        except (LayoutError, UnicodeDecodeError) as error:
            raise LayoutError(f"{path}: {error}")

    def installed(self) -> Installed | None:
        """Return the manifest of this node, None if there is none or no layout.pub.

        Raises LayoutError for one that is damaged or not signed by a key in layout.pub, OSError.
        """
        path = self.path_of(MANIFEST)
        try:
            identity = file_identity(path), file_identity(self.path_of(PUBLIC_KEYS))
        except FileNotFoundError:
            return None
        if self._installed[0] == identity:
            return self._installed[1]
        trusted = self.trusted_keys()
        if trusted is None:
            return None
        try:
            data = read_through_links(path)
            found = Installed(parse_verified(data, trusted), data)
        except FileNotFoundError:
            return None
        except LayoutError as error:
            raise LayoutError(f"{path}: {error}")
        self._installed = identity, found
        return found

    def installed_s(self) -> float:
        """Return the Unix time since when the node has its manifest. Raises OSError."""
        return os.stat(self.path_of(MANIFEST)).st_mtime

    def digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file, None if it is missing. Raises OSError."""
        try:
            identity = file_identity(path)
            known = self._known.get(path)
            if known is not None and known[0] == identity:
                return known[1]
            found = sha256(read_through_links(path)).hexdigest()
        except FileNotFoundError:
            self._known.pop(path, None)
            return None
        self._known[path] = identity, found
        return found

    def states(self, manifest: Manifest) -> FileStates:
        """Return the files that differ from a manifest. Raises OSError for one that cannot be read."""
        missing: list[str] = []
        damaged: list[str] = []
        changed: list[str] = []
        for name, entry in manifest.files.items():
            digest = self.digest(self.path_of(name))
            if digest is None:
                missing.append(name)
            elif digest != entry.sha256:
                (changed if self._is_sound(name) else damaged).append(name)
        return FileStates(tuple(missing), tuple(damaged), tuple(changed))

    def _is_sound(self, name: str) -> bool:
        try:
            if is_ring(name):
                load_table(self.path_of(name))
            else:
                RingBuilder.load(self.path_of(name))
        except RingError:
            return False
        return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the layout. Raises OSError and LockTimeout."""
        disk = self.disk
        fd = lock_directory(disk, self.path)
        try:
            yield
        finally:
            disk.close(fd)

    def open(self, data: bytes, *, check: TableCheck = accept_table) -> Installation:
        """Return the change of this node to a manifest. Raises LayoutError unless it is verified; OSError."""
        trusted = self.trusted_keys()
        if trusted is None:
            raise LayoutError(f"{self.path_of(PUBLIC_KEYS)} is missing")
        return Installation(self, Installed(parse_verified(data, trusted), data), check=check)

    def recover(self, *, check: TableCheck = accept_table) -> Manifest | None:
        """Finish a change that a crash interrupted; return its manifest, None if there was none.

        Raises LayoutError if it cannot be finished, which leaves it to the next change; OSError.
        """
        try:
            data = read_through_links(self.staged_path(_RECORD))
        except FileNotFoundError:
            return None
        disk = self.disk
        try:
            installation = self.open(data, check=check)
            installation.commit()
        except LayoutError:
            with contextlib.suppress(FileNotFoundError):
                disk.unlink(self.staged_path(_RECORD))
            raise
        return installation.manifest

    def __repr__(self) -> str:
        return f"<LayoutFolder {self.path}>"


class Installation:
    """The change of a node to a manifest; with the node's own manifest the repair of its files.

    A repair leaves rings and builders that were changed by hand. A newer manifest replaces them.
    """

    def __init__(self, folder: LayoutFolder, target: Installed, *, check: TableCheck):
        self._folder = folder
        self._disk = folder.disk
        self._data = target.data
        self._check = check
        self.manifest = target.manifest

    def __repr__(self) -> str:
        return f"<Installation of {self.manifest} in {self._folder.path}>"

    def replaced(self) -> list[str]:
        """Return the names of the files that this change replaces.

        Raises LayoutError if the node has a newer manifest, OSError.
        """
        current = self._current()
        if current is not None and current.rank > self.manifest.rank:
            raise LayoutError(f"{self.manifest} is older than {current}, which is installed")
        if current == self.manifest:
            states = self._folder.states(self.manifest)
            return [*states.missing, *states.damaged]
        found = ((name, self._folder.digest(self._folder.path_of(name))) for name in self.manifest.files)
        return [name for name, digest in found if digest != self.manifest.files[name].sha256]

    def missing(self) -> list[str]:
        """Return the names of the files whose content has to be staged. Raises like ``replaced``."""
        return [name for name in self.replaced() if not self._is_staged(name)]

    def _current(self) -> Manifest | None:
        try:
            current = self._folder.installed()
        except LayoutError:
            # A manifest that cannot be verified says nothing.
            return None
        return current.manifest if current else None

    def _is_staged(self, name: str) -> bool:
        return self._is_named(name, self._folder.staged_path(name))

    def stage(self, name: str, data: bytes) -> None:
        """Store the content of a file beside the others. Raises LayoutError for another one, OSError."""
        entry = self.manifest.files.get(name)
        if entry is None:
            raise LayoutError(f"{name} is not in {self.manifest}")
        if FileEntry.of(data) != entry:
            raise LayoutError(f"{name} has not the checksum and size that {self.manifest} names")
        with self._folder.locked():
            self._store(name, data)

    def _store(self, name: str, data: bytes) -> None:
        """Store a file among the staged ones, with the owner and permissions of the one it will replace."""
        like = self._folder.path_of(MANIFEST if name == _RECORD else name)
        directory = f"{self._folder.path}/{_STAGED}"
        with contextlib.suppress(FileExistsError):
            self._disk.mkdir(directory, 0o700)
            give_owner(directory, self._folder.owner_model())
            sync_directory(self._disk, self._folder.path)
        if os.path.islink(directory):
            raise LayoutError(f"{directory} is a symbolic link: remove it")
        path = self._folder.staged_path(name)
        try:
            mode = stat.S_IMODE(self._disk.stat(like).st_mode)
        except FileNotFoundError:
            mode, like = _FILE_MODE, self._folder.owner_model()
        durable.replace_file(self._disk, path, data, mode=mode)
        give_owner(path, like)

    def commit(self) -> list[str]:
        """Put the staged files in their places; return their names.

        Raises LayoutError for files that are missing or must not replace the present ones: then nothing has
        changed. An OSError leaves a change that ``recover`` finishes.
        """
        with self._folder.locked():
            names = self.replaced()
            missing = [name for name in names if not self._is_staged(name)]
            if missing:
                raise LayoutError(f"{', '.join(missing)} of {self.manifest} have not arrived")
            for name in sorted(names, key=is_ring, reverse=True):
                self._check_file(name, names)
            self._check_pairs(names)
            self._store(_RECORD, self._data)
            for name in names:
                self._disk.rename(self._folder.staged_path(name), self._folder.path_of(name))
            sync_directory(self._disk, self._folder.path)
            self._disk.rename(self._folder.staged_path(_RECORD), self._folder.path_of(MANIFEST))
            sync_directory(self._disk, self._folder.path)
            self._clean()
        return names

    def _clean(self) -> None:
        """Remove what else was staged."""
        directory = f"{self._folder.path}/{_STAGED}"
        for name in () if os.path.islink(directory) else names_in(self._disk, directory):
            with contextlib.suppress(FileNotFoundError):
                self._disk.unlink(f"{directory}/{name}")

    # --- checks -------------------------------------------------------------------------------------------

    def _path_after(self, name: str, names: list[str]) -> str:
        """Return the path where the future content of a file is now."""
        return self._folder.staged_path(name) if name in names else self._folder.path_of(name)

    def _check_file(self, name: str, names: list[str]) -> None:
        """Raise LayoutError if a staged file must not replace the present one; OSError."""
        path = self._path_after(name, names)
        try:
            if is_ring(name):
                self._check_ring(name, load_table(path))
            else:
                RingBuilder.load(path)
        except RingError as error:
            raise LayoutError(f"{name} of {self.manifest} is refused: {getattr(error, 'reason', error)}")

    def _check_ring(self, name: str, table: RingTable) -> None:
        check_usable(table)
        phase(table.part_power, table.next_part_power)
        self._check(name, table)
        present = self._present(name)
        if present is not None:
            check_follows(table, present)

    def _present(self, name: str) -> RingTable | None:
        """Return the ring that is to be replaced; None if it is missing, damaged or changed by hand.

        One that was changed by hand has a version of its own, and maybe another part power: then the builder
        tells the ring of before, unless it was changed as well.
        """
        if not self._is_changed_by_hand(name):
            try:
                return load_table(self._folder.path_of(name))
            except (FileNotFoundError, RingError):
                return None
        builder = builder_of(name)
        if self._is_changed_by_hand(builder):
            return None
        try:
            return RingBuilder.load(self._folder.path_of(builder)).table()
        except (OSError, RingError):
            return None

    def _is_changed_by_hand(self, name: str) -> bool:
        """Return True if the present file is not that of the present manifest."""
        current = self._current()
        entry = current.files.get(name) if current else None
        return entry is not None and self._folder.digest(self._folder.path_of(name)) not in (
            None,
            entry.sha256,
        )

    def _check_pairs(self, names: list[str]) -> None:
        """Raise LayoutError for a builder that is not that of its ring; OSError.

        A file that was changed by hand and stays is not compared.
        """
        rings = {name if is_ring(name) else ring_of(name) for name in names}
        for ring, builder in ((name, builder_of(name)) for name in sorted(rings)):
            ring_path, builder_path = (self._path_after(name, names) for name in (ring, builder))
            if not (self._is_named(ring, ring_path) and self._is_named(builder, builder_path)):
                continue
            if not is_builder_of(RingBuilder.load(builder_path), load_table(ring_path)):
                raise LayoutError(f"{builder} of {self.manifest} is refused: {ring} is not its ring")

    def _is_named(self, name: str, path: str) -> bool:
        """Return True if a file has the content that the manifest names."""
        entry = self.manifest.files.get(name)
        return entry is not None and self._folder.digest(path) == entry.sha256


def is_builder_of(builder: RingBuilder, table: RingTable) -> bool:
    """Return True if a ring was made from a builder; devices may have been added to this since."""
    return (
        builder.part_power == table.part_power
        and builder.next_part_power == table.next_part_power
        and builder.version >= (table.build_version or 0)
        and list(builder.rows or ()) == list(table.rows)
    )


def check_follows(table: RingTable, present: RingTable) -> None:
    """Raise LayoutError if a ring must not replace another one by itself.

    Partitions are directories, so their number changes by the steps of a part power increase only.
    """
    is_step = table.part_power == present.part_power + 1 == table.next_part_power
    if table.part_power != present.part_power and not is_step:
        raise LayoutError(
            f"its part power is {table.part_power}, that of the present ring {present.part_power}, and this "
            "is no step of a part power increase; remove the present ring to take it"
        )
    versions = table.build_version, present.build_version
    if None not in versions and (table.build_version or 0) < (present.build_version or 0):
        raise LayoutError("its version is {}, that of the present ring {}".format(*versions))


# --- the controller's side ----------------------------------------------------------------------------


def create_keys(swift_dir: str, cluster: str = "") -> TrustedKeys:
    """Create ``layout.key`` and ``layout.pub`` of a new layout, with a new id of the cluster by default.

    Raises LayoutError if one of them exists, OSError.
    """
    for name in (PRIVATE_KEY, PUBLIC_KEYS):
        if os.path.lexists(f"{swift_dir}/{name}"):
            raise LayoutError(f"{swift_dir}/{name} exists")
    key = new_private_key()
    public = public_key_of(key)
    trusted = TrustedKeys(cluster or uuid.uuid4().hex, {key_id_of(public): public})
    _write_key_file(swift_dir, PRIVATE_KEY, render_private_key(key))
    _write_key_file(swift_dir, PUBLIC_KEYS, render_trusted_keys(trusted))
    return trusted


def _write_key_file(swift_dir: str, name: str, text: str) -> None:
    folder = LayoutFolder(swift_dir)
    mode = _FILE_MODE if name == PUBLIC_KEYS else 0o600
    durable.replace_file(folder.disk, folder.path_of(name), text.encode("ascii"), mode=mode)
    give_owner(folder.path_of(name), folder.owner_model())


def prepare_next_key(swift_dir: str) -> TrustedKeys:
    """Create the key that will follow ``layout.key``, and trust it as well; return the trusted keys.

    The nodes need the new ``layout.pub`` before ``use_next_key``. Raises LayoutError if there is one already
    or no layout; OSError.
    """
    trusted = LayoutFolder(swift_dir).trusted_keys()
    if trusted is None or os.path.lexists(f"{swift_dir}/{NEXT_KEY}"):
        raise LayoutError(f"{swift_dir} has no {PUBLIC_KEYS}, or has {NEXT_KEY} already")
    key = new_private_key()
    public = public_key_of(key)
    trusted = TrustedKeys(trusted.cluster, {**trusted.keys, key_id_of(public): public})
    _write_key_file(swift_dir, NEXT_KEY, render_private_key(key))
    _write_key_file(swift_dir, PUBLIC_KEYS, render_trusted_keys(trusted))
    return trusted


def use_next_key(swift_dir: str) -> None:
    """Sign with the key of ``prepare_next_key`` from now on. Raises OSError."""
    os.replace(f"{swift_dir}/{NEXT_KEY}", f"{swift_dir}/{PRIVATE_KEY}")
    sync_directory(Disk(), swift_dir)


def drop_former_keys(swift_dir: str) -> TrustedKeys:
    """Trust the key in ``layout.key`` only; return the trusted keys, which the nodes need as well.

    Raises LayoutError while the installed manifest has the signature of another key; OSError.
    """
    folder = LayoutFolder(swift_dir)
    trusted, installed = folder.trusted_keys(), folder.installed()
    public = public_key_of(read_private_key(swift_dir))
    if trusted is None:
        raise LayoutError(f"{folder.path_of(PUBLIC_KEYS)} is missing")
    only = TrustedKeys(trusted.cluster, {key_id_of(public): public})
    if installed is not None:
        parse_verified(installed.data, only)
    _write_key_file(swift_dir, PUBLIC_KEYS, render_trusted_keys(only))
    return only


def read_private_key(swift_dir: str) -> bytes:
    """Return the key in ``layout.key``. Raises LayoutError, also for a file that others can read; OSError."""
    path = f"{swift_dir}/{PRIVATE_KEY}"
    try:
        if os.stat(path).st_mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise LayoutError(f"others may read or change it; chmod 0600 {path}")
        return parse_private_key(read_through_links(path).decode("ascii"))
    except (LayoutError, UnicodeDecodeError) as error:
        raise LayoutError(f"{path}: {error}")


def install(
    swift_dir: str,
    data: bytes,
    files: Mapping[str, bytes],
    *,
    check: TableCheck = accept_table,
    disk: Disk | None = None,
) -> Manifest:
    """Change a node to a manifest; ``files`` has at least the content that the node does not have.

    Raises LayoutError if the manifest is not verified, is older than that of the node, or has a file that is
    missing or must not replace the present one; OSError. In both cases the files that the node has stay
    usable; after an OSError the change may be finished later.
    """
    installation = LayoutFolder(swift_dir, disk=disk).open(data, check=check)
    for name in installation.missing():
        if name in files:
            installation.stage(name, files[name])
    installation.commit()
    return installation.manifest


def publish(
    swift_dir: str,
    private_key: bytes,
    files: Mapping[str, bytes],
    *,
    version: int = 0,
    issued_s: float | None = None,
    check: TableCheck = accept_table,
    clock: Clock | None = None,
    disk: Disk | None = None,
) -> Manifest:
    """Make ``files`` the ring and builder files of the cluster, from this node on; return the manifest.

    ``files`` are all of them. By default the version follows that of this node. With a version and a time a
    caller publishes the same manifest again, which changes nothing. Raises like ``install``, and LayoutError
    if the key is not in layout.pub.
    """
    folder = LayoutFolder(swift_dir, disk=disk)
    trusted = folder.trusted_keys()
    if trusted is None:
        raise LayoutError(f"{folder.path_of(PUBLIC_KEYS)} is missing")
    if key_id_of(public_key_of(private_key)) not in trusted.keys:
        raise LayoutError(f"the public key of {PRIVATE_KEY} is not in {folder.path_of(PUBLIC_KEYS)}")
    if not version:
        current = folder.installed()
        version = (current.manifest.version if current else 0) + 1
    moment_s = (clock or SystemClock()).time() if issued_s is None else issued_s
    entries = {name: FileEntry.of(files[name]) for name in sorted(files)}
    manifest = Manifest(trusted.cluster, version, float(moment_s), entries)
    return install(swift_dir, sign(manifest, private_key), files, check=check, disk=disk)
