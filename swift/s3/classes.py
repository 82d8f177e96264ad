"""Storage classes: AWS's names for storage policies (decision 0018). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from swift.base.errors import ConfigError
from swift.policy.policies import Policies

#: The class of what no other class is said of.
STANDARD = "STANDARD"
_is_name = re.compile(r"[A-Z][A-Z0-9_]{0,63}").fullmatch


class StorageClasses:
    """Class → the name of its policy, and back from a policy's index."""

    def __init__(
        self,
        policies: Mapping[str, str] | None = None,
        names: Mapping[int, str] | None = None,
        usual: str | None = None,
        indexes: Mapping[str, int] | None = None,
    ):
        """``names`` are the classes of buckets by policy, ``indexes`` the policies of all classes.

        ``usual`` is the policy of ``STANDARD`` where no option says it; None when there is none."""
        self._policies = dict(policies or {})
        self._names = dict(names or {})
        self._usual = usual
        self._indexes = dict(indexes or {})

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._policies, STANDARD)))

    @property
    def is_alone(self) -> bool:
        """Whether there is only one class."""
        return not self._policies

    def of_policy(self, index: int) -> str:
        """The class of a storage policy."""
        return self._names.get(index, STANDARD)

    def is_in(self, name: str, index: int) -> bool:
        """Return True if a class lies in a storage policy."""
        return self._indexes[name] == index if name in self._indexes else self.of_policy(index) == name

    def policy_of(self, name: str) -> str | None:
        """The policy of a class; None of one that there is not."""
        return self._policies.get(name, self._usual if name == STANDARD else None)

    def has(self, name: str) -> bool:
        """Whether there is such a class."""
        return name == STANDARD or name in self._policies

    def __repr__(self) -> str:
        return f"<StorageClasses {', '.join(f'{name}:{policy}' for name, policy in self._policies.items())}>"


def classes_of(options: Sequence[str], policies: Policies) -> StorageClasses:
    """From ``CLASS:policy`` of the option ``storage_classes``; raises ``ConfigError``."""
    found: dict[str, str] = {}
    names: dict[int, str] = {}
    indexes: dict[str, int] = {}
    for option in options:
        name, _, policy_name = (word.strip() for word in option.partition(":"))
        policy = policies.named(policy_name)
        if policy is None or _is_name(name) is None:
            raise ConfigError(f"[filter:s3api] storage_classes: {option!r} is no CLASS:policy")
        if name in found:
            raise ConfigError(f"[filter:s3api] storage_classes: {option!r} names something twice")
        found[name], indexes[name] = policy.name, policy.index
        # Buckets of a policy with several classes have the first.
        names.setdefault(policy.index, name)
    usual = policies.default
    return StorageClasses(found, names, None if usual.index in names else usual.name, indexes)
