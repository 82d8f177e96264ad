"""From configuration text to what services are made of: what is wrong is named, what is unknown is told."""

from __future__ import annotations

import os
import threading
import time

import pytest

from swift.account.server import AccountSettings
from swift.base.errors import ConfigError
from swift.compose import (
    CONSOLE_KEY,
    PROCESS_KEY,
    Process,
    Services,
    backend_context,
    cluster_of,
    daemon_context,
    internal_client,
    merged,
    process_of,
    server_secrets_of,
    telemetry_of,
)
from swift.middleware.filter import Filter, FilterDeclaration
from swift.middleware.symlink import SymlinkSettings
from swift.runtime.deviceidentity import FINGERPRINT_FILE
from swift.telemetry.devicefaults import KEY
from swift.telemetry.log import silent_log
from swift.telemetry.recon import ReconFile


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = s\n"
        "[storage-policy:0]\nname = gold\ndefault = yes\n[storage-policy:1]\nname = silver\n"
    )
    return tmp_path


def conf(etc, **more):
    return {"swift_dir": str(etc), CONSOLE_KEY: "true", **more}


def test_options_of_a_section_go_before_the_default_ones():
    assert merged({"a": "1", "b": "1"}, {"b": "2"}) == {"a": "1", "b": "2"}


def test_a_pipeline_shares_a_process_and_another_loader_gets_one_of_its_own():
    process = Process()
    assert process_of({PROCESS_KEY: process}) is process
    assert process_of({}) is not process_of({})
    assert isinstance(process_of({PROCESS_KEY: "text"}), Process)


def test_a_cluster_is_what_swift_conf_says(etc):
    cluster = cluster_of(conf(etc))
    assert [policy.name for policy in cluster.policies] == ["gold", "silver"]
    assert cluster.config.hasher.hexdigest("a") != ""


def test_a_swift_conf_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="swift.conf"):
        cluster_of(conf(tmp_path))


def test_a_server_is_handed_what_its_options_say(etc, capfd):
    process = Process()
    given = conf(etc, devices=str(etc), mount_check="false", replication_server="false")
    context, settings = backend_context(
        {**given, PROCESS_KEY: process},
        {"auto_create_account_prefix": "."},
        server_type="account",
        settings_class=AccountSettings,
    )
    assert isinstance(settings, AccountSettings)
    assert context.replication_server is False and context.telemetry.metrics is process.metrics
    assert context.devices.names() == []
    assert len(process.at_exit) == 2, "the access log and the counts of errors are written out at the end"


@pytest.mark.parametrize("threads", ["0", "2"])
def test_a_process_with_other_work_calls_its_disks_in_threads(etc, threads):
    here, given = threading.get_ident(), conf(etc, threads_per_disk=threads)
    for inline in (True, False):
        context, _ = backend_context(
            {**given, PROCESS_KEY: Process(calls_disks_inline=inline)},
            {},
            server_type="account",
            settings_class=AccountSettings,
        )
        assert (context.pools.run("sda")(threading.get_ident) == here) is inline


def test_a_value_that_cannot_be_is_named(etc):
    with pytest.raises(ConfigError, match="fallocate_reserve"):
        backend_context(
            conf(etc, fallocate_reserve="sideways"), {}, server_type="account", settings_class=AccountSettings
        )


def test_requests_are_not_logged_where_that_is_off(etc):
    for text, wanted in (("false", False), ("true", True)):
        context, _ = backend_context(
            conf(etc, log_requests=text), {}, server_type="account", settings_class=AccountSettings
        )
        assert (context.access_log is not None) is wanted


def test_access_lines_have_the_operators_format(etc):
    options = {"log_format": "{method} {path.anonymized}", "log_anonymization_salt": "x"}
    context, _ = backend_context(conf(etc), options, server_type="account", settings_class=AccountSettings)
    line = context.access_template.line({"method": "GET", "path": "/sda/1/a"})
    assert line.startswith("GET {SMD5}")
    with pytest.raises(ConfigError, match="log_format"):
        backend_context(
            conf(etc), {"log_format": "{nothing}"}, server_type="account", settings_class=AccountSettings
        )


def test_labels_of_the_operator_are_added_to_metrics(etc):
    assert telemetry_of(conf(etc, statsd_user_label_dc="east"), name="x").statsd.user_labels == {
        "user_dc": "east"
    }
    with pytest.raises(ConfigError, match="statsd_user_label_a-b"):
        telemetry_of(conf(etc, **{"statsd_user_label_a-b": "x"}), name="x")


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"bind_ip": "10.0.0.5", "bind_port": "6201"}, ("10.0.0.5", 6201)),
        ({"bind_ip": "0.0.0.0", "ring_ip": "10.0.0.6", "bind_port": "6201"}, ("10.0.0.6", 6201)),
    ],
)
def test_a_daemon_knows_under_which_address_its_node_is_in_rings(etc, options, address):
    context = daemon_context(conf(etc, **options), name="object-updater")
    assert (context.ring_ip, context.ring_port) == address


