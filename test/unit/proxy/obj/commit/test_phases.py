"""What an upload in two phases does with what its nodes say."""

from swift.base.timestamp import Timestamp
from swift.proxy.obj.commit.phases import UploadVerdict, Vote, VoteKind, decide
from test.support.checks import every

# Three replicas: two promises are a majority, two copies are needed.
REPLICAS = (2, 2)
# Six archives of which five must be stored.
ARCHIVES = (4, 5)


SAYS = {
    "h": VoteKind.RESERVED,
    "b": VoteKind.YOUNGER,
    "y": VoteKind.OLDER,
    "w": VoteKind.WAITING,
    "r": VoteKind.REFUSED,
    "n": VoteKind.NEWER,
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


@every(
    ("word", "rule", "verdict"),
    [
        ("w w w", REPLICAS, UploadVerdict.WAIT),
        ("h0 w w", REPLICAS, UploadVerdict.WAIT),
        ("h0 h0 w", REPLICAS, UploadVerdict.COMMIT),
        ("h0 h0 b", REPLICAS, UploadVerdict.COMMIT),
        ("h0 b w", REPLICAS, UploadVerdict.WAIT),
        ("h0 b b", REPLICAS, UploadVerdict.INSIST),
        ("h0 y b", REPLICAS, UploadVerdict.STEP_BACK),
        ("b y", REPLICAS, UploadVerdict.STEP_BACK),
        ("h0 b", REPLICAS, UploadVerdict.INSIST),
        ("h0", REPLICAS, UploadVerdict.LOST),
        ("h0 H0 H0", REPLICAS, UploadVerdict.LOST),
        ("h0 w H0 H0", REPLICAS, UploadVerdict.WAIT),
        ("", REPLICAS, UploadVerdict.LOST),
        # The condition is judged by the newest version, once a majority has it.
        ("r5 r5 h0", REPLICAS, UploadVerdict.REFUSED),
        ("h5 h5 r1", REPLICAS, UploadVerdict.COMMIT),
        ("r5 h0 w", REPLICAS, UploadVerdict.WAIT),
        ("r5 h0 h0", REPLICAS, UploadVerdict.DISAGREE),
        ("h5 r1 r1", REPLICAS, UploadVerdict.DISAGREE),
        ("h5 h1 h1", REPLICAS, UploadVerdict.DISAGREE),
        ("r5 b h0", REPLICAS, UploadVerdict.INSIST),
        ("r5", REPLICAS, UploadVerdict.LOST),
        # A handoff that has something got it while primaries were away; what it lacks proves nothing.
        ("h0 h0 R5", REPLICAS, UploadVerdict.DISAGREE),
        ("h5 h5 R0", REPLICAS, UploadVerdict.COMMIT),
        ("h5 h5 R3", REPLICAS, UploadVerdict.COMMIT),
        # Clocks differ: nothing is to be won with our timestamp.
        ("h0 h0 n", REPLICAS, UploadVerdict.OUTDATED),
        ("h0 h0 N", REPLICAS, UploadVerdict.OUTDATED),
        ("w w n", REPLICAS, UploadVerdict.OUTDATED),
        ("r5 r5 n", REPLICAS, UploadVerdict.OUTDATED),
        ("r h0 n", REPLICAS, UploadVerdict.REFUSED),
        # Nodes of the peer do not say by which version they judge.
        ("h h r", REPLICAS, UploadVerdict.REFUSED),
        ("h h h", REPLICAS, UploadVerdict.COMMIT),
        ("h h0 h5", REPLICAS, UploadVerdict.COMMIT),
        ("h0 h0 h0 h0 w", ARCHIVES, UploadVerdict.WAIT),
        ("h0 h0 h0 h0 H0", ARCHIVES, UploadVerdict.COMMIT),
        ("h0 h0 h0 h0 h0 w", ARCHIVES, UploadVerdict.COMMIT),
        ("h0 h0 h0 b", ARCHIVES, UploadVerdict.LOST),
        ("h0 h0 h0 b b b", ARCHIVES, UploadVerdict.INSIST),
        ("h0 h0 h0 y y y", ARCHIVES, UploadVerdict.STEP_BACK),
        ("h0 h0 h0 H0 H0", ARCHIVES, UploadVerdict.LOST),
    ],
)
def test_the_verdict_follows_from_the_votes(word, rule, verdict):
    assert decide(votes(word), *rule) is verdict


def test_two_writers_never_both_commit():
    """However the primaries are shared between two writers."""
    for mine in range(4):
        for others in range(4 - mine):
            one = votes("h0 " * mine + "b " * others)
            other = votes("h0 " * others + "b " * mine)
            assert [decide(one, *REPLICAS), decide(other, *REPLICAS)].count(UploadVerdict.COMMIT) < 2
