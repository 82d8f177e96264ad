"""``swift-load`` as its users run it, against real servers."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from test.support.cluster import LiveCluster
from test.support.processes import free_ports, free_range
from test.support.stub_servers import Catalog, TlsServer

EVERYTHING = """
name = "everything"
description = "each operation"

[objects]
containers = 2
per_container = 6
size = [{size = 100, weight = 1}, {min = "1 KB", max = "3 MB", weight = 1}]
part_size = "1 MiB"

[[phase]]
kind = "init"

[[phase]]
kind = "prepare"
clients = 4

[[phase]]
kind = "main"
name = "mixed"
clients = 6
operations = 150
mix = {get = 4, put = 2, head = 2, delete = 2, list = 1, post = 1, multipart = 1}

[[phase]]
kind = "cleanup"
"""
READS = """
[objects]
containers = 1
per_container = 4
size = 1000

[[phase]]
kind = "init"

[[phase]]
kind = "prepare"

[[phase]]
kind = "main"
name = "reads"
clients = 4
seconds = 2
mix = {get = 1}

[[phase]]
kind = "cleanup"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = LiveCluster(tmp_path_factory.mktemp("load"), nodes=1, replicas=1)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def load(cluster, tmp_path):
    """Return a runner of the command in the test's folder; workloads use the cluster."""

    def run(*args, key="testing", auth=None, timeout=120):
        process = started(*args, key=key, auth=auth)
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def started(*args, key="testing", auth=None):
        environment = {
            **os.environ,
            "ST_AUTH": auth or f"http://{cluster.host}/auth/v1.0",
            "ST_USER": "test:tester",
            "ST_KEY": key,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "swift.cli.load", *args],
            cwd=tmp_path,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    run.started = started
    return run


def containers(cluster):
    return [name for name in cluster.request("GET").body.decode().split() if name.startswith("load-")]


def rows_of(found, phase):
    return {row["operation"]: row for row in found["rows"] if row["phase"] == phase}


@pytest.mark.long
def test_a_run_does_every_operation_verifies_reads_and_leaves_nothing(cluster, load, tmp_path):
    (tmp_path / "w.toml").write_text(EVERYTHING)
    (tmp_path / "price.toml").write_text("per_hour = 2.5")
    files = ("--json", "r.json", "--csv", "r.csv", "--html", "r.html", "--price", "price.toml")
    done = load("run", "w.toml", "--verify", "--format", "json", *files)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = rows_of(found, "mixed")
    assert set(rows) == {"get", "put", "head", "delete", "list", "post", "multipart"}
    assert sum(row["count"] for row in rows.values()) == 150
    assert not any(row["failed"] for row in found["rows"]), done.stderr
    assert rows_of(found, "prepare")["prepare"]["count"] == 12
    assert found["left"] == "" and containers(cluster) == []
    mixed = next(costs for costs in found["costs"] if costs["phase"] == "mixed")
    assert mixed["server_cpu_s"] > 0 and mixed["load_cpu_s"] > 0 and mixed["per_cost"] > 0
    assert json.loads((tmp_path / "r.json").read_text()) == found
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 1 + len(found["rows"])
    page = (tmp_path / "r.html").read_text()
    assert page.count("<svg") >= 9
    assert not re.search(r'(?:src|href)="(?!#|data:)', page), "the page needs nothing else"


@pytest.mark.long
def test_an_open_loop_starts_operations_at_the_requested_rate(load, tmp_path):
    (tmp_path / "w.toml").write_text(READS)
    done = load("run", "w.toml", "--rate", "20", "--seconds", "3", "--format", "json")
    assert done.returncode == 0, done.stderr
    count = rows_of(json.loads(done.stdout), "reads")["get"]["count"]
    assert 30 <= count <= 95, "60 are expected"


def interrupted(cluster, load, tmp_path, *args):
    """Return a long run that is interrupted while it reads."""
    (tmp_path / "w.toml").write_text(READS.replace("seconds = 2", "seconds = 90"))
    running = load.started("run", "w.toml", *args)
    for line in running.stdout:
        if "reads ..." in line:
            break
    (container,) = containers(cluster)
    reads = f"GET /v1/AUTH_test/{container}/o"
    cluster.await_true(lambda: reads in cluster.log_text(), "it reads")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    return out


def test_an_interrupted_run_reports_its_results_and_cleans_up(cluster, load, tmp_path):
    out = interrupted(cluster, load, tmp_path, "--json", "r.json")
    assert "interrupted" in out
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["interrupted"] and rows_of(found, "reads")["get"]["count"] > 0
    assert containers(cluster) == []


@pytest.mark.long
def test_an_interrupted_run_with_keep_leaves_its_data_and_reports_it(cluster, load, tmp_path):
    out = interrupted(cluster, load, tmp_path, "--keep")
    left = containers(cluster)
    assert len(left) == 1 and left[0].rpartition("-")[0] in out
    for name in cluster.request("GET", left[0]).body.decode().split():
        cluster.request("DELETE", f"{left[0]}/{name}")
    cluster.request("DELETE", left[0])


