"""Clients of the S3 API: boto3, awscli, rclone, restic, s3cmd, minio-py, s5cmd, SDKs, s3fs with Parquet."""

from __future__ import annotations

import json
import subprocess
import textwrap
from urllib.parse import urlsplit

from test.clients.site import Missing, Outcome, Site, digests


def endpoint(site: Site) -> str:
    """Where the S3 API of a cluster is."""
    parts = urlsplit(site.auth_url)
    return f"{parts.scheme}://{parts.netloc}"


def keys(site: Site) -> dict[str, str]:
    """The variables that the SDKs of AWS read."""
    return {
        "AWS_ACCESS_KEY_ID": site.user,
        "AWS_SECRET_ACCESS_KEY": site.key,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint(site),
    }


def script(site: Site, outcome: Outcome, python: object, text: str) -> None:
    """Run a script that prints a JSON object of what holds."""
    count(outcome, site.run(python, "-W", "ignore", "-c", textwrap.dedent(text), **keys(site)))


def count(outcome: Outcome, done: subprocess.CompletedProcess[str]) -> None:
    """Count what holds by the last line that a script printed, a JSON object."""
    try:
        held = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        held = {f"the script ended: {done.stderr[-600:]}": False}
    for what, holds in held.items():
        outcome.check(what, holds)


def boto3(site: Site) -> Outcome:
    """boto3's transfer manager, whose integrity defaults are those of its release."""
    folder = site.install("boto3", "boto3[crt]")
    version = site.run(folder / "python", "-c", "import boto3; print(boto3.__version__)").stdout.strip()
    outcome = Outcome("boto3 with the CRT", version)
    script(
        site,
        outcome,
        folder / "python",
        """
        import io, json, os, boto3
        from boto3.s3.transfer import TransferConfig
        s3, held = boto3.client("s3"), {}
        s3.create_bucket(Bucket="boto-bucket")
        data = os.urandom(17 << 20)
        config = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
        s3.upload_fileobj(io.BytesIO(data), "boto-bucket", "big", Config=config)
        back = io.BytesIO()
        s3.download_fileobj("boto-bucket", "big", back, Config=config)
        held["a large file comes back"] = back.getvalue() == data
        for name in ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"):
            put = s3.put_object(Bucket="boto-bucket", Key=name, Body=b"x" * 9999, ChecksumAlgorithm=name)
            got = s3.get_object(Bucket="boto-bucket", Key=name, ChecksumMode="ENABLED")
            same = got["Body"].read() == b"x" * 9999 and put[f"Checksum{name}"] == got[f"Checksum{name}"]
            held[f"checksum {name}"] = same
            kind = {"ChecksumAlgorithm": name}
            s3.upload_fileobj(io.BytesIO(data), "boto-bucket", "summed", Config=config, ExtraArgs=kind)
            head = s3.head_object(Bucket="boto-bucket", Key="summed", ChecksumMode="ENABLED")
            held[f"multipart checksum {name}"] = f"Checksum{name}" in head
        s3.copy({"Bucket": "boto-bucket", "Key": "big"}, "boto-bucket", "copy", Config=config)
        held["a large copy"] = s3.get_object(Bucket="boto-bucket", Key="copy")["Body"].read() == data
        sizes = {"PageSize": 3}
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="boto-bucket", PaginationConfig=sizes)
        names = [row["Key"] for page in pages for row in page["Contents"]]
        held["pages of a listing"] = len(names) == 8
        s3.delete_objects(Bucket="boto-bucket", Delete={"Objects": [{"Key": name} for name in names]})
        s3.delete_bucket(Bucket="boto-bucket")
        held["the bucket is gone"] = "boto-bucket" not in [b["Name"] for b in s3.list_buckets()["Buckets"]]
        print(json.dumps(held))
        """,
    )
    return outcome


