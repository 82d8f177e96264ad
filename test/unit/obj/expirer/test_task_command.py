"""Whether a node works on the expirer's queue is said by its configuration."""

import pytest

from test.support.peer import run

pytestmark = pytest.mark.process


def once(conf):
    return run("swift-object-expirer", conf, "once", "-v")


@pytest.fixture
def conf(tmp_path):
    """Makes an object server's configuration with these lines for the expirer."""
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")

    def make(lines, app="[app:object-server]\nuse = egg:swift#object\n"):
        path = tmp_path / "object-server.conf"
        path.write_text(
            f"[DEFAULT]\nswift_dir = {tmp_path}\nuser = root\nrecon_cache_path = {tmp_path}\n{app}{lines}"
        )
        return path

    return make


@pytest.mark.parametrize("lines", ["", "[object-expirer]\n"])
def test_a_node_that_is_not_told_to_expires_nothing_and_needs_no_client(conf, lines):
    done = once(conf(lines))
    assert done.returncode == 0
    assert "dequeue_from_legacy is not set" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("lines", "app"),
    [("[object-expirer]\ndequeue_from_legacy = yes\n", "[app:object-server]\n"), ("[object-expirer]\n", "")],
)
def test_one_that_works_on_the_queue_says_what_client_it_lacks(conf, lines, app):
    done = once(conf(f"{lines}internal_client_conf_path = /nowhere/client.conf\n", app))
    assert done.returncode == 1
    assert "/nowhere/client.conf" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_beyond_its_number_is_refused(conf):
    done = once(conf("[object-expirer]\nprocesses = 2\nprocess = 2\n"))
    assert done.returncode == 1
    assert "process 2 must be below processes 2" in done.stderr
