"""What is common to the verbs: devices, policies, REPLICATE."""

from __future__ import annotations

import os
import pickle
import shutil

import pytest

from swift.http.body import BytesBody
from swift.obj.server import ObjectServer, app_factory
from swift.platform.disk import Disk
from test.support.disks import cramped_stores


def test_a_lost_device_is_507_for_every_verb(bench):
    for verb in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        response = bench.ask(verb, "/gone/1/a/c/o", body=b"x" if verb == "PUT" else b"")
        assert response.status == 507
        assert b"Drive: gone" in response.read_body()
    assert bench.ask("REPLICATE", "/gone/1").status == 507


def test_policies_keep_their_objects_apart(bench):
    bench.ask("PUT", body=b"x")
    assert bench.ask("GET", headers={"x-backend-storage-policy-index": "1"}).status == 404
    assert bench.ask("GET", headers={"x-backend-storage-policy-index": "0"}).status == 200


def test_replicate_marks_suffixes_and_computes_hashes(bench):
    bench.ask("PUT", body=b"x")
    response = bench.ask("REPLICATE", "/sda/1")
    hashes = pickle.loads(response.read_body())
    assert len(hashes) == 1
    assert bench.ask("REPLICATE", "/sda/1/abc-xyz-../..").read_body() == pickle.dumps(None, 2)
    assert (bench.root / "sda/objects/1/hashes.invalid").read_text() == "abc\n"
    assert bench.ask("REPLICATE", "/sda/2/abc").status == 200
    assert bench.ask("REPLICATE", "/sda/..").status == 400
    assert bench.ask("REPLICATE", "/sda/x").status == 400


def test_the_paste_factory_reads_its_configuration(tmp_path):
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = {
        "swift_dir": str(tmp_path),
        "devices": str(tmp_path),
        "mount_check": "false",
        "log_to_console": "1",
    }
    app = app_factory(conf, reclaim_age="5", replication_server="false", allowed_headers="X-Static, Etag")
    assert app.settings.reclaim_age == 5
    assert app.settings.stored_headers == {"x-static"}
    assert "REPLICATE" not in app._allow


def test_requests_of_replication_are_logged_for_developers_only(bench):
    lines = []
    members = {"is_wanted": True, "write": lambda _self, line: lines.append(line)}
    bench.context.access_log = type("Lines", (), members)()
    bench.ask("PUT", body=b"x")
    bench.ask("REPLICATE", "/sda/1")
    bench.ask("GET", headers={"x-backend-replication": "true"})
    assert [line.split('"')[1].split()[0] for line in lines] == ["PUT"]


def test_access_lines_have_the_fields_of_the_peer(bench):
    lines = []
    members = {"is_wanted": True, "write": lambda _self, line: lines.append(line)}
    bench.context.access_log = type("Lines", (), members)()
    bench.ask("PUT", body=b"hello")
    bench.ask("GET", "/sda/1/AUTH_a/c/o%22x%2Fy")
    bench.ask("HEAD", "/sda/1/AUTH_a/c/none")
    bench.ask("GET")
    found = [line.split('"') for line in lines]
    assert [parts[1].split(" ")[0] + parts[2] for parts in found] == [
        "PUT 201 - ",
        "GET 404 70 ",
        "HEAD 404 - ",
        "GET 200 5 ",
    ]
    assert found[1][1].split(" ")[1] == "/sda/1/AUTH_a/c/o%22x/y"


@pytest.mark.parametrize("partition", ["01", "9" * 400, str(1 << 32), "%D9%A3", "x"])
@pytest.mark.parametrize("verb", ["GET", "PUT", "POST", "DELETE"])
def test_odd_partitions_are_400_and_nothing_is_made_for_them(bench, verb, partition):
    response = bench.ask(verb, f"/sda/{partition}/a/c/o", body=b"x" if verb == "PUT" else b"")
    assert response.status == 400
    for verb in ("REPLICATE", "SSYNC"):
        assert bench.ask(verb, f"/sda/{partition}").status == 400
    assert os.listdir(bench.root / "sda") == []


