"""Which services words stand for, which configurations they have and where their pids are kept."""

import pytest

from swift.base.errors import ConfigError
from swift.config.declared import daemons
from swift.runtime.service.services import (
    GROUPS,
    Service,
    config_paths,
    is_configured,
    is_group,
    parse_service,
    parse_services,
    pid_file,
    pid_files,
)


def files(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".d"):
            path.mkdir()
        else:
            path.write_text("[DEFAULT]\n")


def configs(root, word, number=0):
    found = config_paths(parse_service(word), str(root), number)
    return [path.removeprefix(f"{root}/") for path in found]


@pytest.mark.parametrize(
    ("word", "name", "config"),
    [
        ("object", "object-server", ""),
        ("object-server", "object-server", ""),
        ("object.1", "object-server", "1"),
        ("object-auditor.a.b", "object-auditor", "a.b"),
        ("nonsense", "nonsense-server", ""),
    ],
)
def test_a_word_is_a_service_and_perhaps_one_of_its_configurations(word, name, config):
    assert parse_service(word) == Service(name, config)
    assert parse_service(word).is_known is (name != "nonsense-server")


def test_each_service_is_named_once_in_the_order_of_the_words():
    found = parse_services(["object-updater", "main", "object", "object-*", "s3-*"])
    assert [str(service) for service in found] == [
        "object-updater",
        *GROUPS["main"],
        *sorted({name for name in daemons() if name.startswith("object-")} - {"object-updater"}),
        "s3-lifecycle",
        "s3-notifier",
    ]
    assert parse_services(["no*"]) == [] and is_group("no*") and is_group("all") and not is_group("object")


def test_only_the_four_servers_are_servers():
    assert [service.name for service in parse_services(["all"]) if service.is_server] == list(GROUPS["main"])
    assert {service.program for service in parse_services(["main"])} == {f"swift-{n}" for n in GROUPS["main"]}


def test_daemons_read_the_files_of_their_server_but_for_those_with_their_own(tmp_path):
    files(tmp_path, "container-server.conf", "container-reconciler.conf", "s3-notifier.conf")
    assert configs(tmp_path, "container-updater") == ["container-server.conf"]
    assert configs(tmp_path, "container-reconciler") == ["container-reconciler.conf"]
    assert configs(tmp_path, "s3-notifier") == ["s3-notifier.conf"]
    assert configs(tmp_path, "s3-lifecycle") == []


def test_a_server_may_have_many_files_and_directories_and_what_editors_leave_is_none_of_them(tmp_path):
    files(
        tmp_path,
        "object-server.conf",
        "object-server.conf~",
        "object-server.conf.rpmnew",
        "object-server/1.conf",
        "object-server/2.conf.d",
        "object-server/.1.conf",
        "object-server/README",
    )
    wanted = ["object-server.conf", "object-server/1.conf", "object-server/2.conf.d"]
    assert configs(tmp_path, "object") == wanted
    assert configs(tmp_path, "object", 2) == wanted[1:2]
    assert configs(tmp_path, "object", 4) == []
    assert configs(tmp_path, "object.1") == ["object-server/1.conf"]
    assert configs(tmp_path, "object.9") == []


def test_the_expirer_has_a_file_of_its_own_unless_the_object_server_has_its_section(tmp_path):
    files(tmp_path, "object-server.conf", "object-expirer.conf")
    assert configs(tmp_path, "object-expirer") == ["object-expirer.conf"]
    assert not is_configured(parse_service("object-expirer"), str(tmp_path / "object-expirer.conf"))
    (tmp_path / "object-server.conf").write_text("[object-expirer]\n")
    assert configs(tmp_path, "object-expirer") == ["object-server.conf"]
    assert is_configured(parse_service("object-expirer"), str(tmp_path / "object-server.conf"))
    assert is_configured(parse_service("object"), str(tmp_path / "object-server.conf")), (
        "servers need no section"
    )


def test_a_damaged_file_of_the_object_server_is_an_error_of_the_expirer(tmp_path):
    files(tmp_path, "object-expirer.conf")
    (tmp_path / "object-server.conf").write_bytes(b"\xff\x00 no section = 1\n")
    with pytest.raises(ConfigError, match=r"object-server\.conf"):
        configs(tmp_path, "object-expirer")


@pytest.mark.parametrize(
    ("word", "config", "pid"),
    [
        ("object", "object-server.conf", "object-server.pid"),
        ("object", "object-server/1.conf", "object-server/1.pid"),
        ("object", "object-server/1.conf.d", "object-server/1.pid"),
        ("object-auditor", "object-server/1.conf", "object-auditor/1.pid"),
        ("object-auditor", "object-server-2.conf", "object-auditor-2.pid"),
        ("container-reconciler", "container-reconciler.conf", "container-reconciler.pid"),
    ],
)
def test_each_daemon_has_a_pid_file_for_each_configuration_and_it_is_found_again(tmp_path, word, config, pid):
    etc, run = tmp_path / "etc", tmp_path / "run"
    files(etc, config)
    assert pid_file(parse_service(word), str(etc / config), str(run), str(etc)) == str(run / pid)
    files(run, pid)
    assert pid_files(parse_service(word), str(run)) == [str(run / pid)]
    if "/" in pid:
        assert pid_files(parse_service(f"{word}.1"), str(run)) == [str(run / pid)]
    assert pid_files(parse_service(f"{word}.9"), str(run)) == []
