"""Plots are SVG that stands in a page by itself, whatever names the operations have."""

import warnings
from xml.etree import ElementTree

import pytest

from swift.load import plots
from swift.load.measure import OperationResult


def operation(count=1000, failed=0, latency_s=0.01):
    result = OperationResult()
    for number in range(count):
        result.add(number % 10, latency_s * (1 + number % 7), 100, None)
    for number in range(failed):
        result.add(number % 10, latency_s, 0, "503")
    return result


def parsed(svg):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ElementTree.fromstring(svg)


OPERATIONS = {"get": operation(), "put": operation(50, 5)}


def test_every_plot_is_whole_and_has_neither_a_size_nor_a_date():
    for svg in (
        plots.percentile_plot(OPERATIONS),
        plots.throughput_plot(OPERATIONS, 10.4),
        plots.failure_plot(OPERATIONS, 10.0, (2.0, 4.0), "A failure"),
        plots.heat_map("get", OPERATIONS["get"], 10.0),
    ):
        root = parsed(svg)
        assert root.tag.endswith("svg") and root.get("role") == "img" and root.get("aria-label")
        assert root.get("width") is None and root.get("height") is None and "metadata" not in svg


def test_the_same_figures_make_the_same_plot():
    assert plots.percentile_plot(OPERATIONS) == plots.percentile_plot(OPERATIONS)


def test_no_two_plots_of_a_page_share_an_id():
    one, other = (
        {element.get("id") for element in parsed(svg).iter() if element.get("id")}
        for svg in (plots.percentile_plot(OPERATIONS), plots.throughput_plot(OPERATIONS, 10.0))
    )
    assert one and other and not one & other


def test_what_refers_to_an_id_refers_to_one_that_is_there():
    svg = plots.heat_map("get", OPERATIONS["get"], 10.0)
    root = parsed(svg)
    known = {element.get("id") for element in root.iter()}
    used = {
        value.split("#")[1].rstrip(")")
        for element in root.iter()
        for value in element.attrib.values()
        if "#p" in value and value.split("#")[1].startswith("p")
    }
    assert used and used <= known


@pytest.mark.parametrize("name", ['a "quoted" <name>', "back\\slash \\1 \\g<9>", "&amp;", "ü"])
def test_a_title_may_have_any_letters(name):
    root = parsed(plots.heat_map(name, OPERATIONS["get"], 10.0))
    assert root.get("aria-label") == f"Latency of {name} over time"


@pytest.mark.parametrize("nothing", [operation(0), operation(0, 3)])
def test_operations_of_which_none_was_done_can_be_drawn(nothing):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for svg in (
            plots.percentile_plot({"get": nothing}),
            plots.throughput_plot({"get": nothing}, 0.0),
            plots.failure_plot({"get": nothing}, 0.0, (0.0, 0.0), "t"),
            plots.heat_map("get", nothing, 0.0),
        ):
            assert parsed(svg).tag.endswith("svg")


def test_percentiles_are_shown_as_far_as_there_are_operations_for_them():
    few, many = (
        plots.percentile_plot({"get": operation(5)}),
        plots.percentile_plot({"get": operation(20_000)}),
    )
    assert few.count("<use") < many.count("<use")
