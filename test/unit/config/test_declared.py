"""``declared.json`` names the daemons of the distribution."""

from importlib import import_module

import pytest

from swift.config.declared import daemons


@pytest.mark.parametrize("name", daemons())
def test_a_declared_daemon_is_that_of_its_module(name):
    declared, daemon = daemons()[name], import_module(daemons()[name].module).DAEMON
    assert (daemon.name, daemon.server_type) == (name, declared.server_type)
    assert daemon.usual_path == f"/etc/swift/{declared.conf_base}.conf"


def test_a_daemon_reads_the_file_of_its_server_or_one_of_its_own():
    assert daemons()["object-auditor"].conf_base == "object-server"
    assert daemons()["container-reconciler"].conf_base == "container-reconciler"
