"""A bucket with a lifecycle over the simulated cluster, and the daemon that carries it out."""

import json
from types import SimpleNamespace

from swift.base.entity import EntityPath
from swift.base.limits import Limits
from swift.compose import Cluster
from swift.gateway.internal_client import InternalClient
from swift.http import environkeys, fields
from swift.http.mediatypes import TypeGuesser
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.s3.config.lifecycle import stored_rules
from swift.s3.daemons.lifecycle import Lifecycle, LifecycleSettings
from swift.s3.names import REGISTRY, registry_path
from swift.telemetry.log import silent_log
from test.support.daemons import Rig

BUCKET = EntityPath("a", "b")
SEGMENTS = EntityPath("a", "b+segments")


class Bench:
    """A bucket, and passes of the daemon a hundred years later."""

    def __init__(self, sim, root, app=None):
        """``app`` is the end of the pipeline, the proxy by default."""
        root.mkdir()
        self.rig = Rig(root)
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
        headers = stored_rules(rules)
        if versions is not None:
            headers["x-versions-enabled"] = versions
        self.client.create(BUCKET, headers)
        self.sim.cache.values.clear()
        self.client.create(REGISTRY)
        self.client.put(registry_path("a", "b"), b"")

    def put(self, name, body=b"x", **headers):
        answer = self.client.put(BUCKET._replace(obj=name), body, headers)
        return answer.get("x-object-version-id")

    def put_large(self, name, parts=("1", "2"), upload="up"):
        self.client.create(SEGMENTS)
        for part in parts:
            self.client.put(SEGMENTS._replace(obj=f"{name}/{upload}/{part}"), b"part")
        manifest = [{"path": f"/b+segments/{name}/{upload}/{part}"} for part in parts]
        headers = {fields.SYSMETA_S3_UPLOAD_ID: upload, fields.SYSMETA_S3_ETAG: "0" * 32 + "-2"}
        with self.client.ask(
            "PUT",
            BUCKET._replace(obj=name),
            headers,
            json.dumps(manifest).encode(),
            query="multipart-manifest=put",
        ) as response:
            return response.headers.get("x-object-version-id")

    def once(self, task=None):
        self.asked.clear()
        assert self.rig.runner(task or self.task, server_type="container").once()
        recon = json.loads((self.rig.root.parent / "recon" / "container.recon").read_text())
        return {name: n for name, n in recon["s3_lifecycle_stats"].items() if n}

    def names(self, path=BUCKET):
        return [row["name"] for row in self.client.listing(path)]

    def versions(self):
        with self.client.ask("GET", BUCKET, query="format=json&versions=true") as response:
            return [
                (row["name"], row["version_id"], "deleted" in row["content_type"])
                for row in json.loads(response.read_body())
            ]
