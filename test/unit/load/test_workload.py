"""Workload files are checked when they are read; an error names file, line and field."""

import pytest

from swift.load.samples import Constant, Uniform, Weighted
from swift.load.workload import BUILT_IN, BadWorkload, built_in_names, load, parse

SMALL = '[objects]\nsize = 10\n\n[[phase]]\nkind = "main"\nseconds = 1\nmix = {get = 1}\n'
NAMES = {
    *("LrgRead", "LrgWrite", "SmlRead", "SmlWrite", "LrgRWMix", "rising"),
    *("small_download", "large_download", "small_upload", "large_upload"),
}


def test_the_built_in_workloads_are_there_and_end_with_removing_what_they_made():
    assert set(built_in_names()) == NAMES
    for name in NAMES:
        found = load(BUILT_IN / f"{name}.toml")
        assert found.description and found.phases[-1].kind == "cleanup"


def test_sizes_are_written_in_three_ways():
    text = SMALL.replace("size = 10", 'size = [{size = "1 KB", weight = 1}, {min = 1, max = 2, weight = 3}]')
    assert parse(text, "w").objects.sizes == Weighted(((Constant(1000), 1.0), (Uniform(1, 2), 3.0)))


def test_a_phase_may_have_sizes_of_its_own_and_a_time_that_is_not_counted():
    phase = parse(SMALL + 'size = "2 KiB"\nrampup = 5\n', "w").phases[0]
    assert phase.sizes == Constant(2048) and phase.rampup == 5


def test_a_command_line_changes_main_phases_and_the_clients_of_all():
    found = parse('[[phase]]\nkind = "init"\n' + SMALL.partition("\n\n")[2], "w").with_options(
        clients=3, seconds=9.0, rate=None, verify=True
    )
    init, main = found.phases
    assert (init.clients, init.seconds, main.clients, main.seconds) == (3, None, 3, 9.0)
    assert main.verify and main.rate is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size = 10", "size = -1", "w:2: objects.size: a size is"),
        ("size = 10", "size = {min = 1}", "w:2: objects.size: sizes are"),
        ("size = 10", "size = [{size = 1}]", "w:2: objects.size: each of several sizes has a weight"),
        ("size = 10", "sise = 10", "w:2: objects.sise: no such field; there are"),
        ("size = 10", "containers = 0", "w:2: objects.containers: must be at least 1"),
        ("[objects]", "seed = 'x'\n[objects]", "w:1: workload.seed: must be a whole number"),
        ('"main"', '"middle"', "w:5: phase#1.kind: must be one of init, prepare, main, cleanup"),
        ("seconds = 1", "seconds = 0", "w:6: phase#1.seconds: must be above 0"),
        ("seconds = 1", "seconds = nan", "w:6: phase#1.seconds: must be a number"),
        ("seconds = 1", "clients = 1", "w:4: phase#1.seconds: a main phase ends after"),
        ("{get = 1}", "{fetch = 1}", "w:7: phase#1.mix: no operation 'fetch'"),
        ("{get = 1}", "{get = 0}", "w:7: phase#1.mix: one of the weights"),
        ("mix = {get = 1}", "", "w:4: phase#1.mix: a main phase needs a mix"),
        ('kind = "main"', 'kind = "init"', "w:7: phase#1.mix: only main phases"),
        ('kind = "main"', 'kind = "init', "w:5: "),
    ],
)
def test_an_error_names_file_line_and_field(old, new, message):
    with pytest.raises(BadWorkload) as error:
        parse(SMALL.replace(old, new), "w")
    assert str(error.value).startswith(message), error.value


def test_the_line_of_a_field_is_that_of_its_own_phase():
    text = '[[phase]]\nkind = "init"\nclients = 1\n\n[[phase]]\nkind = "prepare"\nclients = 0\n'
    with pytest.raises(BadWorkload, match=r"^w:7: phase#2\.clients"):
        parse(text, "w")


def test_a_workload_without_phases_is_refused():
    with pytest.raises(BadWorkload, match="at least one"):
        parse("", "w")
