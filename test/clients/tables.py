"""Table formats and arrays of data science over the S3 API: Delta Lake, Iceberg, Lance, Zarr, and engines."""

from __future__ import annotations

from collections.abc import Sequence

from test.clients.s3 import script
from test.clients.site import Outcome, Site

#: Begins each script: the endpoint, credentials, a bucket, and what to report.
_HEAD = """
import json, os, s3fs
held = {}
url, key, secret = (os.environ[n] for n in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
fs = s3fs.S3FileSystem(endpoint_url=url)
bucket = "tables-" + TITLE
fs.mkdir(bucket)
options = {"AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
"""
_TAIL = """
fs.rm(bucket, recursive=True)
held["removed"] = not fs.exists(bucket)
print(json.dumps({what: bool(holds) for what, holds in held.items()}))
"""


def _try(site: Site, title: str, package: str, packages: Sequence[str], text: str) -> Outcome:
    folder = site.install(title, "s3fs", package, *packages)
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    outcome = Outcome(package, site.run(folder / "python", "-c", asked).stdout.strip())
    script(site, outcome, folder / "python", f"TITLE = {title!r}\n{_HEAD}{text}{_TAIL}")
    return outcome


def deltalake(site: Site) -> Outcome:
    """A Delta table with concurrent writers, each of whose commits must stay."""
    return _try(
        site,
        "delta",
        "deltalake",
        ["pyarrow"],
        """
import pyarrow as pa
from concurrent.futures import ThreadPoolExecutor
from deltalake import DeltaTable, write_deltalake
options["AWS_CONDITIONAL_PUT"] = "etag"
place = f"s3://{bucket}/table"
write_deltalake(place, pa.table({"n": [0]}), storage_options=options)
def append(number):
    write_deltalake(place, pa.table({"n": [number]}), mode="append", storage_options=options)
with ThreadPoolExecutor(6) as pool:
    list(pool.map(append, range(1, 25)))
table = DeltaTable(place, storage_options=options)
rows = sorted(table.to_pyarrow_table()["n"].to_pylist())
held["every commit of six writers stays"] = rows == list(range(25))
held["the version counts them"] = table.version() == 24
table.delete("n < 10")
held["rows are deleted"] = DeltaTable(place, storage_options=options).to_pyarrow_table().num_rows == 15
table = DeltaTable(place, storage_options=options)
table.optimize.compact()
held["compacted"] = DeltaTable(place, storage_options=options).to_pyarrow_table().num_rows == 15
old = DeltaTable(place, version=0, storage_options=options)
held["an old version"] = old.to_pyarrow_table().num_rows == 1
""",
    )


def polars(site: Site) -> Outcome:
    """Parquet files written and scanned by Polars, and by DuckDB over fsspec."""
    return _try(
        site,
        "polars",
        "polars",
        ["pyarrow", "duckdb"],
        """
import duckdb, polars as pl
place = f"s3://{bucket}/frame.parquet"
frame = pl.DataFrame({"n": range(100_000), "kind": [str(n % 3) for n in range(100_000)]})
given = {"aws_endpoint_url": url, "aws_allow_http": "true", "aws_region": "us-east-1",
         "aws_access_key_id": key, "aws_secret_access_key": secret}
frame.write_parquet(place, storage_options=given)
found = pl.scan_parquet(place, storage_options=given).group_by("kind").len().collect()
held["written and scanned by Polars"] = sorted(found["len"].to_list()) == [33333, 33333, 33334]
base = duckdb.connect()
base.register_filesystem(fs)
total = base.sql(f"select sum(n) from read_parquet('{place}')").fetchall()
held["read by DuckDB"] = total == [(sum(range(100_000)),)]
base.sql(f"copy (select 1 as a) to 's3://{bucket}/out.parquet' (format parquet)")
held["written by DuckDB"] = base.sql(f"select a from 's3://{bucket}/out.parquet'").fetchall() == [(1,)]
""",
    )


