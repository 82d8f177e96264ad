"""swift-config shows sections as daemons and as PasteDeploy see them, in the peer's words."""

import json

import pytest

from swift.cli import config as command

TEXT = """[DEFAULT]
bind_port = 28120
log_name = dflt
[pipeline:main]
pipeline = catch_errors cache proxy-server
[app:proxy-server]
use = egg:swift#proxy
set log_name = own
bind_port = 1
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
"""


@pytest.fixture
def conf(tmp_path):
    path = tmp_path / "proxy-server.conf"
    path.write_text(TEXT)
    return path


def test_one_section_is_shown_as_the_peer_shows_it(conf, capsys):
    assert command.main(["-s", "filter:cache", str(conf)]) == 0
    assert capsys.readouterr().out == (
        f"# {conf}\n[filter:cache]\nbind_port = 28120\nlog_name = dflt\nuse = egg:swift#memcache\n\n\n"
    )


def test_the_paste_view_applies_set_and_ignores_what_defaults_override(conf, capsys):
    assert command.main(["-w", str(conf)]) == 0
    text = capsys.readouterr().out
    assert "pipeline = catch_errors memcache proxy\n" in text
    assert text.endswith(
        f"[application:proxy-server]\nhere = {conf.parent}\n__file__ = {conf}\nbind_port = 28120\n"
        "log_name = own\n__name__ = proxy-server\naccount_autocreate = true\n\n\n"
    )


def test_a_server_is_found_by_name_and_shown_as_json(conf, capsys):
    assert command.main(["proxy", "--swift-dir", str(conf.parent), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[str(conf)]["filter:cache"]["use"] == "egg:swift#memcache"


def test_what_is_not_there_is_told(conf, capsys):
    assert command.main(["object", "--swift-dir", str(conf.parent)]) == 0
    assert capsys.readouterr().out == "Unable to locate config for object-server\n"
    for words, told in (
        (["objct"], "unknown server objct; did you mean object-server?"),
        (["-s", "filter:cahce", str(conf)], "no file has a section filter:cahce; did you mean filter:cache?"),
        (["-s", "typo", "-w", str(conf)], "no file has a section typo"),
    ):
        assert command.main([*words, "--swift-dir", str(conf.parent)]) == 1
        assert capsys.readouterr() == ("", f"swift-config: {told}\n")
    assert command.main([]) == 1
    assert capsys.readouterr().err == "ERROR: specify type of server or conf_path\n"
    conf.write_text("[pipeline:main]\npipeline = nosuch\n")
    assert command.main(["-w", str(conf)]) == 1
    assert "the pipeline names nosuch" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["/nowhere", "/nowhere/proxy-server.conf", "./nowhere"])
def test_a_path_of_nothing_is_told_in_a_line(path, capsys):
    assert command.main([path]) == 1
    assert capsys.readouterr().err == f"swift-config: {path} does not exist\n"


def test_units_may_write_where_the_configuration_says(tmp_path, capsys):
    etc, units = tmp_path / "etc", tmp_path / "units"
    (etc / "object-server").mkdir(parents=True)
    units.mkdir()
    app = "[pipeline:main]\npipeline = {0}-server\n[app:{0}-server]\nuse = egg:swift#{0}\n"
    (etc / "object-server.conf").write_text(
        "[DEFAULT]\ndevices = /data\n[packed]\nindex_path = /srv/ssd/index\n[object-auditor]\n"
        + app.format("object")
    )
    (etc / "object-server" / "2.conf").write_text(
        '[packed]\nindex_path = /ssd/a "b" 5%\n' + app.format("object")
    )
    (etc / "account-server.conf").write_text("[DEFAULT]\ndevices = /srv/node\n" + app.format("account"))
    # Debian's packages have a name of their own.
    for name in ("swift-object.service", "swift-object@.service", "swift-object-auditor.service"):
        (units / name).touch()
    (units / "swift-object-server.service").symlink_to("swift-object.service")
    words = ["--units", "--swift-dir", str(etc), "--unit-dir", str(units)]
    assert command.main(words) == 0
    told = capsys.readouterr().out
    found = {str(path.parent.relative_to(units)): path.read_text() for path in units.rglob("*.conf")}
    paths = {name: text.splitlines()[-1] for name, text in found.items()}
    assert paths == {
        "swift-object.service.d": "ReadWritePaths=-/data",
        "swift-object@2.service.d": r'ReadWritePaths="-/ssd/a \"b\" 5%%"',
        "swift-object-auditor.service.d": "ReadWritePaths=-/data",
        "swift-daemons.service.d": "ReadWritePaths=-/data",
        "swift-recon-cron.service.d": "ReadWritePaths=-/data",
        "swift-cache-verify.service.d": "ReadWritePaths=-/data",
    }
    assert "Then run: systemctl daemon-reload && systemctl try-restart swift-object.service " in told
    assert command.main(words) == 0
    assert capsys.readouterr().out.endswith("nothing was changed.\n")
    (etc / "object-server" / "2.conf").write_text(app.format("object"))
    assert command.main(words) == 0
    assert "swift-object@2.service.d/swift-paths.conf: removed" in capsys.readouterr().out
    assert not list(units.glob("*@2*/*"))
