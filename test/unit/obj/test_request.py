"""What a request to an object server is about, and from when it looks (object-server.md §1, §2)."""

from dataclasses import replace

import pytest

from swift.base.timestamp import Timestamp
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.obj.request import (
    is_flagged,
    key_of,
    next_part_power_of,
    opens_expired,
    parse_preferences,
    policy_of,
    read_options_of,
)
from swift.runtime.backendapp import RingPartitions, UnexpectedPath
from swift.store.api import FragmentPreference
from test.support.peer import make_rings


def request(path="/sda/1/AUTH_a/c/o", **headers):
    return Request("GET", path, {name.replace("_", "-"): value for name, value in headers.items()})


def status_of(call, *args):
    with pytest.raises(HTTPError) as raised:
        call(*args)
    return raised.value.response.status


def test_the_policy_is_the_one_of_the_header_and_else_the_first(bench):
    assert policy_of(request(), bench.context).index == 0
    assert policy_of(request(x_backend_storage_policy_index="1"), bench.context).index == 1
    for text in ("7", "x", "-1"):
        assert status_of(policy_of, request(x_backend_storage_policy_index=text), bench.context) == 503


def test_a_key_has_device_partition_and_the_hash_of_the_name(bench):
    key = key_of(request(), bench.context)
    assert (key.device, key.partition, key.path.obj) == ("sda", "1", "o")
    assert key.hash == bench.context.hasher.hexdigest("AUTH_a", "c", "o")


@pytest.mark.parametrize(
    "path",
    [
        "/sda/1/AUTH_a/c",
        "/sda/x/AUTH_a/c/o",
        "/sda/1/AUTH_a/\x00c/o",
        "/sda/1/AUTH_a/c/\x00o",
    ],
)
def test_what_is_no_object_of_a_device_is_refused(bench, path):
    assert bench.ask("GET", path).status in (400, 412)


@pytest.mark.parametrize("name", ["x_container_sync_key", "x_container_sync_auth"])
def test_container_sync_is_refused_unless_a_proxy_hands_it_on(bench, name):
    assert status_of(key_of, request(**{name: "k"}), bench.context) == 403
    handed_on = request(x_backend_storage_policy_index="0", **{name: "k"})
    assert key_of(handed_on, bench.context).path.obj == "o"


def test_a_path_is_kept_in_its_own_partition_only(bench, tmp_path):
    make_rings(tmp_path, [("127.0.0.1", 6200, "sda")], replicas=1, names=["object"])
    context = replace(bench.context, partitions=RingPartitions(str(tmp_path)))
    own = int(context.hasher.hexdigest("AUTH_a", "c", "o")[0], 16)
    assert key_of(request(f"/sda/{own}/AUTH_a/c/o"), context).partition == str(own)
    other = f"/sda/{own ^ 1}/AUTH_a/c/o"
    with pytest.raises(UnexpectedPath, match="is not that of the path"):
        key_of(request(other), context)
    # A misplaced object must not stop replication.
    assert key_of(request(other, x_backend_replication="true"), context).partition == str(own ^ 1)


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("yes", True), ("false", False), ("", False)]
)
def test_flags_are_headers_that_say_yes(value, expected):
    assert is_flagged({"x-flag": value}, "x-flag") is expected
    assert not is_flagged({}, "x-flag")


def test_replication_sees_what_has_expired():
    assert opens_expired(request(x_backend_replication="true"))
    assert opens_expired(request(x_backend_open_expired="true"))
    assert not opens_expired(request())


def test_a_read_looks_from_its_timestamp_or_from_now(bench):
    assert read_options_of(request(), bench.context).moment_s == bench.clock.time()
    assert read_options_of(request(x_timestamp="1795000000.00000"), bench.context).moment_s == 1795000000
    preferring = read_options_of(request(x_backend_fragment_preferences="[]"), bench.context)
    assert (preferring.preferences, read_options_of(request(), bench.context).preferences) == ([], None)


def test_preferences_name_archives_of_a_time():
    text = '[{"timestamp": "1795000000.00000", "exclude": [1, "3"]}]'
    assert parse_preferences(text) == [FragmentPreference(Timestamp("1795000000.00000"), frozenset((1, 3)))]
    assert parse_preferences("not json") is None
    assert parse_preferences("[" * 100_000) is None


@pytest.mark.parametrize(
    "text",
    ["7", "[7]", "[{}]", '[{"timestamp": "x", "exclude": []}]', '[{"timestamp": "1", "exclude": 7}]',
     '[{"timestamp": "1", "exclude": ["x"]}]', '[{"timestamp": "1", "exclude": [1e999]}]', '{"a": 1}'],
)  # fmt: skip
def test_anything_else_in_preferences_is_400(text):
    assert status_of(parse_preferences, text) == 400


@pytest.mark.parametrize(
    ("text", "power"),
    [(None, None), ("11", 11), ("0", None), ("33", None), ("-1", None), ("x", None), ("²", None)],
)
def test_a_next_part_power_that_is_none_is_ignored(text, power):
    headers = {} if text is None else {"x_backend_next_part_power": text}
    assert next_part_power_of(request(**headers)) == power
