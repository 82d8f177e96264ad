"""What an upload in two phases does with what its nodes say."""

import pytest

from swift.base.timestamp import Timestamp
from swift.proxy.obj.phases import Say, Verdict, Vote, judge

# Three replicas: two promises are a majority, two copies are needed.
REPLICAS = (2, 2)
# Six archives of which five must be stored.
ARCHIVES = (4, 5)


SAYS = {
    "h": Say.HELD,
    "b": Say.YOUNGER,
    "y": Say.OLDER,
    "w": Say.WAITING,
    "r": Say.REFUSED,
    "n": Say.NEWER,
}


def votes(text):
    """One word a node: h, b, y, w, r, n for what it says (held, busy for a younger or older writer, waiting,
    refused, knows something newer than ours), and a digit for the version that it knows. Upper case letters
    are handoffs.
    """
    found = []
    for word in text.split():
        version = Timestamp(int(word[1:])) if word[1:] else None
        found.append(Vote(SAYS[word[0].lower()], word[0].islower(), version))
    return found


@pytest.mark.parametrize(
    ("word", "rule", "verdict"),
    [
        ("w w w", REPLICAS, Verdict.WAIT),
        ("h0 w w", REPLICAS, Verdict.WAIT),
        ("h0 h0 w", REPLICAS, Verdict.COMMIT),
        ("h0 h0 b", REPLICAS, Verdict.COMMIT),
        ("h0 b w", REPLICAS, Verdict.WAIT),
        ("h0 b b", REPLICAS, Verdict.INSIST),
        ("h0 y b", REPLICAS, Verdict.STEP_BACK),
        ("b y", REPLICAS, Verdict.STEP_BACK),
        ("h0 b", REPLICAS, Verdict.INSIST),
        ("h0", REPLICAS, Verdict.LOST),
        ("h0 H0 H0", REPLICAS, Verdict.LOST),
        ("h0 w H0 H0", REPLICAS, Verdict.WAIT),
        ("", REPLICAS, Verdict.LOST),
        # The condition is judged by the newest version, once a majority has it.
        ("r5 r5 h0", REPLICAS, Verdict.REFUSED),
        ("h5 h5 r1", REPLICAS, Verdict.COMMIT),
        ("r5 h0 w", REPLICAS, Verdict.WAIT),
        ("r5 h0 h0", REPLICAS, Verdict.DISAGREE),
        ("h5 r1 r1", REPLICAS, Verdict.DISAGREE),
        ("h5 h1 h1", REPLICAS, Verdict.DISAGREE),
        ("r5 b h0", REPLICAS, Verdict.INSIST),
        ("r5", REPLICAS, Verdict.LOST),
        # A handoff that has something got it while primaries were away; what it lacks proves nothing.
        ("h0 h0 R5", REPLICAS, Verdict.DISAGREE),
        ("h5 h5 R0", REPLICAS, Verdict.COMMIT),
        ("h5 h5 R3", REPLICAS, Verdict.COMMIT),
        # Clocks differ: nothing is to be won with our timestamp.
        ("h0 h0 n", REPLICAS, Verdict.OUTDATED),
        ("h0 h0 N", REPLICAS, Verdict.OUTDATED),
        ("w w n", REPLICAS, Verdict.OUTDATED),
        ("r5 r5 n", REPLICAS, Verdict.OUTDATED),
        ("r h0 n", REPLICAS, Verdict.REFUSED),
        # Nodes of the peer do not say by which version they judge.
        ("h h r", REPLICAS, Verdict.REFUSED),
        ("h h h", REPLICAS, Verdict.COMMIT),
        ("h h0 h5", REPLICAS, Verdict.COMMIT),
        ("h0 h0 h0 h0 w", ARCHIVES, Verdict.WAIT),
        ("h0 h0 h0 h0 H0", ARCHIVES, Verdict.COMMIT),
        ("h0 h0 h0 h0 h0 w", ARCHIVES, Verdict.COMMIT),
        ("h0 h0 h0 b", ARCHIVES, Verdict.LOST),
        ("h0 h0 h0 b b b", ARCHIVES, Verdict.INSIST),
        ("h0 h0 h0 y y y", ARCHIVES, Verdict.STEP_BACK),
        ("h0 h0 h0 H0 H0", ARCHIVES, Verdict.LOST),
    ],
)
def test_the_verdict_follows_from_the_votes(word, rule, verdict):
    assert judge(votes(word), *rule) is verdict


def test_two_writers_never_both_commit():
    """However the primaries are shared between two writers."""
    for mine in range(4):
        for others in range(4 - mine):
            one = votes("h0 " * mine + "b " * others)
            other = votes("h0 " * others + "b " * mine)
            assert [judge(one, *REPLICAS), judge(other, *REPLICAS)].count(Verdict.COMMIT) < 2
