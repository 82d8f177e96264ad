"""Storage policies of a cluster: how objects are kept (spec: ring.md §3, proxy.md §5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.base.truth import is_true
from swift.ec.codec import DEFAULT_EC_TYPE, Codec, CodecError, CodecUnavailable

REPLICATION = "replication"
ERASURE_CODING = "erasure_coding"


def with_policy_suffix(base: str, index: int) -> str:
    """``objects`` for policy 0, ``objects-N`` for the others; likewise async_pending, tmp, ring names."""
    return base if index == 0 else f"{base}-{index}"


@dataclass(frozen=True, slots=True)
class ErasureCode:
    """The geometry of an erasure coded policy."""

    ec_type: str
    data: int
    parity: int
    segment_size: int = 1048576
    duplication: int = 1

    #: Reed-Solomon needs one parity fragment more than the data to be sure of a rebuild.
    MIN_PARITY = 1

    @property
    def fragments(self) -> int:
        """Distinct fragments: data + parity."""
        return self.data + self.parity

    @property
    def replicas(self) -> int:
        """Fragment archives on disk, which the ring must have exactly."""
        return self.fragments * self.duplication

    @property
    def quorum(self) -> int:
        """Archives that must be durable for a write to succeed."""
        return (self.data + self.MIN_PARITY) * self.duplication


@dataclass(frozen=True, slots=True)
class Policy:
    """An entry of ``[storage-policy:N]``."""

    index: int
    name: str
    aliases: tuple[str, ...] = ()
    is_default: bool = False
    is_deprecated: bool = False
    ec: ErasureCode | None = None
    diskfile_module: str = ""

    @property
    def is_ec(self) -> bool:
        """True if objects are erasure coded."""
        return self.ec is not None

    @property
    def ring_name(self) -> str:
        """The ring file's base name: ``object`` or ``object-N``."""
        return with_policy_suffix("object", self.index)

    def __repr__(self) -> str:
        kind = f"ec {self.ec.data}+{self.ec.parity}" if self.ec else "replication"
        return f"Policy({self.index}, {self.name!r}, {kind})"


_SECTION = "storage-policy:"
_NAME = re.compile(r"[A-Za-z0-9-]+\Z")
_KNOWN = frozenset(("name", "aliases", "default", "deprecated", "policy_type", "diskfile_module"))
_EC_KNOWN = frozenset(
    (
        "ec_type",
        "ec_num_data_fragments",
        "ec_num_parity_fragments",
        "ec_object_segment_size",
        "ec_duplication_factor",
    )
)


class PolicyError(ConfigError):
    """The policies of swift.conf contradict each other or the rules."""


class Policies:
    """Policies by index and by name; names and aliases in any case."""

    __slots__ = ("_by_index", "_by_name", "default")

    def __init__(self, policies: Iterable[Policy]):
        self._by_index = {p.index: p for p in policies}
        self._by_name: dict[str, Policy] = {}
        _check_set(self._by_index)
        for policy in self._by_index.values():
            for name in (policy.name, *policy.aliases):
                if name.lower() in self._by_name:
                    raise PolicyError(f"duplicate policy name or alias {name!r}")
                self._by_name[name.lower()] = policy
        self.default: Policy = next(p for p in self._by_index.values() if p.is_default)

    def get(self, index: int) -> Policy | None:
        """Return the policy of an index, None when unknown."""
        return self._by_index.get(index)

    def named(self, name: str) -> Policy | None:
        """Return the policy of a name or alias, None when unknown."""
        return self._by_name.get(name.lower())

    def of_header(self, text: str | None) -> Policy | None:
        """Return the policy of an index header: empty or missing is 0, anything unknown None."""
        if not text:
            return self._by_index.get(0)
        is_index = text.isascii() and text.isdigit() and len(text) <= 9
        return self._by_index.get(int(text)) if is_index else None

    def __iter__(self) -> Iterator[Policy]:
        return iter(sorted(self._by_index.values(), key=lambda p: p.index))

    def __len__(self) -> int:
        return len(self._by_index)

    def __repr__(self) -> str:
        return f"Policies({list(self)!r})"

    @classmethod
    def single(cls) -> Policies:
        """Return the policies of a swift.conf without policy sections."""
        return cls([Policy(0, "Policy-0", is_default=True)])

    @classmethod
    def parse(cls, sections: Mapping[str, Mapping[str, str]], *, source: str = "swift.conf") -> Policies:
        """Return the policies of a parsed swift.conf; raises ``PolicyError`` with the peer's wording."""
        try:
            found = [
                _parse_one(name, values) for name, values in sections.items() if name.startswith(_SECTION)
            ]
            if not found:
                return cls.single()
            if len(found) == 1 and not found[0].is_default:
                only = found[0]
                found = [
                    Policy(
                        only.index,
                        only.name,
                        only.aliases,
                        True,
                        only.is_deprecated,
                        only.ec,
                        only.diskfile_module,
                    )
                ]
            if len({p.index for p in found}) != len(found):
                raise PolicyError("a policy index is declared twice")
            return cls(found)
        except PolicyError as error:
            raise PolicyError(f"Invalid Storage Policy Configuration in {source} ({error})")


