"""All requests about large objects, copies, links and versions whose answers were recorded, in order."""

from test.functional.api_cases_copy import send_copies
from test.functional.api_cases_slo import send_slo
from test.functional.api_cases_symlink import send_symlinks
from test.functional.api_cases_versions import send_versions


def send_large(both):
    """Send every case to a fresh cluster."""
    send_slo(both)
    send_copies(both)
    send_symlinks(both)
    send_versions(both)