def awscli(site: Site, count: int = 1000) -> Outcome:
    """aws s3 sync there and back, and some of its other commands."""
    aws = site.install("awscli", "awscli") / "aws"
    outcome = Outcome("awscli", site.run(aws, "--version").stdout.split()[0].partition("/")[2])

    def ask(*words: object) -> str:
        done = site.run(aws, *words, **keys(site))
        outcome.check(f"aws {' '.join(map(str, words[:2]))}: {done.stderr[-300:]}", done.returncode == 0)
        return done.stdout

    source, back = site.files("aws-files", count, large=20 << 20), site.folder / "aws-back"
    ask("s3", "mb", "s3://aws-bucket")
    ask("s3", "sync", source, "s3://aws-bucket/tree", "--only-show-errors")
    outcome.check("a second sync has nothing to do", not ask("s3", "sync", source, "s3://aws-bucket/tree"))
    ask("s3", "sync", "s3://aws-bucket/tree", back, "--only-show-errors")
    outcome.check("the same bytes come back", digests(back) == digests(source))
    ask("s3", "cp", "s3://aws-bucket/tree/large.bin", "s3://aws-bucket/copied")
    ask("s3", "mv", "s3://aws-bucket/copied", "s3://aws-bucket/moved")
    ask("s3", "ls", "s3://aws-bucket/", "--summarize", "--recursive")
    ask("s3api", "head-object", "--bucket", "aws-bucket", "--key", "moved", "--checksum-mode", "ENABLED")
    ask("s3", "rb", "s3://aws-bucket", "--force")
    return outcome


def rclone(site: Site, count: int = 500) -> Outcome:
    """rclone's S3 backend."""
    program = site.find("rclone", "rclone")
    outcome = Outcome("rclone (S3)", site.run(program, "version").stdout.split()[1])
    remote = {
        "RCLONE_CONFIG_OURS_TYPE": "s3",
        "RCLONE_CONFIG_OURS_PROVIDER": "Other",
        "RCLONE_CONFIG_OURS_ACCESS_KEY_ID": site.user,
        "RCLONE_CONFIG_OURS_SECRET_ACCESS_KEY": site.key,
        "RCLONE_CONFIG_OURS_ENDPOINT": endpoint(site),
        "RCLONE_CONFIG_OURS_UPLOAD_CUTOFF": "5M",
    }

    def ask(*words: object) -> None:
        done = site.run(program, "--config", "/dev/null", *words, **remote)
        outcome.check(f"rclone {words[0]}: {done.stderr[-300:]}", done.returncode == 0)

    source, back = site.files("rclone-s3-files", count, large=12 << 20), site.folder / "rclone-s3-back"
    ask("mkdir", "ours:rclone-bucket")
    ask("sync", source, "ours:rclone-bucket/tree", "--transfers", 16)
    ask("check", source, "ours:rclone-bucket/tree", "--checkers", 16)
    ask("check", "--download", source, "ours:rclone-bucket/tree")
    ask("copy", "ours:rclone-bucket/tree/d1", "ours:rclone-bucket/copied")
    ask("moveto", "ours:rclone-bucket/tree/large.bin", "ours:rclone-bucket/renamed.bin")
    ask("moveto", "ours:rclone-bucket/renamed.bin", "ours:rclone-bucket/tree/large.bin")
    ask("copy", "ours:rclone-bucket/tree", back)
    outcome.check("the same bytes come back", digests(back) == digests(source))
    ask("cleanup", "ours:rclone-bucket")
    ask("purge", "ours:rclone-bucket")
    return outcome


def restic(site: Site) -> Outcome:
    """restic's S3 backend: a snapshot is made, checked, restored."""
    program = site.find("restic", "restic")
    outcome = Outcome("restic (S3)", site.run(program, "version").stdout.split()[1])
    repository = f"s3:{endpoint(site)}/restic-bucket/repository"

    def ask(*words: object) -> None:
        done = site.run(
            program, "-r", repository, *words, RESTIC_PASSWORD="secret", timeout_s=900, **keys(site)
        )
        outcome.check(f"restic {words[0]}: {done.stderr[-300:]}", done.returncode == 0)

    source, target = site.files("restic-s3-files", 300, large=8 << 20), site.folder / "restic-s3-back"
    ask("init")
    ask("backup", source)
    (source / "more.bin").write_bytes(b"more" * 1000)
    ask("backup", source)
    ask("forget", "--keep-last", 1, "--prune")
    ask("check", "--read-data")
    ask("restore", "latest", "--target", target)
    outcome.check("the same bytes come back", digests(target / str(source)[1:]) == digests(source))
    return outcome


