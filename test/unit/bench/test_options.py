"""The options that the comparisons with the peer share."""

from pathlib import Path

from swift.bench.options import parser


def test_a_comparison_says_where_it_works_and_for_how_long():
    found = parser("compare", "What it does.", seconds=8).parse_args([])
    assert (found.root, found.seconds, found.rounds) == (Path("/var/tmp/swift-compare"), 8, 3)
    assert found.json == Path("compare.json") and not found.xfs


def test_seconds_are_of_the_kind_that_the_default_is():
    made = parser("s3", None, seconds=0.5)
    assert made.parse_args(["--seconds", "1.25"]).seconds == 1.25
    assert "python -m swift.bench.s3" in made.format_help()
