"""Programs that keep archives: git-annex, Barman, Docker's registry with both drivers, Zarr over Swift."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

from test.clients.s3 import endpoint, keys, script
from test.clients.site import Outcome, Site, digests
from test.support.processes import free_ports


def git_annex(site: Site) -> Outcome:
    """git-annex with a special remote of the kind S3."""
    site.find("git-annex", "git-annex")
    version = site.run("git-annex", "version", "--raw").stdout.strip()
    outcome = Outcome("git-annex", version)
    folder = site.files("annex", 40, large=12 << 20)
    before = digests(folder)
    address = urlsplit(endpoint(site))

    def git(*words: object) -> bool:
        done = site.run("git", "-C", folder, *words, **keys(site))
        return done.returncode == 0

    for words in (
        ("init", "-q"),
        ("config", "user.email", "a@example.org"),
        ("config", "user.name", "a"),
        ("config", "annex.security.allowed-ip-addresses", "all"),
        ("annex", "init", "here"),
    ):
        git(*words)
    remote = ("type=S3", "encryption=none", "bucket=annex-bucket", "chunk=5MiB", "requeststyle=path")
    place = (f"host={address.hostname}", f"port={address.port}", "protocol=http")
    outcome.check("a remote", git("annex", "initremote", "s3", *remote, *place))
    outcome.check("files are added", git("annex", "add", ".") and git("commit", "-qm", "all"))
    outcome.check("all are copied", git("annex", "copy", "--quiet", "--to", "s3"))
    outcome.check("the remote is checked", git("annex", "fsck", "--quiet", "--from", "s3"))
    outcome.check("the copies here are dropped", git("annex", "drop", "--quiet"))
    outcome.check("all come back", git("annex", "get", "--quiet"))
    outcome.check("they are the same", {n: d for n, d in digests(folder).items() if n in before} == before)
    return outcome


_REGISTRY = """version: 0.1
log: {{level: error}}
http: {{addr: "127.0.0.1:{port}"}}
storage:
  delete: {{enabled: true}}
  redirect: {{disable: true}}
  {driver}: {options}
"""


def _registry(site: Site, driver: str, options: Mapping[str, object]) -> Outcome:
    program = site.find("docker-registry", "docker-registry")
    version = site.run(program, "--version").stdout.split()[-1]
    outcome = Outcome(f"docker-registry, driver {driver}", version)
    (port,) = free_ports(1)
    conf = site.folder / f"registry-{driver}.yml"
    conf.write_text(_REGISTRY.format(port=port, driver=driver, options=json.dumps(options)))
    server = subprocess.Popen(
        [program, "serve", conf], env=site.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _use_registry(outcome, f"http://127.0.0.1:{port}/v2/")
    finally:
        server.terminate()
        server.wait()
    return outcome


def _use_registry(outcome: Outcome, base: str) -> None:
    """Push a layer in pieces and a manifest; pull and delete them."""

    def ask(method: str, url: str, data: bytes | None = None, **headers: str) -> tuple[int, str, bytes]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(urljoin(base, url), data, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.headers.get("Location", ""), response.read()
        except urllib.error.HTTPError as error:
            return error.code, "", error.read()

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if ask("GET", base)[0] == 200:
                break
        except urllib.error.URLError:
            time.sleep(0.1)
    layer = b"layer " * (2 << 20)
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    _status, place, _body = ask("POST", "box/blobs/uploads/", b"")
    half = len(layer) // 2
    octets = "application/octet-stream"
    status, place, _body = ask("PATCH", place, layer[:half], Content_Type=octets)
    outcome.check("a piece", status == 202)
    status, place, _body = ask("PATCH", place, layer[half:], Content_Type=octets)
    outcome.check("another piece", status == 202)
    mark = "&" if "?" in place else "?"
    outcome.check("a layer", ask("PUT", f"{place}{mark}digest={digest}", b"")[0] == 201)
    kind = "application/vnd.oci.image.manifest.v1+json"
    part = {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": len(layer)}
    content = {"schemaVersion": 2, "mediaType": kind, "config": part, "layers": [part]}
    manifest = json.dumps(content).encode()
    outcome.check("a manifest", ask("PUT", "box/manifests/one", manifest, Content_Type=kind)[0] == 201)
    outcome.check("tags", json.loads(ask("GET", "box/tags/list")[2]).get("tags") == ["one"])
    outcome.check("pulled", ask("GET", f"box/blobs/{digest}")[2] == layer)
    name = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    outcome.check("deleted", ask("DELETE", f"box/manifests/{name}")[0] == 202)
    outcome.check("gone", ask("GET", "box/manifests/one", Accept=kind)[0] == 404)


def registry_s3(site: Site) -> Outcome:
    """Docker's registry with its S3 driver."""
    script(
        site,
        Outcome("bucket"),
        site.install("boto3", "boto3[crt]") / "python",
        "import boto3; boto3.client('s3').create_bucket(Bucket='registry'); print('{}')",
    )
    options = {"accesskey": site.user, "secretkey": site.key, "region": "us-east-1", "bucket": "registry"}
    return _registry(
        site, "s3", {**options, "regionendpoint": endpoint(site), "secure": False, "v4auth": True}
    )


