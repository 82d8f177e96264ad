"""Clusters asked through the S3 API, as contestants of ``compare``.

Buckets are made with a signature and opened to all, and most requests have none: signatures of many paths
would measure the load generator. Requests for one path only are signed.
"""

from __future__ import annotations

import hmac
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from swift.base.errors import ConfigError
from tools.bench.contestants import Contestant, our_program
from tools.bench.wrk import Load

_REGION = "us-east-1"
#: Prefix of Swift's paths of the test account.
_PREFIX = "/v1/AUTH_test"


class S3Contestant(Contestant):
    """A cluster that gets the same requests through the S3 API."""

    speaks_swift = False
    access_key = secret_key = ""
    #: Appended to the name of a container.
    bucket_suffix = ""

    def request(
        self, method: str, path: str, body: bytes = b"", more: Mapping[str, str] | None = None
    ) -> int:
        """Send a request; a PUT of a container creates a public bucket."""
        path = self._s3_path(path)
        if method == "PUT" and path.count("/") == 1:
            self._signed("PUT", path)
            return self._signed("PUT", path, "policy=", _open_to_all(path[1:]))
        request = urllib.request.Request(f"http://{self.host}{path}", data=body, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return int(answer.status)

    def bounded(self, load: Load) -> Load:
        """See ``Contestant``; with the path of S3, and a signature for a fixed one."""
        load = super().bounded(replace(load, base=self._s3_path(load.base)))
        if load.order != "fixed":
            return load
        headers = self._signed_headers(load.method, load.base, "", "UNSIGNED-PAYLOAD")
        return replace(load, headers=tuple((name, text) for name, text in headers.items() if name != "host"))

    def _s3_path(self, path: str) -> str:
        bucket, slash, key = path.removeprefix(_PREFIX)[1:].partition("/")
        return f"/{bucket}{self.bucket_suffix}{slash}{key}"

    def _signed_headers(self, method: str, path: str, query: str, content: str) -> dict[str, str]:
        """Return the headers with a signature of version 4."""
        now = time.gmtime()
        day, stamp = time.strftime("%Y%m%d", now), time.strftime("%Y%m%dT%H%M%SZ", now)
        headers = {"host": self.host, "x-amz-content-sha256": content, "x-amz-date": stamp}
        names = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        canonical = "\n".join((method, path, query, lines, names, content))
        scope = f"{day}/{_REGION}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, sha256(canonical.encode()).hexdigest()))
        key = f"AWS4{self.secret_key}".encode()
        for word in (day, _REGION, "s3", "aws4_request"):
            key = hmac.new(key, word.encode(), sha256).digest()
        signature = hmac.new(key, text.encode(), sha256).hexdigest()
        credential = f"Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}

    def _signed(self, method: str, path: str, query: str = "", body: bytes = b"") -> int:
        """Send a request with a signature; an existing bucket is no error."""
        headers = self._signed_headers(method, path, query, sha256(body).hexdigest())
        url = f"http://{self.host}{path}" + (f"?{query}" if query else "")
        request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            if error.code == 409:
                return 409
            raise ConfigError(f"{self.name}: {method} {path}: {error.code} {error.read(200)!r}")


class OurS3(S3Contestant):
    """The S3 API of a running cluster of ours, whose servers another contestant starts and stops."""

    bucket_suffix = "-s3"

    def __init__(self, cluster: Contestant):
        super().__init__("s3" if cluster.name == "ours" else f"{cluster.name} s3", cluster.plan, our_program)
        self.access_key, self.secret_key = cluster.plan.user, cluster.plan.key
        self._cluster = cluster

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def usage(self) -> dict[str, tuple[float, int]]:
        """See ``Contestant``; those of the cluster."""
        return self._cluster.usage()

    def pids(self) -> dict[str, list[int]]:
        """See ``Contestant``; those of the cluster."""
        return self._cluster.pids()


def _open_to_all(bucket: str) -> bytes:
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": ["*"]},
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": [f"arn:aws:s3:::{bucket}/*"],
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
