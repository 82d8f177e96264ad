"""MinIO as a third cluster: an object store in Go, to compare implementation languages.

It gets the same devices, on which it codes objects in its own way, and the same small requests. Clients are
anonymous, because its signatures would measure the load generator. Built with
``go install github.com/minio/minio@latest``.
"""

from __future__ import annotations

import hmac
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from swift.aio.make import mount_devices, unmount_devices
from swift.aio.plan import ClusterPlan, new_plan
from swift.aio.supervisor import accepts_connections
from swift.base.errors import ConfigError
from tools.bench.contestants import Contestant
from tools.bench.wrk import Load

_USER, _KEY = "benchuser", "benchsecret"
_REGION = "us-east-1"
#: What Swift's paths of the test account begin with.
_PREFIX = "/v1/AUTH_test"


class MinioContestant(Contestant):
    """A MinIO server with the devices of ``plan``."""

    def __init__(self, plan: ClusterPlan, binary: Path):
        super().__init__("minio", plan, lambda _kind, _conf: [])
        self._binary = binary

    def start(self) -> None:
        """Mount the devices and start the server; raises ``ConfigError``."""
        plan = self.plan
        for path in (plan.logs, *plan.device_paths()):
            path.mkdir(parents=True, exist_ok=True)
        mount_devices(plan, reserved=True)
        os.environ.update(MINIO_ROOT_USER=_USER, MINIO_ROOT_PASSWORD=_KEY, MINIO_BROWSER="off")
        command = [str(self._binary), "server", "--quiet", "--address", self.host]
        self._children["minio"] = self._run("minio", [*command, *map(str, plan.device_paths())])
        deadline = time.monotonic() + 60
        while not accepts_connections(plan.ip, plan.proxy_port):
            if time.monotonic() > deadline or self._children["minio"].poll() is not None:
                raise ConfigError(f"minio did not start; see {plan.logs}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server and unmount its devices."""
        super().stop()
        unmount_devices(self.plan)

    def request(
        self, method: str, path: str, body: bytes = b"", more: Mapping[str, str] | None = None
    ) -> int:
        """Send a request; a PUT of a container creates a public bucket."""
        path = path.removeprefix(_PREFIX)
        if method == "PUT" and path.count("/") == 1:
            self._signed("PUT", path)
            return self._signed("PUT", path, "policy=", _open_to_all(path[1:]))
        request = urllib.request.Request(f"http://{self.host}{path}", data=body, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return int(answer.status)

    def bounded(self, load: Load) -> Load:
        """See ``Contestant``; with MinIO's path."""
        return super().bounded(replace(load, base=load.base.removeprefix(_PREFIX)))

    def _signed(self, method: str, path: str, query: str = "", body: bytes = b"") -> int:
        """Send a request with a signature of version 4; an existing bucket is no error."""
        now = time.gmtime()
        day, stamp = time.strftime("%Y%m%d", now), time.strftime("%Y%m%dT%H%M%SZ", now)
        content = sha256(body).hexdigest()
        headers = {"host": self.host, "x-amz-content-sha256": content, "x-amz-date": stamp}
        names = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        canonical = "\n".join((method, path, query, lines, names, content))
        scope = f"{day}/{_REGION}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, sha256(canonical.encode()).hexdigest()))
        key = f"AWS4{_KEY}".encode()
        for word in (day, _REGION, "s3", "aws4_request"):
            key = hmac.new(key, word.encode(), sha256).digest()
        signature = hmac.new(key, text.encode(), sha256).hexdigest()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={_USER}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        url = f"http://{self.host}{path}" + (f"?{query}" if query else "")
        request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            if error.code == 409:
                return 409
            raise ConfigError(f"minio: {method} {path}: {error.code} {error.read(200)!r}")


def _open_to_all(bucket: str) -> bytes:
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": ["*"]},
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": [f"arn:aws:s3:::{bucket}/*"],
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()


def minio_contestant(root: Path, binary: Path, sizes: Mapping[str, object]) -> MinioContestant:
    """Return a MinIO contestant below ``root`` with the devices of a layout."""
    plan = new_plan(root / "minio", proxy_port=20080, base_port=20200, cache_port=20311, **sizes)
    shutil.rmtree(plan.root, ignore_errors=True)
    return MinioContestant(plan, binary)
