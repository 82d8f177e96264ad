"""Every case of a filter gets the response recorded from the peer: status, headers and body."""

import json
from pathlib import Path

import pytest

from test.functional.api_cases_chains import DIFFERENT as CHAINS_DIFFERENT
from test.functional.api_cases_pages import DIFFERENT as PAGES_DIFFERENT
from test.functional.api_cases_refusals import DIFFERENT as REFUSALS_DIFFERENT
from test.functional.api_cases_versioning import DIFFERENT as VERSIONING_DIFFERENT
from test.functional.api_differences_s3 import DIFFERENT as S3_DIFFERENT
from test.functional.every_api_case import SETS
from test.functional.test_api_answers import without_statistics
from test.support.checks import report_all
from test.support.cluster import LiveCluster
from test.support.transcripts import Renaming, answers_of, differences

FOLDER = Path(__file__).parents[1] / "golden" / "data"
#: The others have tests of their own.
NAMES = sorted(set(SETS) - {"api-answers", "large-answers"})
GOLDEN = {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in NAMES}

#: A link for an object.
LINK = "temp_url_sig=2afc84a888d4c40f4fb26df3e58494b096ff536350fd845f9570fa617f2968c5"
#: Beginnings of requests whose answers differ on purpose: our status and the reason.
DIFFERENT = {
    "GET / [('Host', ": (200, "a page tells people what is here"),
    "GET /info ": (200, "the version is ours, and only our features are listed"),
    **{
        f"{method} /v1/AUTH_test/tu/a%20b/o.txt?{LINK}&temp_url_expires=9999999999&multipart-": (
            400,
            "a link passes no parameter that makes another request of it",
        )
        for method in ("GET", "HEAD")
    },
    "HEAD /v1/AUTH_test/web/list/ [] as None": (404, "the peer fails to give a HEAD an error page"),
    **VERSIONING_DIFFERENT,
    **S3_DIFFERENT,
    **CHAINS_DIFFERENT,
    **PAGES_DIFFERENT,
    **REFUSALS_DIFFERENT,
}


@pytest.fixture(scope="module", params=NAMES)
def pairs(request, tmp_path_factory):
    cases = SETS[request.param]
    root = tmp_path_factory.mktemp(request.param) / "data"
    choices = {"ec": "2+1", "rest_s": LiveCluster.AT_REST_S}
    live = LiveCluster(root, places=cases.places, options=cases.options, **choices)
    return answers_of(live, cases.send, cases.asker), GOLDEN[request.param]


def test_responses_match_the_recorded_ones(pairs):
    ours, theirs = pairs
    assert len(ours) == len(theirs)
    wrong, different, numbers = [], set(), Renaming()
    for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        known = [verdict for start, verdict in DIFFERENT.items() if their["request"].startswith(start)]
        if known and our["status"] == known[0][0] and not numbers.same(our, their):
            different.update(start for start in DIFFERENT if their["request"].startswith(start))
            continue
        for side in (our, their):
            without_statistics(side)
            for name in ("x-account-object-count", "x-account-bytes-used", "x-account-container-count"):
                side["headers"].pop(name, None)
        if not numbers.same(our, their):
            wrong.append((f"{number} {their['request']}", differences(our, their)))
    report_all(wrong, len(theirs))
    sent = {start for start in DIFFERENT for a in theirs if a["request"].startswith(start)}
    assert different == sent, f"no longer different: {sent - different}"
