"""Requests pass through no more modules and calls than they did (``python -m tools.paths``)."""

from tools.paths import measure

#: Operation → modules and calls at most; both may only shrink. They vary a little with the order of green
#: threads.
MOST = {
    "PUT of 100 bytes": (76, 2190),
    "GET": (52, 270),
    "HEAD": (49, 250),
    "DELETE": (72, 2030),
    "listing": (50, 440),
    "sharded listing": (59, 2290),
    "S3 PUT of 100 bytes": (114, 2490),
    "S3 GET": (85, 500),
    "S3 HEAD": (82, 480),
    "S3 DELETE": (113, 2530),
    "S3 CreateMultipartUpload": (123, 3540),
    "S3 UploadPart": (130, 5700),
    "S3 CompleteMultipartUpload": (157, 13060),
    "idle replication pass, 32 objects": (66, 1710),
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