def registry_swift(site: Site) -> Outcome:
    """Docker's registry with its Swift driver."""
    options = {"authurl": site.auth_url, "username": site.user, "password": site.key}
    return _registry(site, "swift", {**options, "container": "registry-swift", "authversion": 1})


def zarr_swift(site: Site) -> Outcome:
    """Arrays over the Swift API by zarr-swiftstore."""
    folder = site.install("zarr-swift", "zarr-swiftstore", "zarr<3", "numcodecs<0.16", "setuptools<81")
    version = site.run(folder / "pip", "show", "zarr-swiftstore").stdout.split("Version: ")[1].split()[0]
    outcome = Outcome("zarr-swiftstore", version)
    script(
        site,
        outcome,
        folder / "python",
        f"""
        import json, numpy, zarr
        from zarrswift import SwiftStore
        auth = {{"authurl": {site.auth_url!r}, "user": {site.user!r}, "key": {site.key!r}}}
        store = SwiftStore(container="zarr-swift", prefix="one", storage_options=auth)
        root = zarr.group(store=store, overwrite=True)
        data, held = numpy.arange(1_000_000).reshape(1000, 1000), {{}}
        array = root.create_dataset("x", data=data, chunks=(100, 100))
        array[5, 5] = -1
        again = zarr.open(store=store, mode="r")["x"]
        held["written and read"] = bool((again[10:20] == data[10:20]).all() and again[5, 5] == -1)
        held["listed"] = list(zarr.open(store=store, mode="r").array_keys()) == ["x"]
        store.rmdir()
        held["removed"] = not list(store.keys())
        print(json.dumps(held))
        """,
    )
    return outcome


def barman(site: Site) -> Outcome:
    """Barman's commands that archive and restore write-ahead logs of PostgreSQL."""
    folder = site.install("barman", "barman[cloud]", "boto3", "psycopg2-binary")
    version = site.run(folder / "barman-cloud-wal-archive", "--version").stdout.split()[-1]
    outcome = Outcome("barman-cloud", version)
    logs = site.folder / "barman"
    logs.mkdir(exist_ok=True)
    names = [f"0000000100000000000000{number:02X}" for number in range(1, 4)]
    for name in names:
        (logs / name).write_bytes(hashlib.sha256(name.encode()).digest() * (1 << 19))

    def run(command: str, *words: object) -> bool:
        given = (f"--endpoint-url={endpoint(site)}", *words)
        return site.run(folder / f"barman-cloud-{command}", *given, **keys(site)).returncode == 0

    place = ("s3://barman-bucket/base", "main")
    outcome.check("an empty archive", run("check-wal-archive", *place))
    for name, how in zip(names, ((), ("--gzip",), ("--bzip2",)), strict=True):
        outcome.check(f"archived {' '.join(how)}", run("wal-archive", *how, *place, logs / name))
    outcome.check("the archive is not empty", not run("check-wal-archive", *place))
    for name in names:
        back = logs / f"{name}.back"
        restored = run("wal-restore", *place, name, back)
        outcome.check(f"restored {name}", restored and back.read_bytes() == (logs / name).read_bytes())
    return outcome
