"""Rules come from a file; what is wrong in it is said with file, line and rule.

See doc/explanation/admission.md.
"""

import pytest

from swift.base.errors import ConfigError
from swift.middleware.admission.amounts import Amounts, format_amount
from swift.middleware.admission.rules import RequestProperties, parse_rules

GOOD = """
# who gets what
[[rule]]
name = "backup"
account = "AUTH_backup"
guaranteed = { bytes = "50 MB", streams = 4 }
greatest = { bytes = "200 MB", requests = 500 }

[[rule]]
name = "each"
account = "*"
greatest = { streams = 100 }

[[rule]]
name = "copies"
class = "replication"
weight = 0.5
"""


def rules(text, **more):
    return parse_rules(text, source="admission.toml", **more)


def test_a_rule_says_whom_it_is_for_and_how_much():
    backup, each, copies = rules(GOOD).rules
    assert backup.guaranteed == Amounts(bytes=50e6, streams=4)
    assert backup.greatest == Amounts(bytes=200e6, requests=500)
    assert (backup.line, each.line, copies.line) == (3, 9, 14)
    assert (backup.defines_class, each.defines_class, copies.defines_class) == (True, False, True)
    assert rules("").rules == ()


def test_the_first_rule_that_holds_gives_the_lane_and_all_that_hold_bound():
    found = rules(GOOD)
    facts = RequestProperties("AUTH_backup", kind="replication")
    assert found.find_class(facts)[0] == "rule:backup"
    assert [key for key, _rule in found.matching_limits(facts)] == ["limit:backup", "limit:each/AUTH_backup"]
    assert found.find_class(RequestProperties("AUTH_b", kind="replication"))[0] == "rule:copies"
    assert found.find_class(RequestProperties("AUTH_b"))[0] == "account:AUTH_b"


@pytest.mark.parametrize(
    ("condition", "facts", "holds"),
    [
        ('container = "a/c"', RequestProperties("a", "c"), True),
        ('container = "a/c"', RequestProperties("b", "c"), False),
        ('container = "*"', RequestProperties("a"), False),
        ('user = "a:me"', RequestProperties("a", user="a:me"), True),
        ('user = "*"', RequestProperties("a"), False),
        ('class = "s3"', RequestProperties("a"), False),
        ('account = "a"\nclass = "s3"', RequestProperties("a", kind="s3"), True),
        ('account = "a"\nclass = "s3"', RequestProperties("b", kind="s3"), False),
    ],
)
def test_all_conditions_of_a_rule_must_hold(condition, facts, holds):
    (rule,) = rules(f'[[rule]]\nname = "r"\nweight = 1\n{condition}\n').rules
    assert rule.matches(facts) is holds


def test_amounts_are_shown_as_people_read_them():
    assert format_amount(2.5e9, "bytes") == "2.5 GB/s"
    assert format_amount(12, "bytes") == "12 B/s"
    assert format_amount(3, "streams") == "3 streams"
    assert format_amount(1000, "requests") == "1000 requests/s"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]", "line 1"),
        ('[[rules]]\nname = "x"', "admission.toml: line 1: 'rules' is not known"),
        ("[rule]\nname = 1", "admission.toml: line 1: rules begin with"),
        ("rule = [1]", "line 1: rule: a rule is a table"),
        ("[[rule]]\nweight = 1", "line 1: rule: name is missing"),
        ('\n[[rule]]\nname = "a"', "line 3: rule 'a': no limit"),
        ('[[rule]]\nname = "@a"\nweight = 1', "line 2: rule '@a': a name neither"),
        ('[[rule]]\nname = "a"\nweight = 1\n[[rule]]\nname = "a"', "line 5: rule 'a': another rule"),
        ('[[rule]]\nname = "a"\nweigth = 1', "line 3: rule 'a': 'weigth' is not known"),
        ('[[rule]]\nname = "a"\nweight = 0', "line 3: rule 'a': weight must be more than 0"),
        ('[[rule]]\nname = "a"\nclass = "x"\nweight = 1', "line 3: rule 'a': class must be one of"),
        ('[[rule]]\nname = "a"\ncontainer = "c"\nweight = 1', "line 3: rule 'a': container must be"),
        ('[[rule]]\nname = "a"\naccount = 3\nweight = 1', "line 3: rule 'a': account must be a text"),
        ('[[rule]]\nname = "a"\ngreatest = { byts = 1 }', "line 3: rule 'a': greatest: 'byts' is not known"),
        ('[[rule]]\nname = "a"\ngreatest = { bytes = "x" }', "line 3: rule 'a': greatest: bytes must be"),
        ('[[rule]]\nname = "a"\ngreatest = 5', "line 3: rule 'a': greatest must be a table"),
        (
            '[[rule]]\nname = "a"\naccount = "*"\nguaranteed = { bytes = 1 }',
            "line 4: rule 'a': a guarantee needs names",
        ),
        (
            '[[rule]]\nname = "a"\ngreatest = { bytes = 1 }\nguaranteed = { bytes = 2 }',
            "line 4: rule 'a': bytes are guaranteed beyond",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_rule(text, said):
    with pytest.raises(ConfigError) as error:
        rules(text)
    assert "admission.toml: " in str(error.value)
    assert said in str(error.value)


def test_no_more_is_guaranteed_than_may_be_promised():
    text = "".join(f'[[rule]]\nname = "r{n}"\nguaranteed = {{ bytes = 40 }}\n' for n in range(3))
    assert len(rules(text, promisable=Amounts(bytes=120)).rules) == 3
    with pytest.raises(ConfigError, match=r"line 7: rule 'r2': with it 120 B/s are guaranteed, and 100 B/s"):
        rules(text, promisable=Amounts(bytes=100))
