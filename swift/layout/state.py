"""The state of a layout: one document that is changed by conditional writes only.

It names the builders by the SHA-256 of their files, which are kept beside it: the builder of now, the one
before the step under way, and the target. The format is ``doc/formats/layout.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.layout.edits import LayoutEdit
from swift.ring.manifest import is_ring_name

FORMAT = 1
CHANGES_KEPT = 100
#: Ways in which dead devices are drained.
OFF, DRY_RUN, ON = "off", "dry-run", "on"


class DamagedLayout(SwiftError):
    """The document is none of a layout."""


@dataclass(frozen=True)
class RingState:
    """A ring by its builders."""

    builder: str
    #: The builder before the step under way; empty when all copies have arrived.
    previous: str = ""
    #: The builder that it goes to; empty if it rests.
    target: str = ""
    #: Copies that move in all, and that have arrived, since the target was set.
    moves_total: int = 0
    moves_done: int = 0
    #: Copies of the step under way.
    moves_now: int = 0
    #: Some of them come from devices that are away, so none reports that it still has them.
    is_from_dead: bool = False
    #: The part power is being increased.
    is_splitting: bool = False

    @property
    def is_open(self) -> bool:
        """Return True until the ring rests."""
        return bool(self.target or self.previous or self.is_splitting)


@dataclass(frozen=True)
class Change:
    """An applied change; builders are those of the rings that it changes, before and after."""

    number: int
    made_s: float
    text: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    #: ``running``, ``done``, ``reverted`` or ``replaced``.
    state: str = "running"
    ended_s: float = 0.0


@dataclass(frozen=True)
class DeadDevice:
    """A device that is away: since when it is seen so, and what was done about it; Unix seconds."""

    since_s: float
    announced_s: float = 0.0
    drained_s: float = 0.0
    #: Ring → weight before it was drained.
    weights: Mapping[str, float] = field(default_factory=dict)
    #: Why it was not drained when its time had come; empty if it was, or is not due.
    refused: str = ""


@dataclass(frozen=True)
class LayoutState:
    """All of it. Times are Unix seconds."""

    #: Id of the cluster, which manifests carry.
    cluster: str
    #: Version of the manifest that belongs to the builders of now, and when it was made.
    version: int
    issued_s: float
    rings: Mapping[str, RingState]
    staged: tuple[LayoutEdit, ...] = ()
    changes: tuple[Change, ...] = ()
    #: Why nothing moves: the operator's note; empty if it goes on.
    paused: str = ""
    #: Share of a step that is made, 1 or less after clients had to wait.
    pace: float = 1.0
    #: When the step under way began, and its bytes.
    step_began_s: float = 0.0
    step_bytes: float = 0.0
    #: Bytes a second that steps had on average; 0: unknown.
    rate: float = 0.0
    #: ``ip/device`` → since when it is away.
    dead: Mapping[str, DeadDevice] = field(default_factory=dict)

    @property
    def is_moving(self) -> bool:
        """Return True until all changes have ended."""
        is_open = any(change.state == "running" for change in self.changes)
        return is_open or any(ring.is_open for ring in self.rings.values())

    def left_s(self, now_s: float) -> float:
        """Return how long the change under way still takes at its rate so far; 0: it is unknown."""
        running = [change for change in self.changes if change.state == "running"]
        done = sum(ring.moves_done for ring in self.rings.values() if ring.is_open)
        total = sum(ring.moves_total for ring in self.rings.values() if ring.is_open)
        if not running or not 0 < done < total:
            return 0.0
        return (now_s - running[-1].made_s) * (total - done) / done

    def with_ring(self, name: str, ring: RingState) -> LayoutState:
        """Return the state with another ring."""
        return replace(self, rings={**self.rings, name: ring})

    def with_change(
        self,
        text: str,
        before: Mapping[str, str],
        after: Mapping[str, str],
        now_s: float,
        *,
        moves: Mapping[str, int] | None = None,
    ) -> LayoutState:
        """Return the state with new targets, and a change about them; one that is under way is replaced.

        ``moves`` are the copies that move in each ring.
        """
        changes = tuple(
            replace(each, state="replaced", ended_s=now_s) if each.state == "running" else each
            for each in self.changes
        )
        number = 1 + max((each.number for each in self.changes), default=0)
        following = replace(self, changes=(*changes, Change(number, now_s, text, before, after)))
        for name, target in after.items():
            total = (moves or {}).get(name, 0)
            ring = replace(following.rings[name], target=target, moves_total=total, moves_done=0)
            following = following.with_ring(name, ring)
        return following

    def blobs(self) -> set[str]:
        """Return the names of all builders that are still needed."""
        found = {text for ring in self.rings.values() for text in (ring.builder, ring.previous, ring.target)}
        for change in self.changes:
            found.update(change.before.values(), change.after.values())
        return found - {""}

    def to_document(self) -> bytes:
        """Return the document, as it is kept."""
        tree = asdict(self)
        tree["format"] = FORMAT
        tree["changes"] = tree["changes"][-CHANGES_KEPT:]
        return json.dumps(tree, sort_keys=True).encode()

    @classmethod
    def from_document(cls, document: bytes) -> LayoutState:
        """Return the state of a document; raise ``DamagedLayout``."""
        try:
            tree = json.loads(document)
            version = tree.pop("format")
            if version != FORMAT:
                raise DamagedLayout(f"the layout has format {version}; this version reads {FORMAT}")
            tree["rings"] = {_ring_name(name): RingState(**ring) for name, ring in tree["rings"].items()}
            tree["staged"] = tuple(map(LayoutEdit.from_json, tree["staged"]))
            tree["changes"] = tuple(Change(**change) for change in tree["changes"])
            tree["dead"] = {str(label): DeadDevice(**dead) for label, dead in tree["dead"].items()}
            return cls(**_typed(tree))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DamagedLayout(f"the layout's document is damaged: {error!r}")


def _ring_name(name: str) -> str:
    """Return the name after a check: it becomes that of files."""
    if not is_ring_name(name):
        raise ValueError(name[:64])
    return name


def _typed(tree: JsonObject) -> JsonObject:
    """Return the fields after a check of their types."""
    kinds = {"cluster": str, "paused": str, "version": int}
    numbers = ("issued_s", "pace", "step_began_s", "step_bytes", "rate")
    for name, kind in kinds.items():
        if not isinstance(tree.get(name), kind):
            raise ValueError(name)
    for name in numbers:
        if not isinstance(tree.get(name), (int, float)):
            raise ValueError(name)
    return tree
