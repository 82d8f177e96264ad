"""What is common to the verbs: devices, policies, REPLICATE, hot objects."""

from __future__ import annotations

import pickle

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.obj.hot import GENERATION_MAX, HotObjects
from swift.obj.server import app_factory
from swift.policy.policy import Policy
from swift.store.api import ObjectKey


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


def test_an_object_is_looked_up_in_the_pool_first_and_inline_afterwards():
    clock, pooled = ManualClock(), []
    hot = HotObjects(clock)
    key = ObjectKey("sda", "1", Policy(0, "gold"), EntityPath("a", "c", "o"), "f" * 32)

    def run(function, *args):
        pooled.append(args)
        return function(*args)

    for _ in range(3):
        assert hot.call(key, run, lambda value: value, 7) == 7
    assert len(pooled) == 1
    hot.call(key, run, lambda _value: clock.advance(1), 7)
    hot.call(key, run, lambda value: value, 7)
    assert len(pooled) == 2


def test_only_so_many_hot_objects_are_remembered():
    hot = HotObjects(ManualClock())
    for number in range(3 * GENERATION_MAX):
        hot.add(ObjectKey("sda", "1", Policy(0, "gold"), EntityPath("a", "c", "o"), str(number)))
    assert GENERATION_MAX <= len(hot) <= 2 * GENERATION_MAX


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
