"""Entity tags as this API uses them: MD5 hex, quotes optional (spec: public-api.md §10)."""

from __future__ import annotations


def unquote_etag(text: str) -> str:
    """Return the tag without white space and a pair of double quotes around it.

    An odd quote is a part of it.
    """
    tag = text.strip()
    return tag[1:-1] if len(tag) > 1 and tag[0] == tag[-1] == '"' else tag


class EtagList(frozenset[str]):
    """The tags of an If-Match or If-None-Match header; ``*`` matches any."""

    @classmethod
    def parse(cls, header: str) -> EtagList:
        """Split a comma separated list; weak tags keep their prefix, so that they match nothing strongly."""
        return cls(tag for tag in (unquote_etag(part) for part in header.split(",")) if tag)

    def matches(self, etag: str | None) -> bool:
        """Return True if an existing entity with this (unquoted) tag is meant."""
        return "*" in self or (etag is not None and etag in self)

    def matches_weakly(self, etag: str | None) -> bool:
        """Return True if an existing entity with this (unquoted) tag is meant (RFC 9110 §8.8.3.2)."""
        weak = {unquote_etag(tag[2:]) for tag in self if tag.startswith("W/")}
        return self.matches(etag) or etag in weak
