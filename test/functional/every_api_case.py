"""All requests whose answers were recorded, in the order in which they were sent."""

from test.functional import api_cases_objects, api_cases_tables
from test.functional.api_cases import send_all
from test.functional.api_cases_front import send_front


def send_everything(both):
    """Send every case to a fresh cluster with a replicated default policy and an erasure coded ``ec``."""
    send_all(both)
    send_front(both)
    api_cases_tables.send_tables(both)
    api_cases_objects.send_objects(both)
