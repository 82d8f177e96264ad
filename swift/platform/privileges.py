"""Users of processes that start as root, and owners of what root makes.

Servers and daemons become the user of their configuration. Tools that work on devices become the owner of
what they work on: servers, which are not root, answer 507 for a partition of root. What stays root gives
what it makes the owner of the directory that holds it.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable

from swift.base.errors import ConfigError
from swift.base.nearest import nearest


def drop_privileges(user: str) -> None:
    """Become ``user`` when started as root; raises ``ConfigError`` for an unknown one."""
    if os.geteuid() != 0:
        return
    entry = find_user(user)
    if entry.pw_uid != 0:
        _become(entry.pw_uid, entry.pw_gid, user)
    os.environ["HOME"] = entry.pw_dir


def find_user(user: str) -> pwd.struct_passwd:
    """Return the entry of a user; raises ``ConfigError`` for an unknown one, naming the nearest."""
    try:
        return pwd.getpwnam(user)
    except KeyError:
        hint = nearest(user, (entry.pw_name for entry in pwd.getpwall()))
        hint = hint or "; set 'user' in [DEFAULT] or create it"
        raise ConfigError(f"unknown user {user}{hint}")


def become_owner(paths: Iterable[str]) -> None:
    """Become the owner of these files and directories when started as root; missing ones are left out.

    Root stays root where everything belongs to it. Raises ``ConfigError`` when they belong to several users.
    """
    if os.geteuid() != 0:
        return
    owners: dict[int, tuple[int, str]] = {}
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if found.st_uid != 0:
            owners.setdefault(found.st_uid, (found.st_gid, path))
    if not owners:
        return
    if len(owners) > 1:
        listed = ", ".join(f"{path} to {_name(uid)}" for uid, (_gid, path) in owners.items())
        raise ConfigError(f"the devices belong to several users ({listed}); run it as each of them")
    ((uid, (gid, _path)),) = owners.items()
    _become(uid, gid, _name(uid))


def inherit_owner(path: str) -> None:
    """Give a file or directory that root made the owner of the directory that holds it; raises OSError."""
    give_owner(path, os.path.dirname(os.path.abspath(path)))


def give_owner(path: str, like: str) -> None:
    """Give a file or directory the owner of another one, when root; raises OSError."""
    if os.geteuid() == 0:
        found = os.stat(like)
        os.chown(path, found.st_uid, found.st_gid, follow_symlinks=False)


def make_directories(path: str) -> None:
    """Make a directory and those above it; new ones get the owner of what is above them. Raises OSError."""
    if os.path.isdir(path):
        return
    make_directories(os.path.dirname(os.path.abspath(path)))
    try:
        os.mkdir(path)
    except FileExistsError:
        # Another process was quicker. A file in its place is an error of what is done next.
        return
    inherit_owner(path)


def _become(uid: int, gid: int, name: str) -> None:
    try:
        os.initgroups(name, gid)
    except OSError:
        os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
