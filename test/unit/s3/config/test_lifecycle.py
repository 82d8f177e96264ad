"""Documents of lifecycles: what AWS takes is taken and shown again, what it refuses is refused."""

import random
import string

import pytest

from swift.s3.config.lifecycle import (
    LIFECYCLE,
    decode_rules,
    encode_rules,
    parse_rules_document,
    render_rules,
)
from swift.s3.config.lifecyclerules import DAY_S, LifecycleRule, Transition
from swift.s3.core.codec import DamagedConfiguration
from swift.s3.core.errors import S3Error
from swift.s3.core.session import sysmeta_of
from swift.s3.core.xml import parse, render


def read(*rules):
    body = "".join(f"<Rule>{rule}</Rule>" for rule in rules)
    return parse_rules_document(
        parse(LIFECYCLE, f"<LifecycleConfiguration>{body}</LifecycleConfiguration>".encode())
    )


def rule(inside, *, name="r", where="<Filter><Prefix>p</Prefix></Filter>", status="Enabled"):
    return f"<ID>{name}</ID>{where}<Status>{status}</Status>{inside}"


DAYS = "<Expiration><Days>3</Days></Expiration>"
TAG = "<Tag><Key>a</Key><Value>1</Value></Tag>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rule(DAYS, where="<Prefix>p</Prefix>"), LifecycleRule("r", prefix="p", days=3)),
        (rule(DAYS, where="<Prefix/>", status="Disabled"), LifecycleRule("r", is_enabled=False, days=3)),
        (rule(DAYS, where="<Filter/>"), LifecycleRule("r", filter_form="none", days=3)),
        (
            rule(DAYS, where="<Filter><Prefix> </Prefix></Filter>"),
            LifecycleRule("r", prefix=" ", filter_form="filter", days=3),
        ),
        (
            rule(DAYS, where=f"<Filter>{TAG}</Filter>"),
            LifecycleRule("r", tags=(("a", "1"),), filter_form="filter", days=3),
        ),
        (
            rule(
                DAYS,
                where=f"<Filter><And><Prefix>p</Prefix>{TAG}<ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>"
                "<ObjectSizeLessThan>9</ObjectSizeLessThan></And></Filter>",
            ),
            LifecycleRule(
                "r",
                prefix="p",
                tags=(("a", "1"),),
                size_greater_than=5,
                size_less_than=9,
                filter_form="and",
                days=3,
            ),
        ),
        (
            rule("<Expiration><Date>2026-11-22T00:00:00Z</Date></Expiration>"),
            LifecycleRule("r", prefix="p", filter_form="filter", date=20779 * DAY_S),
        ),
        (
            rule("<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"),
            LifecycleRule("r", prefix="p", filter_form="filter", expires_delete_markers=True),
        ),
        (
            rule(
                "<NoncurrentVersionExpiration><NoncurrentDays>4</NoncurrentDays><NewerNoncurrentVersions>2"
                "</NewerNoncurrentVersions></NoncurrentVersionExpiration><AbortIncompleteMultipartUpload>"
                "<DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>"
            ),
            LifecycleRule(
                "r", prefix="p", filter_form="filter", noncurrent_days=4, newer_versions=2, abort_days=7
            ),
        ),
        (
            rule(
                "<Transition><Days>60</Days><StorageClass>B</StorageClass></Transition><Transition><Days>0"
                "</Days><StorageClass>A</StorageClass></Transition><NoncurrentVersionTransition>"
                "<NoncurrentDays>0</NoncurrentDays><NewerNoncurrentVersions>3</NewerNoncurrentVersions>"
                "<StorageClass>A</StorageClass></NoncurrentVersionTransition>"
            ),
            LifecycleRule(
                "r",
                prefix="p",
                filter_form="filter",
                transitions=(Transition("A", 0), Transition("B", 60)),
                noncurrent_transitions=(Transition("A", 0, newer_versions=3),),
            ),
        ),
        (
            rule("<Transition><Date>2026-11-22T00:00:00Z</Date><StorageClass>A</StorageClass></Transition>"),
            LifecycleRule(
                "r", prefix="p", filter_form="filter", transitions=(Transition("A", date=20779 * DAY_S),)
            ),
        ),
    ],
)
def test_rules_are_read_and_shown_again(text, expected):
    rules = read(text)
    assert rules == [expected]
    shown = render(LIFECYCLE, render_rules(rules))
    assert parse_rules_document(parse(LIFECYCLE, shown)) == rules


