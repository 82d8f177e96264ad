"""What a plan assumes can be changed one by one, and nonsense is refused by name."""

from dataclasses import fields

import pytest

from swift.plan.assumptions import (
    SHARES,
    Assumptions,
    assumption_doc,
    parse_number,
    parse_options,
    read_toml,
    with_values,
)
from swift.plan.errors import PlanError


def test_every_assumption_has_a_reason():
    assert all(assumption_doc(entry.name) for entry in fields(Assumptions))
    assert all(getattr(Assumptions(), name) <= 1 for name in SHARES)


def test_some_are_changed_and_the_others_stay():
    found = with_values(Assumptions(), {"drive_bytes": 2e13, "fill": 1}, "plan.toml")
    assert (found.drive_bytes, found.fill) == (2e13, 1)
    assert found.object_bytes == Assumptions().object_bytes


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"drives": 1}, "no assumption 'drives'"),
        ({"fill": 1.1}, "more than the whole"),
        ({"fill": 0}, "fill is 0"),
        ({"fill": True}, "not a number"),
        ({"fill": "x"}, "not a number"),
        ({"nodes_min": 0}, "at least 1"),
        ({"drive_bytes": float("nan")}, "drive_bytes is nan"),
        ({"drive_bytes": float("inf")}, "drive_bytes is inf"),
        ({"drive_bytes": -1}, "drive_bytes is -1"),
    ],
)
def test_a_wrong_one_is_named_with_where_it_stands(values, message):
    with pytest.raises(PlanError) as error:
        with_values(Assumptions(), values, "plan.toml")
    assert message in str(error.value) and str(error.value).startswith("plan.toml")


def test_what_may_be_missing_may_be_zero():
    assert with_values(Assumptions(), {"ssd_bytes": 0, "notice_hours": 0}, "x").ssd_bytes == 0


def test_numbers_stay_whole_or_broken():
    assert parse_number(3, "x") == 3 and isinstance(parse_number(3, "x"), int)
    assert parse_number(0.5, "x", 0.5) == 0.5


def test_options_are_pairs():
    found = parse_options(["drive-bytes=2e13", " fill =0.5", "nodes_min=7"])
    assert found == {"drive_bytes": 2e13, "fill": 0.5, "nodes_min": 7}
    assert isinstance(found["nodes_min"], int)


@pytest.mark.parametrize(
    ("pair", "message"), [("fill", "write NAME=NUMBER"), ("fill=x", "not a number"), ("", "write")]
)
def test_an_option_that_is_no_pair_is_named(pair, message):
    with pytest.raises(PlanError, match=message):
        parse_options([pair])


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("[capacity]\nfill = 0.5\n")
    assert read_toml(str(path)) == {"capacity": {"fill": 0.5}}
    for content in (b"fill = ", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(PlanError, match="plan.toml"):
            read_toml(str(path))
    with pytest.raises(OSError):
        read_toml(str(tmp_path / "missing"))
