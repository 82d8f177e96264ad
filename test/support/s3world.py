"""The S3 API over a simulated cluster: filters as they stand in a pipeline, without a network."""

import json
import xml.etree.ElementTree as ET
from hashlib import md5
from types import SimpleNamespace
from urllib.parse import urlsplit

from swift.base.limits import Limits
from swift.compose import Cluster
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings, parse_users
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.runtime.wsgi import answered
from swift.s3.api.call import Features
from swift.s3.filter import S3Api
from swift.s3.settings import S3Settings
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.s3 import signed_headers
from test.support.s3front import HOST, USERS
from test.support.sim import Answer


class Told(Answer):
    """An answer and what its document says."""

    @property
    def tree(self):
        """The document, its names without a namespace."""
        root = ET.fromstring(self.body)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    def texts(self, name):
        """The texts of all elements of a name."""
        return [element.text or "" for element in self.tree.iter(name)]

    @property
    def code(self):
        """The code of an error document; it must be one, and no fault of ours."""
        assert b"<Error><Code>" in self.body, self
        assert self.status < 500 or self.status in (501, 503), self
        return self.body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


class Bottom:
    """The end of a pipeline, which may be told to answer otherwise."""

    def __init__(self, app):
        self._app = app
        #: Request → an answer, or None where the cluster is to answer.
        self.instead = lambda request: None

    def handle(self, request):
        """See ``Filter``."""
        return self.instead(request) or self._app.handle(request)


class S3World:
    """S3 over tempauth, slo, versions and symlinks over a simulated cluster; account AUTH_test."""

    def __init__(self, sim, features=None, **options):
        self.sim = sim
        self.bottom = Bottom(sim.app)
        guesser = TypeGuesser("/none", ())
        settings = VersionedWritesSettings(allow_object_versioning=True)
        made = Cluster(SimpleNamespace(limits=Limits()), sim.policies), guesser
        self.app = VersionedWrites(Symlink(self.bottom, SymlinkSettings()), settings, made)
        told = Telemetry(silent_log())
        large = SloSettings.parse({"rate_limit_segments_per_sec": "0"})
        self.slo = Slo(self.app, large, sim.hasher, guesser, silent_log())
        auth = Tempauth(self.slo, TempauthSettings(), parse_users(USERS), USERS, told)
        chosen = S3Settings.parse({"min_segment_size": "1", **options})
        self.filter = S3Api(auth, chosen, told, features or Features())

    def __call__(self, method, path, headers=None, body=b"", **how):
        """A signed request."""
        return self.raw(method, path, signed_headers(method, HOST + path, headers, body, **how), body)

    def raw(self, method, path, headers=None, body=b""):
        """A request as it stands."""
        target = urlsplit(path)
        sent = {"host": "h", **{name.lower(): value for name, value in (headers or {}).items()}}
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body)))
        env = {"swift.cache": self.sim.cache, "swift.trans_id": "tx1"}
        request = Request(method, target.path, sent, body, query=target.query, env=env)
        return Told(answered(self.filter.handle, request))

    def names(self, container):
        """What a container lists, none if there is no such container."""
        answer = self.sim("GET", f"/AUTH_test/{container}?format=json")
        return [row["name"] for row in json.loads(answer.body)] if answer.status == 200 else []

    def versioning(self, bucket, status):
        """Enabled or Suspended."""
        document = f"<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>"
        answer = self("PUT", f"/{bucket}?versioning", {}, document.encode())
        assert answer.status == 200, answer


def meddling(s3, method, path, do):
    """Somebody does something just before the next such request arrives."""
    left = [do]

    def instead(request):
        if left and (request.method, request.raw_path) == (method, path):
            left.pop()()

    s3.bottom.instead = instead


class Multipart:
    """An upload in parts, as far as its test goes."""

    def __init__(self, s3, path="/bucket/key", headers=None):
        self.s3, self.path = s3, path
        answer = s3("POST", f"{path}?uploads", headers)
        assert answer.status == 200, answer
        self.begun = answer
        [self.id] = answer.texts("UploadId")

    def part(self, number, body, headers=None):
        """Upload one."""
        return self.s3("PUT", f"{self.path}?partNumber={number}&uploadId={self.id}", headers, body)

    def complete(self, *parts, headers=None, more=""):
        """``parts`` are (number, bytes or etag); ``more`` stands in each."""
        texts = [
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag_of(what)}</ETag>{more}</Part>"
            for number, what in parts
        ]
        return self.send(f"<CompleteMultipartUpload>{''.join(texts)}</CompleteMultipartUpload>", headers)

    def send(self, document, headers=None):
        """Complete it with any document."""
        return self.s3("POST", f"{self.path}?uploadId={self.id}", headers, document.encode())

    def abort(self):
        """Give it up."""
        return self.s3("DELETE", f"{self.path}?uploadId={self.id}")


def etag_of(what):
    """The ETag of bytes; text is one already."""
    return what if isinstance(what, str) else md5(what).hexdigest()
