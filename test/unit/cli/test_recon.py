"""swift-recon: what its command line asks for, and what it refuses in one line."""

import json

import pytest

from test.support.peer import SWIFT_CONF, make_rings, run
from test.support.processes import free_ports


@pytest.fixture
def etc(tmp_path):
    """Rings of two servers that are not there, in two zones."""
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    make_rings(tmp_path, [("127.0.0.1", port, "sda") for port in free_ports(2)], replicas=2)
    return tmp_path


def said(*replies):
    """Exit code, output and errors of a process of its own."""
    done = run("swift-recon", *replies, timeout_s=30)
    return done.returncode, done.stdout, done.stderr


def test_servers_that_are_not_there_are_told_and_are_no_failure_of_the_tool(etc):
    code, out, err = said("--swiftdir", etc, "-l", "--sharding", "-p", "silver")
    assert (code, err) == (0, "")
    assert "--> Starting reconnaissance on 2 hosts (object)" in out
    assert out.count("/recon/load: ") == 2 and "[1m_load_avg] - No hosts returned valid data." in out
    assert "Error: Can't check sharding on non container servers." in out


def test_programs_get_one_document_of_the_servers_that_are_meant(etc):
    replies = ("container", "account", "container", "--zone", 1, "--all", "--format", "json")
    code, out, err = said(*replies, "--swiftdir", etc)
    facts = json.loads(out)
    assert (code, err, sorted(facts)) == (0, "", ["account", "container"])
    assert facts["container"]["sharding_time"] is None and "sharding_time" not in facts["account"]
    assert len({url.rpartition("/recon")[0] for url in facts["account"]["errors"] if "recon" in url}) == 1


def test_a_word_that_is_no_server_type_is_named(etc):
    code, out, _err = said("-d", etc)
    assert code == 1 and "Invalid Server Type\n" in out
    assert f"'{etc}' is none of account, container, object; the directory of the rings is --swiftdir" in out


def test_a_policy_that_there_is_not_is_told(etc):
    policy = "9" * 5000
    code, out, err = said("--swiftdir", etc, "-p", policy)
    assert (code, err) == (1, "")
    assert f"Invalid Storage Policy: {policy}" in out


def test_a_ring_that_cannot_be_read_is_told_in_one_line(tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    (tmp_path / "account.ring.gz").write_bytes(b"R1NG\0\2nonsense")
    code, _, err = said("account", "--swiftdir", tmp_path, "-l")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("swift-recon: ")
