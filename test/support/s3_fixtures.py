"""Fixtures of the S3 API: over a memory store, a simulated cluster, and with the lifecycle daemon."""

import json
import xml.etree.ElementTree as ET
from hashlib import md5
from types import SimpleNamespace
from urllib.parse import urlsplit

from swift.base.entity import EntityPath
from swift.base.limits import Limits
from swift.compose import Cluster
from swift.gateway.internal_client import InternalClient
from swift.http import environkeys, fields
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings, parse_users
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.runtime.wsgi import response_or_error
from swift.s3.config.lifecycle import encode_rules
from swift.s3.core.call import Features
from swift.s3.core.names import REGISTRY, registry_path
from swift.s3.core.settings import S3Settings
from swift.s3.daemons.lifecycle import Lifecycle, LifecycleSettings
from swift.s3.filter import S3Api
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import DaemonFixture
from test.support.s3 import signed_headers
from test.support.sim import Answer, MemoryCache

# --- s3front ----------------------------------------------------------------------------------------

# The S3 filter over tempauth and a store that remembers what it was given.


USERS = {
    "user_test_tester": "testing .admin",
    "user_test_tester2": "testing2 .admin",
    "user_test_tester3": "testing3",
    "user_test2_stranger": "testing4 .admin",
}
#: A user of the same account who is no administrator of it.
OTHER = {"user": "test:tester3", "secret": "testing3"}
#: Another administrator of the account.
SECOND = {"user": "test:tester2", "secret": "testing2"}
#: The administrator of another account.
STRANGER = {"user": "test2:stranger", "secret": "testing4"}
HOST = "http://h"


class S3Backend:
    """The application below the filters: PUT stores a body, GET returns it."""

    def __init__(self):
        self.objects = {}
        self.seen = []

    def handle(self, request):
        authorise = request.env.get("swift.authorize")
        denial = authorise(request) if authorise else None
        if denial is not None:
            return denial
        self.seen.append(request)
        if request.method == "PUT" and request.entity.path.obj is not None:
            data = b"".join(iter(lambda: request.body.read(7000), b""))
            if request.body.length is not None and len(data) != request.body.length:
                return Response(499)
            footers = {}
            if "swift.callback.update_footers" in request.env:
                request.env["swift.callback.update_footers"](footers)
            self.objects[request.entity.path[1:]] = data, {**request.headers, **footers}
            return Response(201, {"etag": md5(data).hexdigest()})
        if request.entity is not None and request.entity.path.obj is not None:
            found = self.objects.get(request.entity.path[1:])
            return Response(404) if found is None else Response(200, {"etag": "x"}, found[0])
        return (
            Response(200, {"content-type": "application/json"}, b"[]")
            if request.method == "GET"
            else Response(204)
        )


class S3Fixture:
    def __init__(self, **options):
        self.store = S3Backend()
        told = Telemetry(silent_log())
        auth = Tempauth(self.store, TempauthSettings(), parse_users(USERS), USERS, told)
        self.filter = S3Api(auth, S3Settings.parse(options), told)

    def raw(self, method, path, headers=None, body=b""):
        """Send a request without a signature."""
        target = urlsplit(path)
        sent = {"host": "h", **{name.lower(): value for name, value in (headers or {}).items()}}
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body)))
        env = {"swift.cache": MemoryCache(), "swift.trans_id": "tx1"}
        return response_or_error(
            self.filter.handle, Request(method, target.path, sent, body, query=target.query, env=env)
        )

    def __call__(self, method, path, headers=None, body=b"", **how):
        """Send a signed request."""
        return self.raw(method, path, signed_headers(method, HOST + path, headers, body, **how), body)


def code_of(response):
    assert response.status >= 400, response
    body = response.read_body()
    assert body.startswith(b"<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>")
    return body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


# --- s3world ----------------------------------------------------------------------------------------

# The S3 API over a simulated cluster: filters as they stand in a pipeline, without a network.


