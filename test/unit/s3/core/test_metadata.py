"""What a request for an object wants of its bytes, and whether it changed since a date."""

import pytest

from swift.base.errors import ConfigError
from swift.policy.policy import Policies, Policy
from swift.s3.core.errors import S3Error
from swift.s3.core.metadata import (
    StorageClasses,
    fails_if_unmodified_since,
    parse_read_headers,
    parse_storage_classes,
    to_swift_headers,
)


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("bytes=0-3", "bytes=0-3"),
        ("bytes=-1", "bytes=-1"),
        ("bytes=2-", "bytes=2-"),
        ("bytes= -1", None),
        ("bytes=0-0,2-2", None),
        ("bytes=\u0661-", None),
        ("items=0-3", None),
    ],
)
def test_one_range_is_asked_for_and_anything_else_is_everything(text, wanted):
    assert parse_read_headers({"range": text}).get("range") == wanted


@pytest.mark.parametrize(
    "since, modified, wanted",
    [
        ("Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT", True),
        ("Tue, 02 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT", False),
        ("no date", "Tue, 02 Jan 2024 00:00:00 GMT", False),
        ("Mon, 01 Jan 2024 00:00:00 GMT", "", False),
    ],
)
def test_an_object_is_changed_since_a_date_that_is_one(since, modified, wanted):
    assert fails_if_unmodified_since({"if-unmodified-since": since}, {"last-modified": modified}) is wanted


@pytest.mark.parametrize(
    ("name", "is_stored"),
    [("a.b", True), ("\u00c3\u00a9", True), ("a(b)", False), ("a b", False), ("a\x00", False)],
)
def test_metadata_whose_name_swift_cannot_store_is_left_out(name, is_stored):
    assert (f"x-object-meta-{name}" in to_swift_headers({f"x-amz-meta-{name}": "v"})) is is_stored


def test_metadata_without_a_name_is_refused():
    with pytest.raises(S3Error) as refused:
        to_swift_headers({"x-amz-meta-": "v"})
    assert refused.value.code == "InvalidRequest"


# --- storage classes by name and by policy ------------------------------------------------------------


POLICIES = Policies([Policy(0, "gold", is_default=True), Policy(1, "slow"), Policy(2, "other")])


def test_a_class_is_found_both_ways():
    classes = parse_storage_classes(["STANDARD:gold", "STANDARD_IA: slow"], POLICIES)
    assert [classes.class_of_policy(n) for n in range(3)] == ["STANDARD", "STANDARD_IA", "STANDARD"]
    assert classes.policy_of_class("STANDARD_IA") == "slow" and classes.policy_of_class("GLACIER") is None
    assert classes.has_class("STANDARD_IA") and not classes.has_class("GLACIER") and not classes.is_single
    assert list(classes) == ["STANDARD", "STANDARD_IA"]


def test_the_usual_class_is_the_default_policy_unless_that_has_another_name():
    assert parse_storage_classes(["COLD:slow"], POLICIES).policy_of_class("STANDARD") == "gold"
    assert parse_storage_classes(["FAST:gold"], POLICIES).policy_of_class("STANDARD") is None
    assert parse_storage_classes(["STANDARD:slow"], POLICIES).policy_of_class("STANDARD") == "slow"


def test_a_policy_may_have_several_classes_of_which_its_buckets_have_the_first():
    classes = parse_storage_classes(
        ["STANDARD:gold", "STANDARD_IA:gold", "COLD:slow", "COLDER:slow"], POLICIES
    )
    assert [classes.class_of_policy(n) for n in range(3)] == ["STANDARD", "COLD", "STANDARD"]
    assert classes.policy_of_class("STANDARD_IA") == "gold" and classes.policy_of_class("COLDER") == "slow"
    assert (
        classes.is_in_policy("COLD", 1)
        and classes.is_in_policy("COLDER", 1)
        and not classes.is_in_policy("COLDER", 0)
    )
    assert classes.is_in_policy("STANDARD_IA", 0) and not classes.is_in_policy("STANDARD_IA", 2)


def test_without_an_option_there_is_one_class():
    classes = StorageClasses()
    assert classes.is_single and classes.has_class("STANDARD") and not classes.has_class("STANDARD_IA")
    assert classes.class_of_policy(7) == "STANDARD"


@pytest.mark.parametrize(
    "options",
    [
        ["STANDARD"],
        ["STANDARD:nothing"],
        ["standard:gold"],
        [":gold"],
        ["A:gold", "A:slow"],
        ["<A>:gold"],
        [f"{'A' * 65}:gold"],
    ],
)
def test_an_option_that_means_nothing_is_an_error_at_the_start(options):
    with pytest.raises(ConfigError):
        parse_storage_classes(options, POLICIES)
