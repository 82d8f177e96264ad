"""Daemons of S3 buckets on a node whose file has no pipeline for them."""

import pytest

from test.support.peer import run

pytestmark = pytest.mark.process


@pytest.mark.parametrize("name", ["s3-lifecycle", "s3-notifier"])
def test_in_the_file_of_a_server_they_rest_and_say_why(tmp_path, name):
    for folder in ("srv/sda", "recon"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = tmp_path / "server.conf"
    conf.write_text(
        f"[DEFAULT]\nswift_dir = {tmp_path}\ndevices = {tmp_path}/srv\nmount_check = false\n"
        f"recon_cache_path = {tmp_path}/recon\nuser = root\n\n"
        "[pipeline:main]\npipeline = container-server\n\n[app:container-server]\nuse = egg:swift#container\n"
    )
    done = run(f"swift-{name}", conf, "once", "-v")
    assert done.returncode == 0, done.stderr
    assert "internal_client_conf_path is not set" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_notifier_refuses_targets_that_are_no_urls(tmp_path):
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = tmp_path / "s3-notifier.conf"
    conf.write_text(f"[DEFAULT]\nswift_dir = {tmp_path}\nuser = root\n[s3-notifier]\ntargets = x=ftp://h/\n")
    done = run("swift-s3-notifier", conf, "once")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "targets" in done.stderr