def test_a_rule_without_a_name_gets_one():
    body = f"<Prefix/><Status>Enabled</Status>{DAYS}"
    assert len({found.id for found in read(body, body)}) == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (rule(""), "InvalidRequest"),
        (rule(DAYS, status="enabled"), "MalformedXML"),
        (rule(DAYS, name="x" * 256), "InvalidArgument"),
        (rule(DAYS, where=""), "MalformedXML"),
        (rule(DAYS, where="<Prefix/><Filter/>"), "MalformedXML"),
        (rule(DAYS, where=f"<Filter><Prefix>p</Prefix>{TAG}</Filter>"), "MalformedXML"),
        (rule(DAYS, where=f"<Filter><And>{TAG}</And></Filter>"), "MalformedXML"),
        (rule(DAYS, where=f"<Filter><And>{TAG}{TAG}</And></Filter>"), "InvalidTag"),
        (rule(DAYS, where=f"<Filter><Prefix>{'p' * 1025}</Prefix></Filter>"), "InvalidRequest"),
        (
            rule(DAYS, where="<Filter><ObjectSizeLessThan>-1</ObjectSizeLessThan></Filter>"),
            "InvalidArgument",
        ),
        (
            rule(
                DAYS,
                where="<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><ObjectSizeLessThan>5"
                "</ObjectSizeLessThan></And></Filter>",
            ),
            "InvalidRequest",
        ),
        (rule("<Expiration><Days>0</Days></Expiration>"), "InvalidArgument"),
        (rule("<Expiration><Days>1.5</Days></Expiration>"), "InvalidArgument"),
        (rule("<Expiration><Days>99999999999999999999999</Days></Expiration>"), "InvalidArgument"),
        (rule("<Expiration><Days>\u0663</Days></Expiration>"), "InvalidArgument"),
        (rule("<Expiration/>"), "MalformedXML"),
        (rule("<Expiration><Days>1</Days><Date>2026-11-22T00:00:00Z</Date></Expiration>"), "MalformedXML"),
        (rule("<Expiration><Date>2026-11-22T01:00:00Z</Date></Expiration>"), "InvalidArgument"),
        (rule("<Expiration><Date>soon</Date></Expiration>"), "MalformedXML"),
        (rule("<Expiration><Date>0001-01-01T00:00:00+23:00</Date></Expiration>"), "InvalidArgument"),
        (
            rule(
                "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>",
                where=f"<Filter>{TAG}</Filter>",
            ),
            "InvalidRequest",
        ),
        (
            rule(
                "<NoncurrentVersionExpiration><NewerNoncurrentVersions>2</NewerNoncurrentVersions>"
                "</NoncurrentVersionExpiration>"
            ),
            "MalformedXML",
        ),
        (
            rule(
                "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>101"
                "</NewerNoncurrentVersions></NoncurrentVersionExpiration>"
            ),
            "InvalidArgument",
        ),
        (rule("<AbortIncompleteMultipartUpload/>"), "MalformedXML"),
        (
            rule(
                "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>"
                "</AbortIncompleteMultipartUpload>",
                where=f"<Filter>{TAG}</Filter>",
            ),
            "InvalidRequest",
        ),
        (rule("<Transition><Days>1</Days></Transition>"), "MalformedXML"),
        (rule("<Transition><StorageClass>A</StorageClass></Transition>"), "MalformedXML"),
        (
            rule("<Transition><Days>-1</Days><StorageClass>A</StorageClass></Transition>"),
            "InvalidArgument",
        ),
        (
            rule(
                "<Transition><Days>1</Days><Date>2026-11-22T00:00:00Z</Date><StorageClass>A</StorageClass>"
                "</Transition>"
            ),
            "MalformedXML",
        ),
        (
            rule(
                "<Transition><Days>1</Days><StorageClass>A</StorageClass></Transition>"
                "<Transition><Days>2</Days><StorageClass>A</StorageClass></Transition>"
            ),
            "InvalidRequest",
        ),
        (
            rule(
                "<Transition><Days>1</Days><StorageClass>A</StorageClass></Transition>"
                "<Transition><Days>1</Days><StorageClass>B</StorageClass></Transition>"
            ),
            "InvalidRequest",
        ),
        (
            rule(
                "<Transition><Days>1</Days><StorageClass>A</StorageClass></Transition><Transition>"
                "<Date>2026-11-22T00:00:00Z</Date><StorageClass>B</StorageClass></Transition>"
            ),
            "InvalidRequest",
        ),
        (
            rule("<NoncurrentVersionTransition><StorageClass>A</StorageClass></NoncurrentVersionTransition>"),
            "MalformedXML",
        ),
        (
            rule(
                "<NoncurrentVersionTransition><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>0"
                "</NewerNoncurrentVersions><StorageClass>A</StorageClass></NoncurrentVersionTransition>"
            ),
            "InvalidArgument",
        ),
        (rule(DAYS + DAYS), "MalformedXML"),
        (rule(DAYS + "<Surprise/>"), "MalformedXML"),
    ],
)
def test_what_makes_no_sense_is_refused(text, code):
    with pytest.raises(S3Error) as caught:
        read(text)
    assert caught.value.code == code


