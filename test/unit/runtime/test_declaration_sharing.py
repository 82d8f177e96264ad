"""Daemons of which several processes share the work."""

import argparse
from types import SimpleNamespace

import pytest

from swift.base.errors import ConfigError
from swift.runtime.declaration import make_argument_adder, parse_process_numbers


def share(words, *, processes=0, process=0):
    parser = argparse.ArgumentParser()
    make_argument_adder("those that share")(parser)
    parts = SimpleNamespace(args=parser.parse_args(words), conf_path="x.conf")
    return parse_process_numbers(parts, SimpleNamespace(processes=processes, process=process))


@pytest.mark.parametrize(
    "words, options, expected",
    [
        ([], {}, (0, 0)),
        ([], {"processes": 3, "process": 2}, (3, 2)),
        (["--process", "1"], {"processes": 3, "process": 2}, (3, 1)),
        (["--processes", "0"], {"processes": 3, "process": 5}, (0, 5)),
    ],
)
def test_the_command_line_counts_before_the_file(words, options, expected):
    assert tuple(share(words, **options).values()) == expected


def test_a_process_that_is_none_of_them_is_refused():
    with pytest.raises(ConfigError, match="process 3 must be below processes 3 .x.conf."):
        share(["--process", "3", "--processes", "3"])
