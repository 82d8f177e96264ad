"""All requests about large objects whose answers were recorded, in the order in which they were sent."""

from test.functional.api_cases_copy import send_copies
from test.functional.api_cases_slo import send_slo
from test.functional.api_cases_symlink import send_symlinks


def send_large(both):
    """Send every case to a fresh cluster."""
    send_slo(both)
    send_copies(both)
    send_symlinks(both)