def s3cmd(site: Site, count: int = 100) -> Outcome:
    """s3cmd: sync, multipart, ACLs, deleting a tree."""
    program = site.install("s3cmd", "s3cmd", "python-magic") / "s3cmd"
    outcome = Outcome("s3cmd", site.run(program, "--version").stdout.split()[-1])
    host = urlsplit(endpoint(site)).netloc
    options = (
        *("--config=/dev/null", f"--access_key={site.user}", f"--secret_key={site.key}", "--no-ssl"),
        *(f"--host={host}", f"--host-bucket={host}", "--region=us-east-1", "--multipart-chunk-size-mb=5"),
    )

    def ask(*words: object) -> str:
        done = site.run(program, *options, *words)
        outcome.check(f"s3cmd {words[0]}: {done.stderr[-300:]}", done.returncode == 0)
        return done.stdout

    source, back = site.files("s3cmd-files", count, large=12 << 20), site.folder / "s3cmd-back"
    back.mkdir()
    ask("mb", "s3://s3cmd-bucket")
    ask("sync", f"{source}/", "s3://s3cmd-bucket/tree/")
    ask("ls", "-r", "s3://s3cmd-bucket")
    ask("sync", "s3://s3cmd-bucket/tree/", f"{back}/")
    outcome.check("the same bytes come back", digests(back) == digests(source))
    ask("cp", "s3://s3cmd-bucket/tree/large.bin", "s3://s3cmd-bucket/copied")
    ask("setacl", "--acl-public", "s3://s3cmd-bucket")
    ask("info", "s3://s3cmd-bucket")
    ask("multipart", "s3://s3cmd-bucket")
    ask("del", "-r", "-f", "s3://s3cmd-bucket")
    ask("rb", "s3://s3cmd-bucket")
    return outcome


def minio(site: Site) -> Outcome:
    """minio-py."""
    folder = site.install("minio", "minio")
    version = site.run(folder / "python", "-c", "import minio; print(minio.__version__)").stdout.strip()
    outcome = Outcome("minio-py", version)
    script(
        site,
        outcome,
        folder / "python",
        """
        import io, json, os
        from datetime import timedelta
        from minio import Minio
        from minio.commonconfig import CopySource, ComposeSource, Tags
        from minio.versioningconfig import VersioningConfig, ENABLED
        host = os.environ["AWS_ENDPOINT_URL"].partition("//")[2]
        user, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        m = Minio(endpoint=host, secure=False, region="us-east-1", access_key=user, secret_key=secret)
        held, data, size, b = {}, os.urandom(11 << 20), 11 << 20, {"bucket_name": "minio-bucket"}
        def at(name):
            return {**b, "object_name": name}
        m.make_bucket(**b)
        m.put_object(**at("big"), data=io.BytesIO(data), length=size, part_size=5 << 20)
        held["multipart"] = m.get_object(**at("big")).read() == data
        m.put_object(**at("stream"), data=io.BytesIO(data), length=-1, part_size=5 << 20)
        held["a stream"] = m.stat_object(**at("stream")).size == size
        m.copy_object(**at("copy"), source=CopySource(**at("big")))
        held["copy"] = m.stat_object(**at("copy")).size == size
        parts = [ComposeSource(**at(name)) for name in ("big", "copy")]
        m.compose_object(**at("both"), sources=parts)
        held["compose"] = m.stat_object(**at("both")).size == 2 * size
        held["range"] = m.get_object(**at("big"), offset=100, length=50).read() == data[100:150]
        tags = Tags.new_object_tags()
        tags["a"] = "b"
        m.set_object_tags(**at("big"), tags=tags)
        held["tags"] = dict(m.get_object_tags(**at("big"))) == {"a": "b"}
        m.set_bucket_versioning(**b, config=VersioningConfig(status=ENABLED))
        held["versioning"] = m.get_bucket_versioning(**b).status == ENABLED
        names = [o.object_name for o in m.list_objects(**b, recursive=True)]
        held["listing"] = names == ["big", "both", "copy", "stream"]
        url = m.presigned_get_object(**at("big"), expires=timedelta(minutes=1))
        import urllib.request
        held["a signed link"] = urllib.request.urlopen(url).read() == data
        for o in list(m.list_objects(**b, recursive=True, include_version=True)):
            m.remove_object(**at(o.object_name), version_id=o.version_id)
        m.remove_bucket(**b)
        held["the bucket is gone"] = not m.bucket_exists(**b)
        print(json.dumps(held))
        """,
    )
    return outcome


