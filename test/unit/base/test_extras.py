"""The command that installs an extra names packages that indexes have."""

import sys

import pytest

from swift.base.extras import install_command


@pytest.mark.parametrize(
    ("extra", "packages"),
    [("tier", ["lmdb"]), ("plan", ["simpy", "matplotlib"]), ("kms_keymaster", ["castellan", "oslo.config"])],
)
def test_the_packages_of_an_extra_are_named(extra, packages):
    command = install_command(extra)
    assert command.startswith(f"{sys.executable} -m pip install '")
    words = command.partition(" install ")[2].split()
    assert [word.strip("'").partition(">")[0] for word in words] == packages


def test_an_extra_that_is_not_known_is_that_of_the_checkout():
    assert install_command("none").endswith(" -m pip install 'CHECKOUT[none]'")
