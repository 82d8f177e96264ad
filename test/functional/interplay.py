"""Objects of every kind in one cluster, and the requests that they are read with.

A *kind* is what an object is (plain, large, ...), a *form* how it is reached (by a link, as a version, by a
copy, ...). All of them stand for the bytes ``DATA``, which is the rule that most cases are about.
"""

import http.client
import json
from urllib.parse import quote

from test.functional.api_cases_bulk import archive
from test.functional.api_cases_signed import END, signature
from test.support.cluster import Answer

A = "/v1/AUTH_test"
DATA = bytes(range(32, 127))
PARTS = (DATA[:30], DATA[30:31], DATA[31:])
TYPE = "inter/play"
READER = "test2:tester2"
POLICIES = ("gold", "ec")
#: Kinds of objects.
KINDS = ("plain", "slo", "inline", "nested", "dlo")
#: How it is reached.
FORMS = (
    *("itself", "dynamic", "static", "chain", "versioned", "old", "restored", "suspended", "linked-version"),
    *("history", "stack", "copied", "copied-link", "copied-manifest", "expiring", "quota", "into-versions"),
)
#: Forms that need more links than may be followed, or make no sense.
NONSENSE = {("plain", "copied-manifest"), ("dlo", "quota")}
#: Readers.
ASKERS = ("owner", "reader", "tempurl", "container-tempurl")


