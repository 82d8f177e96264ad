"""swift-object-info: what the files of an object say, however damaged they are."""

import json
import os
from hashlib import md5

import pytest

from swift.cli.object_info import NoObjectFile, lines, main, read_object_file
from swift.platform.disk import Disk
from swift.store.metadata import write_metadata
from test.contract.test_store import NOW_S, key_of, post, put, ts
from test.support.peer import SWIFT_CONF, make_rings
from test.unit.operations.test_repacking import PackedNodeBench

BODY = b"content"
METADATA = {
    "name": "/AUTH_a/c/o/with/slashes",
    "Content-Type": "text/plain",
    "X-Timestamp": "1795000000.00000",
    "ETag": md5(BODY, usedforsecurity=False).hexdigest(),
    "Content-Length": str(len(BODY)),
    "X-Object-Meta-Color": "bl\u00c3\u00bc",
    "X-Object-Sysmeta-Thing": "1",
    "Expires": "never",
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "1795000000.00000.data"

    def make(metadata=METADATA, body=BODY, **more):
        path.write_bytes(body)
        write_metadata(Disk(), str(path), {**metadata, **more})
        return str(path)

    return make


def test_checksum_length_and_path_are_verified(file):
    seen = read_object_file(file(), check_etag=True)
    assert seen.path == ("AUTH_a", "c", "o/with/slashes")
    assert seen.etag.endswith(" (valid)") and seen.length == "7 (valid)"


@pytest.mark.parametrize("body", [b"", b"contenT", b"content and more"])
def test_content_that_was_damaged_is_told(file, body):
    seen = read_object_file(file(body=body), check_etag=True)
    assert "doesn't match file hash of" in seen.etag
    assert ("doesn't match" in seen.length) is (len(body) != len(BODY))


def test_a_checksum_that_was_not_computed_is_not_called_valid(file):
    seen = read_object_file(file(), check_etag=False)
    assert seen.etag.endswith("(not checked)") and seen.digest == ""


def test_a_tombstone_has_neither_length_nor_checksum(file):
    seen = read_object_file(file({"name": "/a/c/o", "X-Timestamp": "1.00000"}, b""), check_etag=True)
    assert seen.etag == seen.length == "Not found in metadata"
    assert "Content-Type: Not found in metadata" in list(lines(seen, "00", drop_prefixes=False))


@pytest.mark.parametrize("name", ["", "/", "/a/c", "a/c/o", "//c/o", "/a//o"])
def test_a_name_that_is_no_objects_is_told(file, name):
    with pytest.raises(NoObjectFile, match="Path is invalid for object"):
        read_object_file(file(name=name), check_etag=True)


def test_what_is_no_file_of_an_object_is_told(tmp_path):
    (tmp_path / "x.data").write_bytes(b"x")
    for path in (tmp_path / "x.data", tmp_path):
        with pytest.raises(NoObjectFile, match="Invalid metadata"):
            read_object_file(str(path), check_etag=True)
    with pytest.raises(NoObjectFile, match="Data file doesn't exist"):
        read_object_file(str(tmp_path / "none"), check_etag=True)


def test_damaged_metadata_is_told(file):
    path = file()
    blob = os.getxattr(path, "user.swift.metadata")
    os.setxattr(path, "user.swift.metadata", blob[: len(blob) // 2])
    with pytest.raises(NoObjectFile, match="Invalid metadata"):
        read_object_file(path, check_etag=True)


def test_metadata_are_shown_in_groups_as_text(file):
    said = list(lines(read_object_file(file(), check_etag=True), "ab" * 16, drop_prefixes=True))
    user = said.index("User Metadata:")
    assert said[user + 1] == "  Color: blü"
    assert said[said.index("System Metadata:") + 1] == "  Thing: 1"
    assert said[said.index("Other Metadata:") + 1] == "  Expires: never"


def test_a_time_that_is_none_is_shown_as_it_is(file):
    said = list(
        lines(
            read_object_file(file(**{"X-Timestamp": "yesterday"}), check_etag=True), "00", drop_prefixes=False
        )
    )
    assert "Timestamp: yesterday" in said


@pytest.fixture
def etc(tmp_path):
    root = tmp_path / "etc"
    root.mkdir()
    (root / "swift.conf").write_text(SWIFT_CONF)
    make_rings(root, [("10.0.0.1", 6200, "zero")], replicas=1, names=("object",))
    make_rings(root, [("10.0.0.2", 6200, "one")], replicas=1, names=("object-1",))
    return root


def stored(tmp_path, file, directory):
    folder = tmp_path / directory
    folder.mkdir(parents=True)
    target = folder / "1795000000.00000.data"
    os.rename(file(), target)
    return str(target)


@pytest.mark.parametrize(
    ("directory", "device"),
    [
        ("srv/sda/objects/1/abc/hash", "zero"),
        ("srv/sda/objects-1/1/abc/hash", "one"),
        ("objects/srv/sda/objects-1/1/abc/hash", "one"),
    ],
)
def test_the_policy_is_that_of_the_directory_in_which_the_object_lies(
    tmp_path, file, etc, capsys, directory, device
):
    path = stored(tmp_path, file, directory)
    assert main([path, "-d", str(etc), "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["etag_is_valid"] and said["length_is_valid"]
    assert device in json.dumps(said["location"]) and "/a" not in said["hash"]


def test_a_policy_that_the_directory_contradicts_is_warned_about(tmp_path, file, etc, capsys):
    path = stored(tmp_path, file, "sda/objects-1/1/abc/hash")
    assert main([path, "-d", str(etc), "-P", "gold"]) == 0
    assert capsys.readouterr().out.startswith("WARNING: Ring does not match policy!")
    assert main([path, "-d", str(etc), "-P", "lead"]) == 0
    assert capsys.readouterr().out.startswith("No policy named 'lead'")


def test_an_unknown_policy_has_no_location(tmp_path, file, etc, capsys):
    path = stored(tmp_path, file, "sda/objects-77/1/abc/hash")
    assert main([path, "-d", str(etc), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["location"] is None


def test_without_a_file_or_a_cluster_the_exit_status_is_one(tmp_path, file, capsys):
    assert main([]) == 1 and "usage" in capsys.readouterr().out
    assert main([file(), "-d", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("swift-object-info: ")


@pytest.fixture
def packed(tmp_path):
    node = PackedNodeBench(tmp_path)
    node.opened = node.open()
    yield node
    node.opened.close()


def test_packed_objects_are_shown_with_their_position(packed, capsys):
    small, large = key_of("small"), key_of("large")
    put(packed.opened.store, small, ts(NOW_S), b"x" * 100)
    put(packed.opened.store, large, ts(NOW_S), b"x" * 5000)
    words = ["-c", str(packed.conf), "-d", str(packed.root)]
    for key, size in ((small, 100), (large, 5000)):
        for name in (str(key.path), key.hash):
            assert main([*words, "sda", name]) == 0
            text = capsys.readouterr().out
            assert "Record: data at " in text and "of volume 1, partition 7" in text
            assert f"Content-Length: {size} (valid)" in text and "(valid)" in text
            assert f"Path: {key.path}" in text
        assert main([*words, "--format", "json", "sda", key.hash]) == 0
        (facts,) = json.loads(capsys.readouterr().out)
        assert facts["etag_is_valid"] and facts["record"]["volume"] == 1


def test_packed_objects_are_located_by_the_rings_that_the_configuration_names(packed, capsys):
    put(packed.opened.store, key_of("o"), ts(NOW_S), b"x")
    make_rings(packed.root, [("10.0.0.7", 6200, "sda")], replicas=1, names=("object",))
    assert main(["-c", str(packed.conf), "--format", "json", "sda", key_of("o").hash]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert [node["ip"] for node in facts["location"]["nodes"]] == ["10.0.0.7"]


def test_a_post_has_no_length_that_could_be_wrong(packed, capsys):
    put(packed.opened.store, key_of("o"), ts(NOW_S), b"x")
    post(packed.opened.store, key_of("o"), ts(NOW_S + 1))
    assert main(["-c", str(packed.conf), "--format", "json", "sda", key_of("o").hash]) == 0
    assert [facts["length_is_valid"] for facts in json.loads(capsys.readouterr().out)] == [True, None]


def test_a_damaged_packed_object_is_shown_with_the_checksum_that_it_has(packed, capsys):
    key = key_of("damaged")
    put(packed.opened.store, key, ts(NOW_S), b"x" * 100)
    (path,) = (packed.root / "srv").rglob("*.volume")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"x" * 100, b"x" * 99 + b"y"))
    assert main(["-c", str(packed.conf), "-d", str(packed.root), "sda", str(key.path)]) == 0
    assert "doesn't match file hash of" in capsys.readouterr().out


def test_packed_objects_that_are_not_there_are_one_line(packed, capsys):
    packed.opened.devices.device("sda")
    words = ["-c", str(packed.conf), "-d", str(packed.root)]
    for more in (["sda", "AUTH_a/c/none"], ["sdz", "AUTH_a/c/none"], ["sda", "nonsense"]):
        assert main([*words, *more]) == 1
        told = capsys.readouterr()
        assert len((told.out + told.err).splitlines()) == 1


def test_packed_objects_are_located_with_the_commands_that_show_records(packed, capsys):
    key = key_of("o")
    put(packed.opened.store, key, ts(NOW_S), b"x")
    make_rings(packed.root, [("10.0.0.7", 6200, "sda")], replicas=1, names=("object",))
    assert main(["-c", str(packed.conf), "sda", key.hash]) == 0
    assert f'ssh 10.0.0.7 "swift-object-volumes dump --device sda {key.hash}"' in capsys.readouterr().out


def test_an_unknown_packed_device_is_answered_with_those_that_are_there(packed, capsys):
    packed.opened.devices.device("sda")
    assert main(["-c", str(packed.conf), "sdz", "AUTH_a/c/o"]) == 1
    assert capsys.readouterr().err.endswith("mounted there: sda\n")


def test_files_are_located_by_the_configuration_that_is_named(packed, file, capsys):
    make_rings(packed.root, [("10.0.0.7", 6200, "sda")], replicas=1, names=("object",))
    assert main(["-c", str(packed.conf), file()]) == 0
    assert "10.0.0.7:6200 sda" in capsys.readouterr().out


def test_an_object_without_a_device_is_answered_with_the_right_arguments(packed, capsys):
    assert main(["-c", str(packed.conf), "AUTH_a/c/o"]) == 1
    told = capsys.readouterr()
    assert told.out == "Data file doesn't exist\n" and "DEVICE ACCOUNT/CONTAINER/OBJECT" in told.err