def test_there_are_a_thousand_rules_of_different_names_and_of_one_kind():
    many = [rule(DAYS, name=f"r{n}") for n in range(1001)]
    assert len(read(*many[:1000])) == 1000
    for texts, code in (
        (many, "MalformedXML"),
        ((), "MalformedXML"),
        ((many[0], many[0]), "InvalidArgument"),
        ((many[0], rule(DAYS, name="old", where="<Prefix>x</Prefix>")), "InvalidRequest"),
    ):
        with pytest.raises(S3Error) as caught:
            read(*texts)
        assert caught.value.code == code


# --- rules in the metadata of a container: they come back, fit into headers, and what is broken is no rule


SOME = (
    LifecycleRule("a", days=1),
    LifecycleRule(
        "ü/&",
        is_enabled=False,
        prefix="p",
        tags=(("k", "v"),),
        size_greater_than=1,
        size_less_than=5,
        filter_form="and",
        date=86400,
    ),
    LifecycleRule("moves", transitions=(Transition("A", 0), Transition("B", date=86400))),
    LifecycleRule("former", noncurrent_transitions=(Transition("A", 3, newer_versions=2),)),
    LifecycleRule(
        "c",
        expires_delete_markers=True,
        noncurrent_days=3,
        newer_versions=4,
        abort_days=5,
        filter_form="none",
    ),
)


def test_rules_come_back_as_they_were():
    headers = encode_rules(SOME)
    assert decode_rules(sysmeta_of(headers)) == SOME


def test_a_thousand_rules_fit_and_shorter_ones_leave_nothing_of_longer_ones():
    rules = tuple(
        LifecycleRule(f"rule number {n}", prefix=f"folder/{n}/", days=n + 1, filter_form="filter")
        for n in range(1000)
    )
    headers = encode_rules(rules)
    assert decode_rules(sysmeta_of(headers)) == rules
    assert all(len(text) <= 4000 for text in headers.values())
    assert encode_rules(SOME).keys() == headers.keys() == encode_rules(()).keys()
    assert set(encode_rules(()).values()) == {""}


def test_what_has_no_room_is_refused():
    rng = random.Random(1)
    rules = [LifecycleRule("".join(rng.choices(string.printable[:90], k=255)), days=1) for _ in range(1000)]
    with pytest.raises(S3Error):
        encode_rules(rules)


@pytest.mark.parametrize("text", ["!", "AAAA", "eJyLBgAAXgBe"])
def test_rules_that_cannot_be_read_are_an_error(text):
    with pytest.raises(DamagedConfiguration, match="lifecycle configuration is damaged"):
        decode_rules({"s3api-lifecycle-0": text})


def test_without_a_first_piece_there_are_no_rules():
    assert decode_rules({"s3api-lifecycle-0": "", "s3api-lifecycle-7": "AAAA"}) == ()


def test_damaged_rules_hide_no_object_and_are_replaced_by_new_ones(s3):
    assert s3("PUT", "/bucket/key", {}, b"x").status == 200
    damage = {"x-container-sysmeta-s3api-lifecycle-0": "AAAA"}
    assert s3.sim("POST", "/AUTH_test/bucket", damage).status == 204
    s3.sim.cache.values.clear()
    answer = s3("GET", "/bucket?lifecycle")
    assert answer.status == 500 and b"lifecycle configuration is damaged" in answer.body
    assert s3("GET", "/bucket/key").body == b"x"
    assert s3("DELETE", "/bucket?lifecycle").status == 204
    assert s3("GET", "/bucket?lifecycle").code == "NoSuchLifecycleConfiguration"
