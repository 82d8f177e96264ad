"""Documents of notifications: what is taken comes back, everything else is refused."""

import pytest

from swift.s3.config.notifications import (
    NOTIFICATION,
    NotificationRule,
    decode_rules,
    encode_rules,
    parse_rules_document,
    parse_target_name,
    render_rules,
)
from swift.s3.core.errors import S3Error
from swift.s3.core.session import sysmeta_of
from swift.s3.core.xml import parse, render

ARN = "arn:aws:sqs:us-east-1:1:hook"


def read(body):
    document = f"<NotificationConfiguration>{body}</NotificationConfiguration>".encode()
    return parse_rules_document(parse(NOTIFICATION, document), ("hook", "other"))


def rule(events="<Event>s3:ObjectCreated:*</Event>", arn=ARN, kind="Queue", more=""):
    return f"<{kind}Configuration><Id>r</Id><{kind}>{arn}</{kind}>{events}{more}</{kind}Configuration>"


FILTER = (
    "<Filter><S3Key><FilterRule><Name>prefix</Name><Value>in/</Value></FilterRule>"
    "<FilterRule><Name>Suffix</Name><Value>.jpg</Value></FilterRule></S3Key></Filter>"
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", []),
        (rule(), [NotificationRule("r", "QueueConfiguration", ARN, ("s3:ObjectCreated:*",))]),
        (
            rule(kind="Topic", more=FILTER),
            [NotificationRule("r", "TopicConfiguration", ARN, ("s3:ObjectCreated:*",), "in/", ".jpg")],
        ),
    ],
)
def test_rules_are_read_kept_and_shown_again(body, expected):
    rules = read(body)
    assert rules == expected
    assert decode_rules(sysmeta_of(encode_rules(rules))) == tuple(rules)
    assert (
        parse_rules_document(parse(NOTIFICATION, render(NOTIFICATION, render_rules(rules))), ("hook",))
        == rules
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (rule(arn="arn:aws:sqs:us-east-1:1:nobody"), "InvalidArgument"),
        (rule(arn="http://169.254.169.254/latest"), "InvalidArgument"),
        (rule(arn=""), "InvalidArgument"),
        (rule(events=""), "MalformedXML"),
        (rule(events="<Event>s3:Everything</Event>"), "InvalidArgument"),
        (rule(more=FILTER.replace("prefix", "colour")), "InvalidArgument"),
        (rule(more=FILTER.replace("Suffix", "prefix")), "InvalidArgument"),
        (rule() + rule(), "InvalidArgument"),
        ("<EventBridgeConfiguration/>", "NotImplemented"),
        ("<Surprise/>", "MalformedXML"),
    ],
)
def test_what_makes_no_sense_is_refused(body, code):
    with pytest.raises(S3Error) as caught:
        read(body)
    assert caught.value.code == code


def test_a_rule_wants_events_of_names():
    found = NotificationRule("r", "k", ARN, ("s3:ObjectCreated:*", "s3:ObjectRemoved:Delete"), "in/", ".jpg")
    assert found.matches("s3:ObjectCreated:Put", "in/a.jpg")
    assert found.matches("s3:ObjectRemoved:Delete", "in/a.jpg")
    assert not found.matches("s3:ObjectRemoved:DeleteMarkerCreated", "in/a.jpg")
    assert not found.matches("s3:ObjectCreated:Put", "in/a.png")
    assert not found.matches("s3:ObjectCreated:Put", "a.jpg")


@pytest.mark.parametrize(
    ("arn", "name"),
    [(ARN, "hook"), ("arn:minio:sqs::hook:webhook", "hook"), ("hook", ""), ("arn:aws:sqs:a:b:c:d", "")],
)
def test_an_arn_names_a_target(arn, name):
    assert parse_target_name(arn) == name
