"""The Markov chain of a loss agrees with closed forms and with a simulation of drives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.plan.durability import loss_probability, mean_time_to_loss, parse_policy, simulate_loss
from swift.plan.errors import PlanError


def test_one_copy_lasts_as_long_as_its_drive():
    assert mean_time_to_loss(parse_policy("1"), 0.01, 5.0) == pytest.approx(100)


@given(st.floats(1e-6, 1e-2), st.floats(0.01, 10))
def test_two_copies_have_the_closed_form(failure, repair):
    expected = (3 * failure + repair) / (2 * failure**2)
    assert mean_time_to_loss(parse_policy("2"), failure, repair) == pytest.approx(expected)


@pytest.mark.parametrize("policy", ["1", "2", "3", "4+2", "8+4"])
def test_simulated_drives_are_lost_when_the_chain_says(policy):
    assert simulate_loss(parse_policy(policy), seed=3, losses=600).ratio == pytest.approx(1, abs=0.15)


def test_the_same_seed_gives_the_same_losses():
    shape = parse_policy("4+2")
    assert simulate_loss(shape, seed=1, losses=20) == simulate_loss(shape, seed=1, losses=20)
    assert simulate_loss(shape, seed=1, losses=20) != simulate_loss(shape, seed=2, losses=20)


@given(st.floats(1e-7, 1e-4), st.floats(1e-3, 1))
def test_more_redundancy_loses_less_and_a_probability_is_one(failure, repair):
    losses = [loss_probability(parse_policy(text), failure, repair, 8766) for text in ("1", "2", "3", "4")]
    assert losses == sorted(losses, reverse=True)
    assert all(0 <= loss <= 1 for loss in losses)


@pytest.mark.parametrize("text", ["", "0", "0+3", "a", "3+", "-3", "3.5", "8+4+2"])
def test_what_is_no_policy_is_refused(text):
    with pytest.raises(PlanError, match="policy"):
        parse_policy(text)


def test_shapes():
    shape = parse_policy("8+4")
    assert (shape.needed, shape.total, shape.tolerated, shape.overhead) == (8, 12, 4, 1.5)
