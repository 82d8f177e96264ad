"""Prometheus and the node exporter beside a live cluster, with the sample of ``etc/prometheus``."""

import contextlib
import json
import math
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import boto3
import botocore.client
import botocore.exceptions
import yaml

from swift.aio.make import make_cluster
from test.support.cluster import KEYS, LiveCluster
from test.support.processes import free_ports

SAMPLES = Path(__file__).parents[2] / "etc/prometheus"
RULES = ("swift-recording.yaml", "swift-alerts.yaml")
PROGRAMS = ("prometheus", "prometheus-node-exporter")
SERVERS = ("account", "container", "object")
LISTING = "c?format=json"
SHARDING = (
    "shard_container_threshold = 10\nrows_per_shard = 4\nminimum_shard_size = 2\nshrink_threshold = 1\n"
    "expansion_limit = 8"
)


def observed_cluster(root):
    """Return a cluster that has every feature whose metrics a small cluster can have."""
    cluster = LiveCluster(root, rest_s=2, tier=True)
    make_cluster(cluster.plan)
    options = {
        "object": {"app:object-server": "store_wrappers = observed", "object-auditor": "scrub_days = 30"},
        "container": {"container-sharder": SHARDING},
    }
    for kind, sections in options.items():
        for conf in cluster.plan.etc.glob(f"{kind}-server/*.conf"):
            text = conf.read_text()
            for section, lines in sections.items():
                text, count = re.subn(rf"(?m)^\[{section}\]\n", rf"\g<0>{lines}\n", text)
                assert count == 1, f"{conf} has no section {section}"
            conf.write_text(text)
    return cluster


def put_load(cluster, turn):
    """Send requests of both APIs; with other names in each turn."""
    assert cluster.request("PUT", "c").status in (201, 202)
    assert cluster.request("POST", "c", {"X-Container-Sharding": "on"}, user="admin:admin").status == 204
    for number in range(5):
        name = f"c/o{turn}-{number}"
        assert cluster.request("PUT", name, body=b"x" * 20_000 * number).status == 201
        assert cluster.request("GET", name).status == 200
        assert cluster.request("HEAD", name).status == 200
    assert cluster.request("POST", name, {"X-Object-Meta-Hue": "red"}).status == 202
    assert cluster.request("DELETE", name).status == 204
    for path, status in (("c/none", 404), (LISTING, 200), ("", 200)):
        assert cluster.request("GET", path).status == status
    client = s3_client(cluster, KEYS["test:tester"])
    bucket = f"bucket{turn}"
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key=f"k{turn}", Body=b"x" * 1000)
    client.head_object(Bucket=bucket, Key=f"k{turn}")
    client.get_object(Bucket=bucket, Key=f"k{turn}")["Body"].read()
    client.list_objects_v2(Bucket=bucket)
    client.delete_object(Bucket=bucket, Key=f"k{turn}")
    with contextlib.suppress(botocore.exceptions.ClientError):
        s3_client(cluster, "wrong").list_objects_v2(Bucket=bucket)


def s3_client(cluster, key):
    """Return a client of the test user with this key."""
    return boto3.client(
        "s3",
        endpoint_url=f"http://{cluster.host}",
        aws_access_key_id="test:tester",
        aws_secret_access_key=key,
        region_name="us-east-1",
        config=botocore.client.Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )


def server_ports(plan):
    """Return the ports of all metrics pages."""
    nodes = plan.node_numbers()
    return [
        plan.metrics_port("proxy"),
        *(plan.metrics_port(kind, node) for kind in SERVERS for node in nodes),
    ]


def daemon_pages(plan, node):
    """Return the pages of the daemons of a node."""
    return sorted(plan.recon(node).glob("*.prom"))


class Monitoring:
    """Scrapes a cluster each second, evaluates the rules that the packages have, and answers queries."""

    def __init__(self, cluster, root):
        self._cluster = cluster
        self._root = root
        self._processes = []
        self.port = 0

    def __enter__(self):
        plan = self._cluster.plan
        nodes = plan.node_numbers()
        self.port, *exporters = free_ports(1 + len(nodes))
        for node, port in zip(nodes, exporters, strict=True):
            self._start(
                "prometheus-node-exporter",
                f"--web.listen-address=127.0.0.1:{port}",
                "--collector.disable-defaults",
                "--collector.textfile",
                f"--collector.textfile.directory={plan.recon(node)}",
            )
        conf = yaml.safe_load((SAMPLES / "prometheus.yaml").read_text())
        conf["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        conf["rule_files"] = [str(SAMPLES / name) for name in RULES]
        targets = {"swift": server_ports(plan), "swift-node": exporters}
        for job in conf["scrape_configs"]:
            addresses = [f"127.0.0.1:{port}" for port in targets.pop(job["job_name"])]
            job["static_configs"] = [{"targets": addresses}]
        assert not targets
        (self._root / "prometheus.yaml").write_text(yaml.safe_dump(conf))
        self._start(
            "prometheus",
            f"--config.file={self._root / 'prometheus.yaml'}",
            f"--storage.tsdb.path={self._root / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        )
        self._cluster.await_true(self._is_ready, "Prometheus is ready")
        return self

    def __exit__(self, *_error):
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(30)

    def _start(self, program, *words):
        with open(self._root / f"{program}.log", "ab") as log:
            self._processes.append(subprocess.Popen([shutil.which(program), *words], stdout=log, stderr=log))

    def _is_ready(self):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{self.url}/-/ready", timeout=5).status == 200
        return False

    @property
    def url(self):
        """The address of Prometheus."""
        return f"http://127.0.0.1:{self.port}"

    def get(self, path, **query):
        """Return the data of a response of Prometheus's API."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from error

    def values(self, expression):
        """Return the current values of an expression."""
        found = [float(row["value"][1]) for row in self.get("query", query=expression)["result"]]
        return [value for value in found if not math.isnan(value)]


def await_all(ask, wanted, seconds, between):
    """Query each of ``wanted`` until it has values; return those without values after ``seconds``."""
    deadline = time.monotonic() + seconds
    left = list(wanted)
    turn = 0
    while left and time.monotonic() < deadline:
        between(turn)
        turn += 1
        left = [each for each in left if not ask(each)]
    return left