class World:
    """One account with an object of each kind in each form, and connections that are kept alive."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._connection = http.client.HTTPConnection(cluster.host, timeout=60)
        #: (kind, form, policy) → path, query.
        self.objects = {}
        self.owner("POST", "", {"X-Account-Meta-Temp-URL-Key": "mykey"})
        for policy in POLICIES:
            self._make_containers(policy)
        for policy in POLICIES:
            self._fill(policy)

    def ask(self, method, path, headers=None, body=None, *, query="", user=None):
        """Send a request below the test account; this method quotes ``path``."""
        headers = dict(headers or {})
        if user is not None:
            headers["X-Auth-Token"] = self._cluster.token(user)
        url = A + (f"/{quote(path)}" if path else "") + (f"?{query}" if query else "")
        self._connection.request(method, url, body=body, headers=headers)
        return Answer(self._connection.getresponse())

    def owner(self, method, path, headers=None, body=None, *, query=""):
        """Send a request as the account's owner."""
        return self.ask(method, path, headers, body, query=query, user="test:tester")

    def must(self, *words, **options):
        """Send a request as the owner; fail unless it succeeds."""
        got = self.owner(*words, **options)
        assert 200 <= got.status <= 299, (words, got)
        return got

    def read(self, asker, where, method="GET", headers=None):
        """Return the response that a reader gets."""
        path, query = where
        if asker == "owner":
            return self.owner(method, path, headers, query=query)
        if asker == "reader":
            return self.ask(method, path, headers, query=query, user=READER)
        key = "mykey" if asker == "tempurl" else "ckey"
        signed = signature(method, f"{A}/{path}", key=key)
        more = f"temp_url_sig={signed}&temp_url_expires={END}"
        return self.ask(method, path, headers, query=f"{query}&{more}" if query else more)

    def container(self, name, policy="gold", **headers):
        """Create a container that the reader and holders of the key can read."""
        given = {"X-Container-Read": READER, "X-Container-Meta-Temp-URL-Key": "ckey"}
        given |= {"X-Storage-Policy": policy} | {n.replace("_", "-"): v for n, v in headers.items()}
        self.must("PUT", name, given)

    def make(self, kind, path, headers=None, *, segments="segments-gold"):
        """Create an object of a kind; return the response to its PUT."""
        headers = {"Content-Type": TYPE, "X-Object-Meta-Kind": kind, **(headers or {})}
        if kind == "plain":
            return self.must("PUT", path, headers, DATA)
        if kind == "dlo":
            return self.must("PUT", path, {**headers, "X-Object-Manifest": f"{segments}/part"}, b"")
        entries = [{"path": f"/{segments}/part{number}"} for number in range(3)]
        if kind == "inline":
            entries[1] = {"data": "Pg=="}
        if kind == "nested":
            entries = [{"path": f"/{segments}/inner"}, {"path": f"/{segments}/part2"}]
        return self.must("PUT", path, headers, json.dumps(entries).encode(), query="multipart-manifest=put")

    # the forms

    def _make_containers(self, policy):
        segments = f"segments-{policy}"
        self.container(segments, policy)
        for number, part in enumerate(PARTS):
            self.must("PUT", f"{segments}/part{number}", body=part)
        inner = [{"path": f"/{segments}/part0"}, {"path": f"/{segments}/part1"}]
        self.must("PUT", f"{segments}/inner", body=json.dumps(inner).encode(), query="multipart-manifest=put")
        self.container(f"plain-{policy}", policy)
        self.container(f"links-{policy}", policy)
        self.container(f"versions-{policy}", policy, X_Versions_Enabled="true")
        self.container(f"suspended-{policy}", policy, X_Versions_Enabled="true")
        self.container(f"kept-{policy}", policy)
        self.container(f"history-{policy}", policy, X_History_Location=f"kept-{policy}")
        self.container(f"stack-{policy}", policy, X_Versions_Location=f"kept-{policy}")
        self.container(f"quota-{policy}", policy, X_Container_Meta_Quota_Bytes="100000")

    def _fill(self, policy):
        segments = f"segments-{policy}"
        for kind in KINDS:
            for form in FORMS:
                if (kind, form) not in NONSENSE:
                    make = getattr(self, "_" + form.replace("-", "_"))
                    where = make(kind, policy, segments)
                    self.objects[kind, form, policy] = where if isinstance(where, tuple) else (where, "")

    def _itself(self, kind, policy, segments):
        self.make(kind, f"plain-{policy}/é {kind}", segments=segments)
        return f"plain-{policy}/é {kind}"

    def _linked(self, name, target, policy, **headers):
        given = {"X-Symlink-Target": quote(target), **{n.replace("_", "-"): v for n, v in headers.items()}}
        self.must("PUT", f"links-{policy}/{name}", given, b"")
        return f"links-{policy}/{name}"

    def _dynamic(self, kind, policy, segments):
        return self._linked(f"dynamic-{kind}", f"plain-{policy}/é {kind}", policy)

    def _static(self, kind, policy, segments):
        target = f"plain-{policy}/é {kind}"
        query = "multipart-manifest=get" if kind != "plain" else ""
        etag = self.must("HEAD", target, query=query).headers["etag"]
        return self._linked(f"static-{kind}", target, policy, X_Symlink_Target_Etag=etag)

    def _chain(self, kind, policy, segments):
        return self._linked(f"chain-{kind}", f"links-{policy}/static-{kind}", policy)

    def _versioned(self, kind, policy, segments):
        path = f"versions-{policy}/ver sion {kind}"
        self.must("PUT", path, body=b"former")
        self.make(kind, path, segments=segments)
        return path

    def _old(self, kind, policy, segments):
        path = f"versions-{policy}/old/{kind}"
        version = self.make(kind, path, segments=segments).headers["x-object-version-id"]
        self.must("PUT", path, body=b"newer")
        return path, f"version-id={version}"

    def _restored(self, kind, policy, segments):
        path = f"versions-{policy}/restored {kind}"
        version = self.make(kind, path, segments=segments).headers["x-object-version-id"]
        self.must("PUT", path, body=b"newer")
        self.must("DELETE", path)
        self.must("PUT", path, {"X-Object-Meta-Kind": kind}, b"", query=f"version-id={version}")
        return path

    def _suspended(self, kind, policy, segments):
        container, path = f"suspended-{policy}", f"suspended-{policy}/{kind}"
        self.must("POST", container, {"X-Versions-Enabled": "true"})
        self.must("PUT", path, body=b"former")
        self.must("POST", container, {"X-Versions-Enabled": "false"})
        self.make(kind, path, segments=segments)
        return path

    def _linked_version(self, kind, policy, segments):
        return self._linked(f"version-{kind}", f"versions-{policy}/ver sion {kind}", policy)

    def _history(self, kind, policy, segments):
        path = f"history-{policy}/{kind}"
        self.must("PUT", path, body=b"former")
        self.make(kind, path, segments=segments)
        return path

    def _stack(self, kind, policy, segments):
        path = f"stack-{policy}/{kind}"
        self.make(kind, path, segments=segments)
        self.must("PUT", path, body=b"later")
        self.must("DELETE", path)
        return path

    def _copied(self, kind, policy, segments):
        other = POLICIES[1 - POLICIES.index(policy)]
        self.must("COPY", f"plain-{policy}/é {kind}", {"Destination": f"plain-{other}/copy-{kind}"})
        return f"plain-{other}/copy-{kind}"

    def _copied_link(self, kind, policy, segments):
        target = f"plain-{policy}/link-copy-{kind}"
        headers = {"Destination": target}
        self.must("COPY", f"links-{policy}/static-{kind}", headers, query="symlink=get")
        return target

    def _copied_manifest(self, kind, policy, segments):
        target = f"versions-{policy}/manifest {kind}"
        headers = {"Destination": quote(target)}
        self.must("COPY", f"plain-{policy}/é {kind}", headers, query="multipart-manifest=get")
        return target

    def _expiring(self, kind, policy, segments):
        path = f"versions-{policy}/expiring-{kind}"
        self.make(kind, path, {"X-Delete-At": END}, segments=segments)
        return path

    def _quota(self, kind, policy, segments):
        path = f"quota-{policy}/{kind}"
        self.must("PUT", path, {"X-Copy-From": quote(f"plain-{policy}/é {kind}")}, b"")
        return path

    def _into_versions(self, kind, policy, segments):
        path = f"versions-{policy}/from {kind}"
        self.must("PUT", path, body=b"former")
        self.must("PUT", path, {"X-Copy-From": quote(f"links-{policy}/dynamic-{kind}")}, b"")
        return path

    def extract(self, name, data):
        """Upload one object in an archive."""
        headers = {"Accept": "application/json"}
        body = archive((name, data))
        self._connection.request(
            "PUT",
            f"{A}?extract-archive=tar",
            body=body,
            headers={**headers, "X-Auth-Token": self._cluster.token()},
        )
        return Answer(self._connection.getresponse()).json()


