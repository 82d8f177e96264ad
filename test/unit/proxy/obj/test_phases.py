"""What an upload in two phases does with what its nodes say."""

import pytest

from swift.proxy.obj.phases import Verdict, Votes, judge

# Three replicas: two promises are a majority, two copies are needed.
REPLICAS = (2, 2)
# Six archives of which five must be stored.
ARCHIVES = (4, 5)


def votes(word):
    """h, b, y, w, r: a primary that holds, is busy for a younger or older writer, waits, refuses; upper case
    letters are handoffs."""
    found = Votes()
    for letter in word:
        primary = letter.islower()
        match letter.lower():
            case "h":
                found.held += 1
                found.held_primaries += primary
            case "b" | "y":
                found.busy += 1
                found.busy_primaries += primary
                found.yielding += letter.lower() == "y"
            case "w":
                found.waiting += 1
                found.waiting_primaries += primary
            case "r":
                found.refused += 1
    return found


@pytest.mark.parametrize(
    ("word", "rule", "verdict"),
    [
        ("www", REPLICAS, Verdict.WAIT),
        ("hww", REPLICAS, Verdict.WAIT),
        ("hhw", REPLICAS, Verdict.COMMIT),
        ("hhb", REPLICAS, Verdict.COMMIT),
        ("hbw", REPLICAS, Verdict.WAIT),
        ("hbb", REPLICAS, Verdict.INSIST),
        ("hyb", REPLICAS, Verdict.STEP_BACK),
        ("by", REPLICAS, Verdict.STEP_BACK),
        ("hb", REPLICAS, Verdict.INSIST),
        ("h", REPLICAS, Verdict.LOST),
        ("hHH", REPLICAS, Verdict.LOST),
        ("hwHH", REPLICAS, Verdict.WAIT),
        ("hhr", REPLICAS, Verdict.REFUSED),
        ("r", REPLICAS, Verdict.REFUSED),
        ("", REPLICAS, Verdict.LOST),
        ("hhhhw", ARCHIVES, Verdict.WAIT),
        ("hhhhH", ARCHIVES, Verdict.COMMIT),
        ("hhhhhw", ARCHIVES, Verdict.COMMIT),
        ("hhhb", ARCHIVES, Verdict.LOST),
        ("hhhbbb", ARCHIVES, Verdict.INSIST),
        ("hhhyyy", ARCHIVES, Verdict.STEP_BACK),
        ("hhhHH", ARCHIVES, Verdict.LOST),
    ],
)
def test_the_verdict_follows_from_the_votes(word, rule, verdict):
    assert judge(votes(word), *rule) is verdict


def test_two_writers_never_both_commit():
    """However the primaries are shared between two writers."""
    for mine in range(4):
        for others in range(4 - mine):
            one = votes("h" * mine + "b" * others)
            other = votes("h" * others + "b" * mine)
            assert [judge(one, *REPLICAS), judge(other, *REPLICAS)].count(Verdict.COMMIT) < 2
