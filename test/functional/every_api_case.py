"""All requests whose answers were recorded, in the order in which they were sent."""

from collections.abc import Callable
from dataclasses import dataclass, field

from test.functional import (
    api_cases_bulk,
    api_cases_chains,
    api_cases_objects,
    api_cases_pages,
    api_cases_quotas,
    api_cases_refusals,
    api_cases_s3,
    api_cases_s3_listings,
    api_cases_s3_more,
    api_cases_s3_signed,
    api_cases_s3_uploads,
    api_cases_signed,
    api_cases_small,
    api_cases_tables,
    api_cases_versioning,
    api_cases_web,
)
from test.functional.api_cases import send_all
from test.functional.api_cases_front import send_front
from test.functional.every_large_case import send_large
from test.support.transcripts import Asker, NumberingAsker


def send_everything(both):
    """Send every case to a fresh cluster with a replicated default policy and an erasure coded ``ec``."""
    send_all(both)
    send_front(both)
    api_cases_tables.send_tables(both)
    api_cases_objects.send_objects(both)


def send_s3(both):
    """Send the cases of the S3 API to one cluster; the later ones keep texts and details of errors."""
    api_cases_s3.send_s3(both)
    both.is_detailed = True
    api_cases_s3_uploads.send_uploads(both)
    api_cases_s3_signed.send_signed(both)
    api_cases_s3_listings.send_all_listings(both)
    api_cases_s3_more.send_more(both)


def send_filters(both):
    """Send the cases of filters to another one."""
    api_cases_signed.send_signed(both)
    api_cases_quotas.send_quotas(both)
    api_cases_web.send_web(both)
    api_cases_bulk.send_bulk(both)


def send_linked(both):
    """Send the cases of links, versions and pages together, and of what is refused first, to a third one."""
    api_cases_chains.send_chains(both)
    api_cases_pages.send_pages(both)
    api_cases_refusals.send_refusals(both)


@dataclass(frozen=True)
class Cases:
    """Cases for a cluster of their own, and what its proxy has besides (``test.support.cluster``)."""

    send: Callable
    places: dict[str, str] = field(default_factory=dict)
    options: str = ""
    asker: type[Asker] = Asker


#: The S3 API without what a new cluster has for trials.
PLAIN_S3 = "[filter:s3api]\nuse = egg:swift#s3api\nmax_upload_part_num = 10000\n"
#: Name of the recording in ``test/golden/data`` → its cases.
SETS = {
    "api-answers": Cases(send_everything),
    "filter-answers": Cases(send_filters),
    "large-answers": Cases(send_large),
    "small-filter-answers": Cases(
        api_cases_small.send_small, api_cases_small.PLACES, api_cases_small.OPTIONS
    ),
    "versioning-answers": Cases(
        api_cases_versioning.send_versioning, options=api_cases_versioning.OPTIONS, asker=NumberingAsker
    ),
    "linked-answers": Cases(
        send_linked, api_cases_pages.PLACES, api_cases_versioning.OPTIONS, asker=NumberingAsker
    ),
    "s3-answers": Cases(send_s3, options=PLAIN_S3, asker=api_cases_s3.S3Asker),
}
