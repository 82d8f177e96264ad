"""Requests pass through no more modules and calls than they did (``python -m tools.paths``)."""

from tools.paths import measure

#: Operation → modules and calls at most; both may only shrink. They vary a little with the order of green
#: threads.
MOST = {
    "PUT of 100 bytes": (76, 2000),
    "GET": (52, 250),
    "HEAD": (49, 230),
    "DELETE": (72, 1850),
    "listing": (57, 880),
    "sharded listing": (58, 2100),
    "S3 GET": (85, 550),
    "S3 CreateMultipartUpload": (121, 3150),
    "S3 UploadPart": (128, 5150),
    "S3 CompleteMultipartUpload": (154, 12100),
    "idle replication pass, 32 objects": (64, 1650),
}


def test_requests_pass_through_no_more_modules_and_calls():
    measured = {name: recording.counts() for name, packages, recording in measure() if not packages}
    assert measured.keys() == MOST.keys()
    over = {
        name: (counts.modules, counts.calls)
        for name, counts in measured.items()
        if counts.modules > MOST[name][0] or counts.calls > MOST[name][1]
    }
    assert not over, "shorten the way, or say in the commit why it must be longer and write it here"
