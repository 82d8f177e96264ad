"""What a store may answer after faults: acknowledged requests count, unacknowledged ones may or may not.

A ledger belongs to names that only one thread changes. It refuses to know how requests are sent.
"""

from hashlib import md5


class Entry:
    """One object: the bodies and the colours (a header set by POST and PUT) that may be found now."""

    def __init__(self):
        self.bodies = {None}
        self.colours = {None}
        self.ever = {None}

    def put(self, body, colour, acknowledged):
        """A PUT of ``body`` and ``colour`` was sent; later reads may see it, or must."""
        self.ever.add(body)
        self.bodies = {body} if acknowledged else self.bodies | {body}
        self.colours = {colour} if acknowledged else self.colours | {colour}

    def post(self, colour, acknowledged):
        """A POST of ``colour`` was sent."""
        self.colours = {colour} if acknowledged else self.colours | {colour}

    def delete(self, acknowledged):
        """A DELETE was sent."""
        self.bodies = {None} if acknowledged else self.bodies | {None}


class Ledger:
    """The entries of one thread's names."""

    def __init__(self):
        self.entries = {}

    def __getitem__(self, name):
        return self.entries.setdefault(name, Entry())

    def check(self, name, answer):
        """Complain unless ``answer`` to a GET of the newest copy is one that the entry allows."""
        entry = self[name]
        if answer.status == 404:
            assert None in entry.bodies, f"{name}: an acknowledged object is lost"
            return
        assert answer.status == 200, (name, answer)
        assert answer.headers["etag"] == md5(answer.body).hexdigest(), f"{name}: the body is not its ETag's"
        assert answer.body in entry.bodies, f"{name}: not what was acknowledged last: {answer.body[:60]!r}"
        colour = answer.headers.get("x-object-meta-colour")
        assert colour in entry.colours, f"{name}: colour {colour}, expected one of {entry.colours}"

    def check_loosely(self, name, answer):
        """Complain about a GET amid faults: it may be stale, but must be whole and ever written."""
        if answer is None or answer.status not in (200, 404):
            return
        body = answer.body if answer.status == 200 else None
        assert body in self[name].ever, f"{name}: never written: {answer}"
        if body is not None:
            assert answer.headers["etag"] == md5(body).hexdigest(), name