def test_the_pipeline_of_an_internal_client_that_is_not_there_is_named(etc):
    with pytest.raises(ConfigError, match="internal-client.conf"):
        internal_client(str(etc / "internal-client.conf"), "agent")


def test_filters_of_a_pipeline_read_swift_conf_once(tmp_path):
    conf = {"swift_dir": str(tmp_path), PROCESS_KEY: Process(), "own": "1"}
    path = tmp_path / "swift.conf"
    path.write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    first = Services.of(conf, "a_filter")
    cluster = first.cluster
    path.unlink()
    assert Services.of(conf, "another").cluster is cluster
    assert cluster_of(conf) is cluster
    assert first.conf == {"swift_dir": str(tmp_path), "own": "1"}
    assert first.info is conf[PROCESS_KEY].info and repr(first) == "Services('a_filter')"


def test_a_declared_filter_tells_info_and_names_the_option_that_is_bad(tmp_path):
    declared = FilterDeclaration(
        "strict",
        SymlinkSettings,
        lambda app, _settings, _services: Filter(app),
        position=1,
        info=lambda settings: {"loops": settings.symloop_max},
        section="strict-one",
    )
    process = Process()
    declared.build(lambda environ, start: [], {PROCESS_KEY: process, "symloop_max": "3"})
    assert process.info.public() == {"strict": {"loops": 3}}
    with pytest.raises(ConfigError, match=r"\[filter:strict-one\]: option symloop_max"):
        declared({}, symloop_max="x")(lambda environ, start: [])


def test_errors_of_a_device_that_was_replaced_are_forgotten(tmp_path):
    """A new device gets a fingerprint, which is younger than the errors of the former one."""
    for name in ("sda", "sdb"):
        (tmp_path / "srv" / name).mkdir(parents=True)
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = {
        "swift_dir": str(tmp_path),
        "devices": f"{tmp_path}/srv",
        "mount_check": "false",
        "recon_cache_path": str(tmp_path),
    }
    recon = ReconFile(str(tmp_path), "object", silent_log())
    daemon_context(conf, name="object-updater")
    os.utime(tmp_path / "srv/sdb" / FINGERPRINT_FILE, (1, 1))
    now = time.time()
    recon.dump({KEY: {name: {"errors": 3, "last": now - 100, "error": "EIO"} for name in ("sda", "sdb")}})
    (tmp_path / "srv/sda" / FINGERPRINT_FILE).unlink()
    daemon_context(conf, name="object-updater")
    assert set(recon.read()[KEY]) == {"sdb"}


# --- authentication of servers ------------------------------------------------------------------------


def with_secret(etc, mode="require", secret="11" * 32):
    text = (etc / "swift.conf").read_text()
    (etc / "swift.conf").write_text(f"{text}[swift-servers]\nmode = {mode}\n")
    if secret:
        (etc / "server.secret").touch(0o600)
        (etc / "server.secret").write_text(f"1 {secret}\n")


def make_account_context(etc, **more):
    return backend_context(
        conf(etc, devices=str(etc), mount_check="false", recon_cache_path=str(etc), **more),
        {},
        server_type="account",
        settings_class=AccountSettings,
    )[0]


def test_servers_need_no_signatures_by_default(etc):
    assert make_account_context(etc).guard is None


@pytest.mark.parametrize("mode", ["accept", "require"])
def test_a_server_has_a_guard_where_swift_conf_demands_signatures(etc, mode):
    with_secret(etc, mode)
    assert make_account_context(etc).guard is not None


@pytest.mark.parametrize("mode", ["accept", "require"])
def test_no_server_and_daemon_starts_without_the_secret(etc, mode):
    with_secret(etc, mode, secret="")
    with pytest.raises(ConfigError, match=rf"mode = {mode}: .*server.secret is missing"):
        make_account_context(etc)
    with pytest.raises(ConfigError, match="is missing"):
        daemon_context(conf(etc, devices=str(etc), mount_check="false"), name="account-auditor")


def test_a_damaged_secret_prevents_a_start_even_where_none_is_demanded(etc):
    with_secret(etc, "off", secret="short")
    with pytest.raises(ConfigError, match="line 1"):
        make_account_context(etc)


def test_a_misspelled_option_of_the_section_is_refused(etc):
    text = (etc / "swift.conf").read_text()
    for line, problem in (("mod = require", "unknown option mod"), ("mode = on", "mode must be one of")):
        (etc / "swift.conf").write_text(f"{text}[swift-servers]\n{line}\n")
        with pytest.raises(ConfigError, match=rf"\[swift-servers\]: .*{problem}"):
            cluster_of(conf(etc))


def test_all_parts_of_a_process_share_its_secrets(etc):
    with_secret(etc)
    shared = conf(etc, **{PROCESS_KEY: Process()})
    telemetry = telemetry_of(shared, name="a")
    assert server_secrets_of(shared, telemetry) is server_secrets_of(shared, telemetry)
    assert list(server_secrets_of(shared, telemetry).keys.by_id) == ["1"]
