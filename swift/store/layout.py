"""Where things are on a device: paths computed purely from names (spec: object-disk.md §1).

The partition is the one the request names, never recomputed, so that handoffs use the same one.
"""

from __future__ import annotations

from swift.policy.policy import Policy, with_policy_suffix

SUFFIX_DIGITS = 3


def objects_dir(device_path: str, policy: Policy) -> str:
    """``objects[-N]``: all partitions of a policy."""
    return f"{device_path}/{with_policy_suffix('objects', policy.index)}"


def partition_dir(device_path: str, policy: Policy, partition: str) -> str:
    """One partition."""
    return f"{objects_dir(device_path, policy)}/{partition}"


def suffix_of(object_hash: str) -> str:
    """The last three hex digits, which name the suffix directory."""
    return object_hash[-SUFFIX_DIGITS:]


def is_suffix(name: str) -> bool:
    """Whether a name in a partition is a suffix directory: three lower-case hex digits."""
    return len(name) == SUFFIX_DIGITS and not name.strip("0123456789abcdef")


def temporary_dir(device_path: str, policy: Policy) -> str:
    """``tmp[-N]``: files that do not have their final name yet."""
    return f"{device_path}/{with_policy_suffix('tmp', policy.index)}"


def async_dir(device_path: str, policy: Policy) -> str:
    """``async_pending[-N]``: container updates to be delivered later."""
    return f"{device_path}/{with_policy_suffix('async_pending', policy.index)}"


def quarantine_kind(policy: Policy) -> str:
    """The directory below ``quarantined`` that takes damaged hash directories: ``objects[-N]``."""
    return with_policy_suffix("objects", policy.index)
