"""What /info tells to everybody, to operators, and to nobody."""

import pytest

from swift.telemetry.inforegistry import InfoRegistry


@pytest.fixture
def registry():
    made = InfoRegistry()
    made.register(
        "swift", {"version": "1", "policies": [{"name": "gold"}], "limits": {"a": {"b": 1, "c": 2}}}
    )
    made.register("keys", {"secret": "x"}, admin=True)
    return made


def test_the_public_sees_no_fact_of_operators(registry):
    assert list(registry.public()) == ["swift"]
    assert registry.with_admin()["admin"] == {"keys": {"secret": "x"}, "disallowed_sections": []}


def test_facts_of_one_section_add_up_and_later_ones_win(registry):
    registry.register("swift", {"version": "2", "more": True})
    registry.register("empty")
    told = registry.public()
    assert (told["swift"]["version"], told["swift"]["more"], told["empty"]) == ("2", True, {})
    assert "policies" in told["swift"]


@pytest.mark.parametrize("section", ["admin", "disallowed_sections", "a.b", "."])
def test_names_that_the_format_needs_are_no_sections(registry, section):
    with pytest.raises(ValueError, match="cannot be a section"):
        registry.register(section, {})


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("swift", None),
        ("swift.limits.a.b", {"a": {"c": 2}}),
        (" swift.limits.a ", {}),
        ("swift.limits.a.b.deeper", {"a": {"b": 1, "c": 2}}),
        ("swift.version.x", {"a": {"b": 1, "c": 2}}),
        ("unknown.a", {"a": {"b": 1, "c": 2}}),
        ("", {"a": {"b": 1, "c": 2}}),
        (".", {"a": {"b": 1, "c": 2}}),
    ],
)
def test_what_is_disallowed_is_left_out_and_nothing_else(registry, path, left):
    told = registry.public([path])
    assert told.get("swift", {}).get("limits") == left


def test_an_operator_is_told_what_the_public_is_not(registry):
    told = registry.with_admin(iter(["swift"]))
    assert "swift" not in told
    assert told["admin"]["disallowed_sections"] == ["swift"]


def test_what_is_done_with_an_answer_changes_no_fact(registry):
    registry.public()["swift"]["policies"][0]["name"] = "changed"
    registry.with_admin()["admin"]["keys"]["secret"] = "changed"
    registry.public(["swift.version"])
    told = registry.with_admin()
    assert told["swift"]["policies"] == [{"name": "gold"}]
    assert told["swift"]["version"] == "1"
    assert told["admin"]["keys"] == {"secret": "x"}