TIME = "0000000001.00000"
ODD_PREFERENCES = [
    *("[" * 100_000, "{", "5", "null", '"a"', '{"a": 1}', "[[]]", "[null]", "[{}]", '[{"timestamp": 1}]'),
    f'[{{"timestamp": "{TIME}", "exclude": [Infinity]}}]',
    f'[{{"timestamp": "{TIME}", "exclude": [NaN]}}]',
    f'[{{"timestamp": "{TIME}", "exclude": 5}}]',
    f'[{{"timestamp": "{TIME}", "exclude": [[1]]}}]',
    f'[{{"timestamp": "{TIME}", "exclude": [{"1" * 5000}]}}]',
    '[{"timestamp": "tomorrow", "exclude": []}]',
    '[{"timestamp": [], "exclude": []}]',
]


@pytest.mark.parametrize("text", ODD_PREFERENCES, ids=range(len(ODD_PREFERENCES)))
def test_odd_fragment_preferences_are_the_fault_of_the_request(bench, text):
    headers = {"x-backend-fragment-preferences": text, "x-backend-storage-policy-index": "1"}
    for verb in ("GET", "HEAD"):
        assert bench.ask(verb, headers=headers).status in (400, 404)


@pytest.mark.parametrize("body", [b"small", b"large" * 100_000], ids=["small", "large"])
def test_a_directory_that_others_remove_again_and_again_does_not_lose_the_device(make_bench, body):
    class Tidy(Disk):
        """Somebody removes every empty hash directory as soon as it is there."""

        def open(self, path, *args):
            self.tidy(path)
            return os.open(path, *args)

        def open_unnamed(self, directory):
            self.tidy(directory)
            return super().open_unnamed(directory)

        def tidy(self, path):
            if len(os.path.basename(path)) == 32 and os.path.isdir(path) and not os.listdir(path):
                os.rmdir(path)

    bench = make_bench()
    stores = cramped_stores(bench.context, Tidy())
    bench.app = ObjectServer(bench.context, bench.settings, stores)
    assert bench.ask("PUT", body=body, stream=BytesBody(body)).status == 503


def test_a_directory_that_a_hasher_removes_once_is_made_again(make_bench):
    class Hasher(Disk):
        times = 2

        def open_unnamed(self, directory):
            if self.times:
                self.times -= 1
                os.rmdir(directory)
                os.rmdir(os.path.dirname(directory))
            return super().open_unnamed(directory)

    bench = make_bench()
    bench.app = ObjectServer(bench.context, bench.settings, cramped_stores(bench.context, Hasher()))
    body = b"large" * 100_000
    assert bench.ask("PUT", body=body, stream=BytesBody(body)).status == 201
    assert bench.ask("GET").read_body() == body


@pytest.mark.parametrize(("takes_all", "status"), [(True, 507), (False, 503)])
def test_a_file_that_is_missing_means_a_lost_device_only_when_all_of_it_is_gone(
    make_bench, takes_all, status
):
    bench = make_bench()

    class Vanishing(Disk):
        def setxattr(self, _file, name, _value):
            if takes_all:
                shutil.rmtree(bench.root / "sda")
            raise FileNotFoundError(name)

    bench.app = ObjectServer(bench.context, bench.settings, cramped_stores(bench.context, Vanishing()))
    assert bench.ask("PUT", body=b"x").status == status


def test_requests_for_objects_are_timed_under_labels(bench):
    class Packets:
        enabled, labels_enabled = False, True
        sent = []

        def timing_labelled(self, name, labels, _seconds):
            self.sent.append((name, labels))

    bench.context.telemetry.statsd = Packets()
    bench.ask("PUT", "/sda/1/AUTH_a/c%20d/o", body=b"hello")
    bench.ask("REPLICATE", "/sda/1")
    labels = {"account": "AUTH_a", "container": "c d", "method": "PUT", "policy": "0", "status": "201"}
    assert Packets.sent == [("swift_object_server_request_timing", labels)]