def lancedb(site: Site) -> Outcome:
    """A table of vectors."""
    return _try(
        site,
        "lance",
        "lancedb",
        [],
        """
import lancedb
base = lancedb.connect(f"s3://{bucket}/lance", storage_options={
    "endpoint": url, "allow_http": "true", "region": "us-east-1",
    "aws_access_key_id": key, "aws_secret_access_key": secret})
rows = [{"vector": [float(n), float(n)], "item": n} for n in range(100)]
table = base.create_table("t", data=rows)
table.add([{"vector": [500.0, 500.0], "item": 500}])
held["searched"] = table.search([499.0, 499.0]).limit(1).to_list()[0]["item"] == 500
table.delete("item < 50")
held["rows are deleted"] = base.open_table("t").count_rows() == 51
held["versions"] = len(table.list_versions()) == 3
""",
    )


def pyiceberg(site: Site) -> Outcome:
    """An Iceberg table with a catalog in SQLite."""
    return _try(
        site,
        "iceberg",
        "pyiceberg",
        ["pyarrow", "sqlalchemy"],
        """
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
catalog = SqlCatalog("c", uri="sqlite://", warehouse=f"s3://{bucket}/warehouse", **{
    "s3.endpoint": url, "s3.access-key-id": key, "s3.secret-access-key": secret, "s3.region": "us-east-1"})
catalog.create_namespace("n")
data = pa.table({"id": pa.array(range(1000), pa.int64())})
table = catalog.create_table("n.t", data.schema)
table.append(data)
table.append(data)
held["two snapshots"] = len(table.snapshots()) == 2
held["scanned"] = catalog.load_table("n.t").scan(row_filter="id < 10").to_arrow().num_rows == 20
table.delete("id < 500")
held["rows are deleted"] = catalog.load_table("n.t").scan().to_arrow().num_rows == 1000
""",
    )


def zarr(site: Site) -> Outcome:
    """Arrays in chunks, by fsspec and by obstore."""
    return _try(
        site,
        "zarr",
        "zarr",
        ["obstore", "numpy"],
        """
import numpy, zarr
from obstore.store import S3Store
from zarr.storage import FsspecStore, ObjectStore
data = numpy.arange(1_000_000).reshape(1000, 1000)
stores = {
    "s3fs": lambda: FsspecStore.from_url(f"s3://{bucket}/a", storage_options={"endpoint_url": url}),
    "obstore": lambda: ObjectStore(S3Store(bucket, prefix="b", endpoint=url, access_key_id=key,
        secret_access_key=secret, region="us-east-1", client_options={"allow_http": True},
        virtual_hosted_style_request=False)),
}
for name, make in stores.items():
    group = zarr.open_group(store=make(), mode="w")
    array = group.create_array("x", shape=data.shape, chunks=(100, 100), dtype=data.dtype)
    array[:] = data
    array[5, 5] = -1
    again = zarr.open_group(store=make(), mode="r")["x"]
    held[f"written and read by {name}"] = bool((again[10:20] == data[10:20]).all()) and again[5, 5] == -1
    held[f"members listed by {name}"] = list(zarr.open_group(store=make(), mode="r").array_keys()) == ["x"]
""",
    )


def opendal(site: Site) -> Outcome:
    """OpenDAL's S3 service."""
    return _try(
        site,
        "opendal",
        "opendal",
        [],
        """
import opendal
op = opendal.Operator("s3", bucket=bucket, endpoint=url, region="us-east-1", access_key_id=key,
                      secret_access_key=secret, root="/")
data = os.urandom(12 << 20)
op.write("d/large", data)
op.write("d/\\u00fc b", b"x")
held["read"] = bytes(op.read("d/large")) == data
held["stat"] = op.stat("d/large").content_length == len(data)
listed = sorted(entry.path for entry in op.list("d/") if entry.path != "d/")
held["listed"] = listed == ["d/large", "d/\\u00fc b"]
op.copy("d/large", "copy")
held["copied"] = bytes(op.read("copy")) == data
op.delete("copy")
held["deleted"] = not op.exists("copy")
""",
    )