# --- what is asked ------------------------------------------------------------------------------------

SIZE = len(DATA)
#: Name → Range, and the expected bytes or status.
RANGES = {
    "first": ("bytes=0-0", DATA[:1]),
    "across": ("bytes=28-33", DATA[28:34]),
    "open": ("bytes=31-", DATA[31:]),
    "suffix": ("bytes=-70", DATA[-70:]),
    "beyond": (f"bytes={SIZE}-", 416),
}
#: Readings that all readers do.
FEW = ("whole", "head", "across", "suffix", "unless-same")
READINGS = ("whole", "head", *RANGES, "same", "other", "unless-same", "multiple")


def may_read(form, asker):
    """Return True if a reader may read an object in a form: only owners can read old versions."""
    return form != "old" or asker == "owner"


def reading_cases():
    """Return (kind, form, policy, asker, reading) cases, grouped by object."""
    return [
        (kind, form, policy, asker, reading)
        for kind in KINDS
        for form in FORMS
        if (kind, form) not in NONSENSE
        for policy in POLICIES
        for asker in ASKERS
        if not (asker == "container-tempurl" and spans_containers(kind, form))
        for reading in (READINGS if asker == "owner" else FEW[: None if asker == "reader" else 3])
    ]


def spans_containers(kind, form):
    """Return True if an object's bytes are in other containers than its own."""
    linked = form in ("dynamic", "static", "chain", "linked-version", "copied-link")
    return linked or (kind != "plain" and form not in ("copied", "quota", "into-versions"))