def parquet(site: Site) -> Outcome:
    """A Parquet data set written and read by pyarrow over s3fs."""
    folder = site.install("s3fs", "s3fs", "pyarrow")
    version = site.run(folder / "python", "-c", "import s3fs; print(s3fs.__version__)").stdout.strip()
    outcome = Outcome("s3fs and pyarrow", version)
    script(
        site,
        outcome,
        folder / "python",
        """
        import json, os, pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq, s3fs
        from pyarrow import fs as pafs
        held = {}
        url = os.environ["AWS_ENDPOINT_URL"]
        fs = s3fs.S3FileSystem(endpoint_url=url)
        fs.mkdir("parquet-bucket")
        table = pa.table({"n": range(200000), "kind": [str(n % 3) for n in range(200000)]})
        pq.write_to_dataset(table, "parquet-bucket/one", partition_cols=["kind"], filesystem=fs)
        found = ds.dataset("parquet-bucket/one", filesystem=fs, partitioning="hive").to_table()
        held["written and read by s3fs"] = sum(found["n"].to_pylist()) == sum(range(200000))
        own = pafs.S3FileSystem(endpoint_override=url, region="us-east-1")
        pq.write_to_dataset(table, "parquet-bucket/two", partition_cols=["kind"], filesystem=own)
        found = ds.dataset("parquet-bucket/two", filesystem=own, partitioning="hive").to_table()
        held["written and read by Arrow"] = sum(found["n"].to_pylist()) == sum(range(200000))
        with fs.open("parquet-bucket/large", "wb") as out:
            for _ in range(15):
                out.write(b"y" * (1 << 20))
        held["a large file"] = fs.info("parquet-bucket/large")["size"] == 15 << 20
        fs.rm("parquet-bucket", recursive=True)
        held["removed"] = not fs.exists("parquet-bucket")
        print(json.dumps(held))
        """,
    )
    return outcome


def s5cmd(site: Site) -> Outcome:
    """The s5cmd command: many files up and down, moved, and a bucket with versions emptied."""
    program = site.install("s5cmd", "s5cmd") / "s5cmd"
    outcome = Outcome("s5cmd", site.run(program, "version").stdout.strip().partition("-")[0])
    address = {**keys(site), "AWS_REGION": "us-east-1"}

    def run(*words: object) -> bool:
        return site.run(program, "--endpoint-url", endpoint(site), *words, **address).returncode == 0

    def names(pattern: str) -> int:
        listed = site.run(program, "--endpoint-url", endpoint(site), "ls", pattern, **address)
        return len(listed.stdout.splitlines())

    source, back = site.files("s5cmd", 60, large=60 << 20), site.folder / "s5cmd-back"
    outcome.check("a bucket", run("mb", "s3://s5cmd-bucket"))
    outcome.check("all files up", run("cp", f"{source}/", "s3://s5cmd-bucket/in/"))
    outcome.check("all are listed", names("s3://s5cmd-bucket/in/*") == len(digests(source)))
    outcome.check("all are moved", run("mv", "s3://s5cmd-bucket/in/*", "s3://s5cmd-bucket/moved/"))
    outcome.check("none is left behind", names("s3://s5cmd-bucket/in/*") == 0)
    outcome.check("all files down", run("cp", "s3://s5cmd-bucket/moved/*", f"{back}/"))
    outcome.check("they are the same", digests(back) == digests(source))
    outcome.check("a sync finds nothing to do", run("sync", f"{source}/", "s3://s5cmd-bucket/moved/"))
    run("bucket-version", "--set", "Enabled", "s3://s5cmd-bucket")
    for _ in range(2):
        run("cp", f"{source}/", "s3://s5cmd-bucket/versions/")
    outcome.check("all versions are removed", run("rm", "--all-versions", "s3://s5cmd-bucket/*"))
    outcome.check("the bucket is gone", run("rb", "s3://s5cmd-bucket"))
    return outcome


