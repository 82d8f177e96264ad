"""Record the peer's answers to the API cases: python -m test.support.record_answers PEER_BIN OUT.json

Black box only: the peer's servers are started with this project's all-in-one configuration.
"""

import json
import sys
import tempfile
from pathlib import Path

from swift.bench.contestants import make_contestants
from test.functional.api_cases import send_all
from test.functional.api_cases_front import send_front
from test.support.answers import Asker
from test.support.cluster import login


def main(peer_bin, out):
    with tempfile.TemporaryDirectory() as root:
        _ours, theirs = make_contestants(Path(root), Path(peer_bin))
        try:
            theirs.start()
            asker = Asker(theirs.host, lambda user: login(theirs.host, user))
            send_all(asker)
            send_front(asker)
        finally:
            theirs.stop()
    Path(out).write_text(json.dumps(asker.answers, indent=0, ensure_ascii=True) + "\n")
    print(f"{len(asker.answers)} answers")


if __name__ == "__main__":
    main(*sys.argv[1:])