@pytest.mark.long
def test_wrong_bytes_are_detected(cluster, load, tmp_path):
    (tmp_path / "w.toml").write_text(READS.replace("seconds = 2", "seconds = 10"))
    running = load.started("run", "w.toml", "--verify", "--format", "json")
    for line in running.stderr:
        if "reads ..." in line:
            break
    (container,) = containers(cluster)
    names = cluster.request("GET", container).body.decode().split()
    assert len(names) == 4
    for name in names:
        assert cluster.request("PUT", f"{container}/{name}", body=b"x" * 1000).status == 201
    out, err = running.communicate(timeout=60)
    assert "wrong bytes" in rows_of(json.loads(out), "reads")["get"]["errors"], err


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("run", "SmlRead"), {"key": "wrong"}, "answered 401"),
        (("run", "SmlRead"), {"auth": "http://127.0.0.1:1/auth/v1.0"}, "Connection refused"),
        (("run", "SmlRead"), {"auth": "ftp://127.0.0.1"}, "not an http or https URL"),
        (("run", "bad.toml"), {}, "bad.toml:3: phase#1.clients: must be at least 1"),
        (("run", "bad.xml"), {}, "bad.xml:3: <work>: type juggle is not known"),
        (("run", "none.toml"), {}, "no built-in workload"),
        (("run", "SmlRead", "--html", "no/such/folder.html"), {}, "cannot be written"),
        pytest.param(
            *(("run", "SmlRead", "--distributed", "tcp://127.0.0.1:1"), {}, "no scheduler at"),
            marks=pytest.mark.long,
        ),
        (("compare", "bad.toml", "bad.toml"), {}, "no result of swift-load"),
    ],
)
def test_bad_input_is_reported_in_one_line_with_exit_code_1(load, tmp_path, args, options, message):
    (tmp_path / "bad.toml").write_text('[[phase]]\nkind = "main"\nclients = 0\nmix = {get = 1}\n')
    xml = (
        '<workload>\n<workflow><workstage name="a">\n<work type="juggle"/></workstage></workflow></workload>'
    )
    (tmp_path / "bad.xml").write_text(xml)
    done = load(*args, **options)
    assert done.returncode == 1
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.long
def test_two_runs_are_compared(load, tmp_path):
    (tmp_path / "w.toml").write_text(READS)
    for name, clients in (("a", "1"), ("b", "1")):
        done = load("run", "w.toml", "--seconds", "6", "--clients", clients, "--json", f"{name}.json")
        assert done.returncode == 0, done.stderr
    done = load("compare", "a.json", "b.json", "--format", "json", "--html", "c.html")
    assert done.returncode == 0, done.stderr
    found = {(one["operation"], one["figure"]): one for one in json.loads(done.stdout)["differences"]}
    rate = found["get", "ops/s"]
    assert rate["low"] <= rate["high"] and rate["verdict"] in ("better", "worse", "no difference seen")
    assert (tmp_path / "c.html").read_text().count("<svg") == 2
    assert load("compare", "a.json", "b.json", "--format", "json").stdout == done.stdout, "draws are seeded"
    assert "verdict" in load("compare", "a.json", "b.json").stdout


# --- failures -----------------------------------------------------------------------------------------------


def failing(tmp_path, *words):
    ports = ("--port", str(free_ports(1)[0]), "--base-port", str(free_range(60)))
    fixed = ("--nodes", "4", "--before", "1", "--during", "2", "--after", "2", "--share", "25")
    small = tmp_path / "small.toml"
    small.write_text(EVERYTHING.replace("operations = 150", "seconds = 1"))
    return subprocess.run(
        [sys.executable, "-m", "swift.cli.load", "fail", str(small), "--root", str(tmp_path)]
        + [*ports, "--cache-port", str(free_ports(1)[0]), *fixed, *words],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.long
def test_a_node_fails_under_load_and_the_cluster_recovers(tmp_path):
    done = failing(tmp_path, "--format", "json", "--html", str(tmp_path / "failed.html"))
    assert done.returncode == 0, done.stderr
    trial = json.loads(done.stdout)["trials"][0]
    assert [window["name"] for window in trial["windows"]] == ["before", "during", "after"]
    assert all(window["per_second"] > 0 for window in trial["windows"])
    assert trial["whole_s"] is not None and trial["lacks"]["copies"] == 0
    assert "<svg" in (tmp_path / "failed.html").read_text()
    assert [path.name for path in tmp_path.glob("swift-load-*/*")] == [], "the cluster is gone"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--way", "wipe"), "nodes fail by kill, stop, partition, not by 'wipe'"),
        (("--unit", "disks", "--way", "wipe"), "disks fail only with --xfs"),
        (("--way", "partition"), "a partition needs a network of its own"),
        (("--share", "100"), "below 100 percent"),
    ],
)
def test_an_impossible_failure_is_reported_in_one_line_before_the_run(tmp_path, words, message):
    done = failing(tmp_path, *words)
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.glob("swift-load-*")) == []


