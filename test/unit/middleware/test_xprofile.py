"""Profiles are not taken here (middleware.md §15)."""

import pytest

from swift.middleware.xprofile import Xprofile, XprofileSettings
from test.support.filters import SmallBackend, ask


@pytest.mark.parametrize(
    ("path", "status"), [("/__profile__", 501), ("/__profile__/all", 501), ("/__profile__x", 200)]
)
def test_profiles_are_not_taken_here(path, status):
    assert ask(Xprofile(SmallBackend(), XprofileSettings()), path=path).status == status