def _check_set(by_index: Mapping[int, Policy]) -> None:
    if 0 not in by_index:
        raise PolicyError("policies are declared but not policy 0")
    defaults = [p for p in by_index.values() if p.is_default]
    if len(defaults) != 1:
        raise PolicyError(f"exactly one policy must be the default, not {len(defaults)}")
    if defaults[0].is_deprecated:
        raise PolicyError(f"the default policy {defaults[0].name!r} is deprecated")


def _parse_one(section: str, values: Mapping[str, str]) -> Policy:
    index_text = section[len(_SECTION) :].strip()
    if not (index_text.isascii() and index_text.isdigit()):
        raise PolicyError(f"policy index {index_text!r} is not a whole number")
    index = int(index_text)
    kind = values.get("policy_type", REPLICATION).strip().lower()
    if kind not in (REPLICATION, ERASURE_CODING):
        raise PolicyError(f"policy {index}: unknown policy_type {kind!r}")
    known = _KNOWN | _EC_KNOWN if kind == ERASURE_CODING else _KNOWN
    unknown = sorted(set(values) - known)
    if unknown:
        raise PolicyError(f"policy {index}: unknown option {unknown[0]!r}")
    names = [values.get("name", "").strip()]
    names += [alias.strip() for alias in values.get("aliases", "").split(",") if alias.strip()]
    for name in names:
        if not _NAME.match(name):
            raise PolicyError(f"policy {index}: invalid name {name!r}")
        if name.lower() == "policy-0" and index != 0:
            raise PolicyError("the name Policy-0 belongs to policy 0")
    aliases = dict.fromkeys(name for name in names[1:] if name.lower() != names[0].lower())
    ec = _parse_ec(index, values) if kind == ERASURE_CODING else None
    deprecated = is_true(values.get("deprecated"))
    if ec and ec.ec_type == "isa_l_rs_vand" and ec.parity >= 5 and not deprecated:
        raise PolicyError(f"policy {index}: isa_l_rs_vand with 5 or more parity must be deprecated")
    return Policy(
        index,
        names[0],
        tuple(aliases),
        is_true(values.get("default")),
        deprecated,
        ec,
        values.get("diskfile_module", "").strip(),
    )


def _positive(index: int, values: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = values.get(name, "" if default is None else str(default)).strip()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise PolicyError(f"policy {index}: {name} must be a positive whole number, not {text!r}")
    return int(text)


def _parse_ec(index: int, values: Mapping[str, str]) -> ErasureCode:
    ec_type = values.get("ec_type", "").strip()
    if not ec_type:
        raise PolicyError(f"policy {index}: ec_type is missing; for a new policy choose {DEFAULT_EC_TYPE}")
    ec = ErasureCode(
        ec_type,
        _positive(index, values, "ec_num_data_fragments"),
        _positive(index, values, "ec_num_parity_fragments"),
        _positive(index, values, "ec_object_segment_size", 1048576),
        _positive(index, values, "ec_duplication_factor", 1),
    )
    try:
        Codec(ec.ec_type, ec.data, ec.parity)
    except CodecUnavailable:
        # Only a proxy and a reconstructor compute: elsewhere, and for the other policies, that is no harm.
        return ec
    except CodecError as error:
        raise PolicyError(f"policy {index}: {error}")
    return ec
