"""A test over many cases fails with all of those that fail, and says why."""

import inspect

import pytest

from test.support.checks import REASONS_MAX, check_each, every


def test_every_failing_case_is_named_with_its_reason():
    def check(number):
        assert number != 1, "one"
        with pytest.raises(ZeroDivisionError):
            _ = 1 // (number - 2)
        raise KeyError(number)

    with pytest.raises(AssertionError) as caught:
        check_each(range(4), check)
    lines = [line for line in str(caught.value).split("\n") if line.startswith(("-", "4"))]
    assert lines[0] == "4 of 4 cases differ:" and lines[1].startswith("- 0: Failed: DID NOT RAISE")
    assert lines[2].startswith("- 1: one") and lines[3] == "- 2: KeyError: 2"
    assert lines[4].startswith("- 3: Failed: DID NOT RAISE")
    assert caught.value.__cause__ is not None


def test_the_name_of_no_case_is_left_out():
    def check(_case):
        raise AssertionError("x")

    with pytest.raises(AssertionError) as caught:
        check_each(range(3 * REASONS_MAX), check)
    assert str(caught.value).count("\n- ") == 3 * REASONS_MAX


def test_no_cases_are_a_mistake():
    with pytest.raises(AssertionError, match="no case"):
        check_each([], print)


def test_a_decorated_test_keeps_its_fixtures_and_gets_every_combination():
    seen = []

    @every(("a", "b"), [(1, 2), (3, 4)])
    @every("c", "xy")
    def test(fixture, a, b, c):
        seen.append((fixture, a, b, c))

    assert list(inspect.signature(test).parameters) == ["fixture"]
    test(fixture=0)
    assert seen == [(0, 1, 2, "x"), (0, 1, 2, "y"), (0, 3, 4, "x"), (0, 3, 4, "y")]


def test_a_skipped_case_hides_no_failure():
    def check(number):
        if number < 2:
            pytest.skip("not here")
        assert number != 3

    with pytest.raises(AssertionError, match="1 of 4"):
        check_each(range(4), check)
    with pytest.raises(pytest.skip.Exception, match="not here"):
        check_each(range(2), check)


def test_no_case_runs_when_the_time_of_the_test_is_over():
    seen = []

    def check(number):
        seen.append(number)
        pytest.fail("Timeout (>1.0s) from pytest-timeout.")

    with pytest.raises(AssertionError, match="- 0: Failed: Timeout"):
        check_each(range(4), check)
    assert seen == [0]
