"""MinIO as a third cluster: an object store in Go, to compare implementation languages.

It gets the same devices, on which it codes objects in its own way, and the same small requests. Built with
``go install github.com/minio/minio@latest``.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from swift.aio.make import mount_devices, unmount_devices
from swift.aio.plan import ClusterPlan, new_plan
from swift.aio.supervisor import accepts_connections
from swift.base.errors import ConfigError
from tools.bench.s3side import S3Contestant


class MinioContestant(S3Contestant):
    """A MinIO server with the devices of ``plan``."""

    access_key, secret_key = "benchuser", "benchsecret"

    def __init__(self, plan: ClusterPlan, binary: Path):
        super().__init__("minio", plan, lambda _kind, _conf: [])
        self._binary = binary

    def start(self) -> None:
        """Mount the devices and start the server; raises ``ConfigError``."""
        plan = self.plan
        for path in (plan.logs, *plan.device_paths()):
            path.mkdir(parents=True, exist_ok=True)
        mount_devices(plan, reserved=True)
        os.environ.update(
            MINIO_ROOT_USER=self.access_key, MINIO_ROOT_PASSWORD=self.secret_key, MINIO_BROWSER="off"
        )
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


def minio_contestant(root: Path, binary: Path, sizes: Mapping[str, object]) -> MinioContestant:
    """Return a MinIO contestant below ``root`` with the devices of a layout."""
    plan = new_plan(root / "minio", proxy_port=20080, base_port=20200, cache_port=20311, **sizes)
    shutil.rmtree(plan.root, ignore_errors=True)
    return MinioContestant(plan, binary)