class Replied(Answer):
    """A response with its parsed XML document."""

    @property
    def tree(self):
        """Return the document with names without a namespace."""
        root = ET.fromstring(self.body)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    def texts(self, name):
        """Return the texts of all elements of a name."""
        return [element.text or "" for element in self.tree.iter(name)]

    @property
    def code(self):
        """Return the code of an error document; fail if there is none or it is an internal error."""
        assert b"<Error><Code>" in self.body, self
        assert self.status < 500 or self.status in (501, 503), self
        return self.body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


class Bottom:
    """The end of a pipeline, with configurable responses."""

    def __init__(self, app):
        self._app = app
        #: Request → an answer, or None where the cluster is to answer.
        self.instead = lambda request: None

    def handle(self, request):
        """See ``Filter``."""
        return self.instead(request) or self._app.handle(request)


class S3Cluster:
    """S3 over tempauth, slo, versions and symlinks over a simulated cluster; account AUTH_test."""

    def __init__(self, sim, features=None, auth=Tempauth, **options):
        self.sim = sim
        self.bottom = Bottom(sim.app)
        guesser = TypeGuesser("/none", ())
        settings = VersionedWritesSettings(allow_object_versioning=True)
        made = Cluster(SimpleNamespace(limits=Limits()), sim.policies), guesser
        self.app = VersionedWrites(Symlink(self.bottom, SymlinkSettings()), settings, made)
        told = Telemetry(silent_log())
        large = SloSettings.parse({"rate_limit_segments_per_sec": "0"})
        self.slo = Slo(self.app, large, sim.hasher, guesser, silent_log())
        self.auth = auth(self.slo, TempauthSettings(), parse_users(USERS), USERS, told)
        chosen = S3Settings.parse({"min_segment_size": "1", **options})
        self.filter = S3Api(self.auth, chosen, told, features or Features())

    def __call__(self, method, path, headers=None, body=b"", **how):
        """Send a signed request."""
        return self.raw(method, path, signed_headers(method, HOST + path, headers, body, **how), body)

    def raw(self, method, path, headers=None, body=b""):
        """Send a request without a signature."""
        target = urlsplit(path)
        sent = {"host": "h", **{name.lower(): value for name, value in (headers or {}).items()}}
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body)))
        env = {"swift.cache": self.sim.cache, "swift.trans_id": "tx1"}
        request = Request(method, target.path, sent, body, query=target.query, env=env)
        return Replied(response_or_error(self.filter.handle, request))

    def names(self, container):
        """Return the names in a container; none if it does not exist."""
        response = self.sim("GET", f"/AUTH_test/{container}?format=json")
        return [row["name"] for row in json.loads(response.body)] if response.status == 200 else []

    def versioning(self, bucket, status):
        """Set versioning to Enabled or Suspended."""
        document = f"<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>"
        response = self("PUT", f"/{bucket}?versioning", {}, document.encode())
        assert response.status == 200, response


def interfere_before(s3, method, path, do):
    """Call ``do`` just before the next matching request arrives."""
    left = [do]

    def instead(request):
        if left and (request.method, request.raw_path) == (method, path):
            left.pop()()

    s3.bottom.instead = instead


class Multipart:
    """A multipart upload with the steps that tests need."""

    def __init__(self, s3, path="/bucket/key", headers=None):
        self.s3, self.path = s3, path
        response = s3("POST", f"{path}?uploads", headers)
        assert response.status == 200, response
        self.begun = response
        [self.id] = response.texts("UploadId")

    def part(self, number, body, headers=None):
        """Upload one part."""
        return self.s3("PUT", f"{self.path}?partNumber={number}&uploadId={self.id}", headers, body)

    def complete(self, *parts, headers=None, more=""):
        """Complete the upload; ``parts`` are (number, bytes or etag); ``more`` is added to each."""
        texts = [
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag_of(what)}</ETag>{more}</Part>"
            for number, what in parts
        ]
        return self.send(f"<CompleteMultipartUpload>{''.join(texts)}</CompleteMultipartUpload>", headers)

    def send(self, document, headers=None):
        """Complete the upload with any document."""
        return self.s3("POST", f"{self.path}?uploadId={self.id}", headers, document.encode())

    def abort(self):
        """Abort the upload."""
        return self.s3("DELETE", f"{self.path}?uploadId={self.id}")