def aws_sdk_js(site: Site) -> Outcome:
    """AWS's SDK for JavaScript, version 3."""
    npm, node = site.find("npm", "npm"), site.find("node", "nodejs")
    folder = site.folder / "aws-sdk-js"
    folder.mkdir(exist_ok=True)
    packages = ("@aws-sdk/client-s3", "@aws-sdk/lib-storage", "@aws-sdk/s3-request-presigner")
    done = site.run(npm, "install", "--silent", "--prefix", folder, *packages)
    if done.returncode:
        raise Missing(f"npm cannot install {packages[0]}: {done.stderr.strip()[-200:]}")
    package = json.loads((folder / "node_modules/@aws-sdk/client-s3/package.json").read_text())
    outcome = Outcome("aws-sdk-js", package["version"])
    text = """
    const s3lib = require("@aws-sdk/client-s3"), { Upload } = require("@aws-sdk/lib-storage");
    const { getSignedUrl } = require("@aws-sdk/s3-request-presigner");
    (async () => {
      const s3 = new s3lib.S3Client({ endpoint: process.env.AWS_ENDPOINT_URL, region: "us-east-1",
        forcePathStyle: true }), held = {}, Bucket = "js-bucket";
      const send = (name, more = {}) => s3.send(new s3lib[name + "Command"]({ Bucket, ...more }));
      await send("CreateBucket");
      await send("PutBucketVersioning", { VersioningConfiguration: { Status: "Enabled" } });
      const data = Buffer.alloc(12 << 20, "x");
      await new Upload({ client: s3, params: { Bucket, Key: "big", Body: data } }).done();
      const got = await (await send("GetObject", { Key: "big" })).Body.transformToByteArray();
      held["a large file comes back"] = Buffer.compare(Buffer.from(got), data) === 0;
      const first = await send("PutObject", { Key: "k", Body: "1", ChecksumAlgorithm: "SHA256" });
      await send("PutObject", { Key: "k", Body: "2" });
      const old = await send("GetObject", { Key: "k", VersionId: first.VersionId });
      held["an old version"] = await old.Body.transformToString() === "1";
      const url = await getSignedUrl(s3, new s3lib.GetObjectCommand({ Bucket, Key: "k" }));
      held["a signed link"] = await (await fetch(url)).text() === "2";
      const rows = (await send("ListObjectVersions")).Versions;
      held["versions are listed"] = rows.length === 3;
      const Objects = rows.map(row => ({ Key: row.Key, VersionId: row.VersionId }));
      held["all are deleted"] = (await send("DeleteObjects", { Delete: { Objects } })).Errors === undefined;
      await send("DeleteBucket");
      const gone = send("HeadBucket").then(() => false, error => error.name === "NotFound");
      held["the bucket is gone"] = await gone;
      console.log(JSON.stringify(held));
    })().catch(error => { console.error(error); process.exit(1); });
    """
    (folder / "try.js").write_text(textwrap.dedent(text))
    count(outcome, site.run(node, folder / "try.js", **keys(site)))
    return outcome
