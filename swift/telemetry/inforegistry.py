"""Content of ``/info``: features register their facts while pipelines are built (spec: public-api.md §4)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping


class InfoRegistry:
    """Public and admin-only facts by feature name; one per process, handed to every filter."""

    def __init__(self) -> None:
        self._public: dict[str, dict[str, object]] = {}
        self._admin: dict[str, dict[str, object]] = {}

    def register(
        self, section: str, facts: Mapping[str, object] | None = None, *, admin: bool = False
    ) -> None:
        """Publish ``facts`` under ``section``; later facts of the same name win.

        Raises ValueError for names that the format reserves.
        """
        if section in ("admin", "disallowed_sections") or "." in section:
            raise ValueError(f"{section!r} cannot be a section of /info")
        target = self._admin if admin else self._public
        target.setdefault(section, {}).update(facts or {})

    def public(self, disallowed: Iterable[str] = ()) -> dict[str, object]:
        """Return all public facts without the ``disallowed`` dotted paths."""
        facts: dict[str, object] = {**copy.deepcopy(self._public)}
        for path in disallowed:
            _remove(facts, path.strip().split("."))
        return facts

    def with_admin(self, disallowed: Iterable[str] = ()) -> dict[str, object]:
        """Return the public facts and the ``admin`` section."""
        disallowed = list(disallowed)
        facts = self.public(disallowed)
        facts["admin"] = {**copy.deepcopy(self._admin), "disallowed_sections": disallowed}
        return facts


def _remove(facts: dict[str, object], path: list[str]) -> None:
    *parents, last = path
    for name in parents:
        nested = facts.get(name)
        if not isinstance(nested, dict):
            return
        facts = nested
    facts.pop(last, None)