def etag_of(what):
    """Return the ETag of bytes; text is an ETag already."""
    return what if isinstance(what, str) else md5(what).hexdigest()


# --- lifecycles -------------------------------------------------------------------------------------

# A bucket with a lifecycle over the simulated cluster, and the daemon that carries it out.


BUCKET = EntityPath("a", "b")
SEGMENTS = EntityPath("a", "b+segments")


class LifecycleFixture:
    """A bucket, and passes of the lifecycle daemon a hundred years later."""

    def __init__(self, sim, root, app=None):
        """``app`` is the end of the pipeline, the proxy by default."""
        root.mkdir()
        self.rig = DaemonFixture(root)
        self.sim = sim
        guesser = TypeGuesser("/none", ())
        config = SimpleNamespace(limits=Limits())
        keeper = VersionedWrites(
            Symlink(app or sim.app, SymlinkSettings()),
            VersionedWritesSettings(allow_object_versioning=True),
            (Cluster(config, sim.policies), guesser),
        )
        settings = SloSettings.parse({"rate_limit_segments_per_sec": "0"})
        self.pipeline = Slo(keeper, settings, sim.hasher, guesser, silent_log())
        self.asked = []
        self.client = InternalClient(self.forward, "test", tries=1, must_decrypt=True)
        self.task = self.daemon()

    def forward(self, request):
        self.asked.append((request.method, request.path_qs))
        request.env[environkeys.CACHE] = self.sim.cache
        return self.pipeline.handle(request)

    def daemon(self, **options):
        settings = LifecycleSettings(abort_grace=0.0, **options)
        return Lifecycle(settings, self.client, silent_log())

    def set_rules(self, *rules, versions=None):
        headers = encode_rules(rules)
        if versions is not None:
            headers["x-versions-enabled"] = versions
        self.client.create(BUCKET, headers)
        self.sim.cache.values.clear()
        self.client.create(REGISTRY)
        self.client.put(registry_path("a", "b"), b"")

    def put(self, name, body=b"x", **headers):
        response = self.client.put(BUCKET._replace(obj=name), body, headers)
        return response.get("x-object-version-id")

    def put_large(self, name, parts=("1", "2"), upload="up"):
        self.client.create(SEGMENTS)
        for part in parts:
            self.client.put(SEGMENTS._replace(obj=f"{name}/{upload}/{part}"), b"part")
        manifest = [{"path": f"/b+segments/{name}/{upload}/{part}"} for part in parts]
        headers = {fields.SYSMETA_S3_UPLOAD_ID: upload, fields.SYSMETA_S3_ETAG: "0" * 32 + "-2"}
        with self.client.request(
            "PUT",
            BUCKET._replace(obj=name),
            headers,
            json.dumps(manifest).encode(),
            query="multipart-manifest=put",
        ) as response:
            return response.headers.get("x-object-version-id")

    def run_once(self, task=None):
        self.asked.clear()
        assert self.rig.runner(task or self.task, server_type="container").run_once()
        recon = json.loads((self.rig.root.parent / "recon" / "container.recon").read_text())
        return {name: n for name, n in recon["s3_lifecycle_stats"].items() if n}

    def names(self, path=BUCKET):
        return [row["name"] for row in self.client.listing(path)]

    def versions(self):
        with self.client.request("GET", BUCKET, query="format=json&versions=true") as response:
            return [
                (row["name"], row["version_id"], "deleted" in row["content_type"])
                for row in json.loads(response.read_body())
            ]