# --- other endpoints ----------------------------------------------------------------------------------------

#: Parts as small as S3 takes them.
PARTS = EVERYTHING.replace('part_size = "1 MiB"', 'part_size = "5 MiB"').replace(
    'max = "3 MB"', 'max = "7 MB"'
)


def s3_words(cluster, url=None, key="testing"):
    keys = ("--access-key", "test:tester", "--secret-key", key)
    return ("--s3", url or f"http://{cluster.host}", *keys)


@pytest.mark.long
def test_every_operation_runs_over_s3_and_leaves_nothing(cluster, load, tmp_path):
    (tmp_path / "w.toml").write_text(PARTS)
    done = load("run", "w.toml", "--verify", "--format", "json", *s3_words(cluster))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = rows_of(found, "mixed")
    assert set(rows) == {"get", "put", "head", "delete", "list", "post", "multipart"}
    assert [row for row in found["rows"] if row["failed"]] == []
    assert found["left"] == "" and containers(cluster) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["SmlRead", "LrgWrite"])
def test_built_in_workloads_run_over_s3(cluster, load, name):
    words = ("--seconds", "1", "--clients", "2", "--processes", "1", "--format", "json")
    done = load("run", name, *words, *s3_words(cluster))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row for row in found["rows"] if row["failed"]] == []
    assert all(row["count"] for row in found["rows"])


def test_wrong_s3_keys_are_reported_in_one_line(cluster, load):
    done = load("run", "SmlRead", *s3_words(cluster, key="wrong"))
    assert done.returncode == 1
    assert done.stderr == f"swift-load: http://{cluster.host} answered 403; are both keys right?\n"


@pytest.fixture(scope="module")
def secured(cluster, tmp_path_factory):
    """A TLS terminator in front of the proxy: its address, and its certificate file."""
    folder = tmp_path_factory.mktemp("tls")
    words = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    made = subprocess.run(
        ["openssl", *words.split(), "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("needs openssl(1) to make a certificate")
    host, _, port = cluster.host.rpartition(":")
    front = TlsServer((host, int(port)), str(folder / "cert.pem"), str(folder / "key.pem"))
    yield f"localhost:{front.port}", str(folder / "cert.pem")
    front.stop()


@pytest.mark.long
@pytest.mark.parametrize("api", ["swift", "s3"])
def test_a_load_runs_over_https(cluster, load, tmp_path, secured, api):
    address, certificate = secured
    (tmp_path / "w.toml").write_text(PARTS.replace("operations = 150", "operations = 60"))
    storage_url = f"https://{address}/v1/AUTH_test"
    words = ("--storage-url", storage_url, "--token", cluster.token())
    if api == "s3":
        words = s3_words(cluster, f"https://{address}")
    done = load("run", "w.toml", "--verify", "--format", "json", "--cacert", certificate, *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row for row in found["rows"] if row["failed"]] == []
    assert sum(row["count"] for row in rows_of(found, "mixed").values()) == 60
    done = load("run", "w.toml", *words)
    assert done.returncode == 1 and "certificate verify failed" in done.stderr
    done = load("run", "w.toml", "--cacert", "w.toml", *words)
    assert (done.returncode, done.stderr.count("\n")) == (
        1,
        1,
    ) and "no certificates can be read" in done.stderr


@pytest.fixture
def keystone(cluster):
    service = Catalog(f"http://{cluster.host}/v1/AUTH_test", cluster.token())
    yield service
    service.stop()


@pytest.mark.long
def test_a_load_logs_in_at_keystone(load, tmp_path, keystone):
    (tmp_path / "w.toml").write_text(READS)
    words = ("--seconds", "1", "--format", "json", "--user", "project:name")
    done = load("run", "w.toml", *words, auth=f"{keystone.url}/v3", key="own")
    assert done.returncode == 0, done.stderr
    assert not any(row["failed"] for row in json.loads(done.stdout)["rows"])
    asked = keystone.asked[-1]["auth"]
    assert asked["scope"]["project"] == {"name": "project", "domain": {"id": "default"}}
    assert asked["identity"]["password"]["user"]["name"] == "name"
    done = load("run", "w.toml", *words, auth=f"{keystone.url}/v3", key="wrong")
    assert done.returncode == 1 and "answered 401 to project:name" in done.stderr
    keystone.catalog = [{"type": "image", "endpoints": []}]
    done = load("run", "w.toml", *words, auth=f"{keystone.url}/v3", key="own")
    assert done.returncode == 1 and "has no public object-store" in done.stderr
