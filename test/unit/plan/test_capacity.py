"""A capacity plan follows from its assumptions, and grows with the number of objects."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift.plan.assumptions import Assumptions, parse_options, with_values
from swift.plan.capacity import capacity_figures, size_cluster
from swift.plan.durability import parse_policy
from swift.plan.errors import PlanError

THREE = parse_policy("3")
SHAPES = st.sampled_from([parse_policy(text) for text in ("1", "2", "3", "4+2", "8+4", "10+4")])


def figures(objects, shape=THREE, **values):
    return {
        figure.name: figure
        for figure in capacity_figures(objects, shape, with_values(Assumptions(), values, "test"))
    }


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10**13), SHAPES)
def test_a_drive_has_a_hundred_partitions_at_the_largest_size_and_no_more_than_twice_that(objects, shape):
    given_ = Assumptions()
    size = size_cluster(objects, shape, given_)
    at_largest = size.copies_per_drive / given_.growth
    assert at_largest >= given_.partitions_per_drive
    assert at_largest <= 2 * given_.partitions_per_drive
    assert size.drives >= shape.total
    assert size.drives * given_.drive_bytes * given_.fill >= size.stored_bytes


def test_more_objects_never_need_less():
    sizes = [size_cluster(10**power, THREE, Assumptions()) for power in range(16)]
    for smaller, larger in pairwise(sizes):
        assert larger.drives >= smaller.drives
        assert larger.nodes >= smaller.nodes
        assert larger.part_power >= smaller.part_power


def test_every_figure_says_what_it_follows_from_for_a_million_to_ten_trillion_objects():
    for power in range(6, 14):
        assert all(figure.because for figure in figures(10**power).values())


def test_a_billion_objects_by_hand():
    found = figures(10**9, object_bytes=10**6, drive_bytes=10e12, fill=0.5)
    assert found["bytes stored"].value == 3e15
    assert found["drives"].value == 600
    assert found["storage nodes"].value == 25
    # 100 x 600 x 4 / 3 = 80,000, and 2^17 is the next power of two.
    assert found["part power"].value == 17
    assert found["scrub of all data"].value == pytest.approx(5e12 / 20e6)


def test_a_container_with_more_rows_than_a_shard_may_have_is_sharded():
    found = figures(10**9, objects_per_container=10_000_000)
    assert found["shards of a container"].value == 10
    assert found["containers"].value == 100


def test_a_quicker_rebuild_loses_less():
    slow, quick = figures(10**8), figures(10**8, notice_hours=0, rebuild_bytes_s=50e6)
    assert quick["rebuild of a drive"].value < slow["rebuild of a drive"].value
    loss = "loss of any object in a year"
    assert quick[loss].value < slow[loss].value


@pytest.mark.parametrize(
    "values, message",
    [
        ({"drive_size": 3}, "there is no assumption 'drive_size'"),
        ({"fill": 2}, "more than the whole"),
        ({"fill": 0}, "fill is 0"),
        ({"growth": 0.5}, "not a number of at least 1"),
        ({"drive_bytes": "big"}, "not a number"),
        ({"drive_bytes": float("nan")}, "not a number of at least"),
    ],
)
def test_a_bad_assumption_is_one_sentence(values, message):
    with pytest.raises(PlanError, match=message):
        with_values(Assumptions(), values, "ours.toml")


def test_options_name_assumptions():
    assert parse_options(["drive-bytes=2e13", "growth=2"]) == {"drive_bytes": 2e13, "growth": 2}
    for bad in ("growth", "growth=many", "growth=1e"):
        with pytest.raises(PlanError, match="--set"):
            parse_options([bad])
