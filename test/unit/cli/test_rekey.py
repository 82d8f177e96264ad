"""The command line of swift-rekey: new wrapped secrets, states of runs, limits."""

import time

import pytest

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.cli import rekey
from swift.gateway.internal_client import UnexpectedResponse
from swift.http.cryptokeys import KeyServiceUnavailable
from swift.operations.rekey.rawcluster import Page, Position, RawCluster
from swift.operations.rekey.runs import Pace, RekeyRun, RunState
from swift.policy.policy import Policy
from test.support.vault import KEY, FakeVault


@pytest.fixture
def vault():
    made = FakeVault()
    try:
        made.make_key()
        yield made
    finally:
        made.close()


def write_conf(vault, folder, *, own_file=False, **options):
    (folder / "token").write_text(vault.make_token())
    options = {
        "vault_url": vault.url,
        "transit_key": KEY,
        "token_file": f"{folder}/token",
        "wrapped_root_secret_known": "vault:v1:AAAA",
        **options,
    }
    text = "[filter:vault_keymaster]\nuse = egg:swift#vault_keymaster\n"
    lines = "".join(f"{name} = {value}\n" for name, value in options.items())
    if own_file:
        (folder / "keymaster.conf").write_text(f"[vault_keymaster]\n{lines}")
        lines = f"keymaster_config_path = {folder}/keymaster.conf\n"
    conf = folder / "proxy-server.conf"
    conf.write_text(text + lines)
    return str(conf)


@pytest.mark.parametrize("own_file", [False, True])
def test_a_new_secret_is_printed_wrapped_as_an_option(vault, tmp_path, capsys, own_file):
    conf = write_conf(vault, tmp_path, own_file=own_file)
    assert rekey.main(["new-secret", "--conf", conf, "--id", "2027"]) == 0
    name, _, wrapped = capsys.readouterr().out.strip().partition(" = ")
    assert name == "wrapped_root_secret_2027"
    assert len(vault._decrypt(KEY, {"ciphertext": wrapped})) == 32
    assert vault.count(f"transit/datakey/wrapped/{KEY}") == 1
    assert not vault.count(f"transit/decrypt/{KEY}")


@pytest.mark.parametrize(
    ("options", "secret_id", "text"),
    [
        ({}, "known", "there is a root secret with the id known"),
        ({"transit_key": ""}, "2027", "transit_key"),
        ({"transit_key": "other"}, "2027", "refuses"),
        ({"token_file": "/nowhere/token"}, "2027", "/nowhere/token"),
    ],
)
def test_a_secret_that_cannot_be_made_is_an_error_of_one_line(
    vault, tmp_path, capsys, options, secret_id, text
):
    conf = write_conf(vault, tmp_path, **options)
    assert rekey.main(["new-secret", "--conf", conf, "--id", secret_id]) == 1
    shown = capsys.readouterr()
    assert not shown.out and text in shown.err and shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [["run", "--from", "a", "--rate", "-1"], ["verify", "--from", "a", "--concurrency", "0"], ["run"]],
)
def test_bad_words_are_refused(words):
    with pytest.raises(SystemExit) as caught:
        rekey.main(words)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("pipeline", "text"),
    [("keymaster object-server", "is not the configuration of a proxy"), ("proxy-server", "no keymaster")],
)
def test_a_configuration_without_proxy_or_keymaster_is_refused(tmp_path, pipeline, text):
    conf = tmp_path / "x.conf"
    conf.write_text(
        f"[pipeline:main]\npipeline = {pipeline}\n[app:proxy-server]\nuse = egg:swift#proxy\n"
        "[app:object-server]\nuse = egg:swift#object\n[filter:keymaster]\nuse = egg:swift#keymaster\n"
    )
    with pytest.raises(ConfigError, match=text):
        RawCluster(str(conf))


def test_a_state_reads_back_and_is_only_of_its_run(tmp_path):
    path = str(tmp_path / "state")
    state = RunState.read(path, "-", "2027")
    assert state.position is None and not state.counts
    state.write(path)
    assert RunState.read(path, "-", "2027") == state
    state.position = Position("AUTH_ä", "c\x00", "o\n")
    state.counts.update(["rewritten", "kept", "kept"])
    state.write(path)
    assert RunState.read(path, "-", "2027") == state
    with pytest.raises(ConfigError, match="from - to 2027, not from - to 2028"):
        RunState.read(path, "-", "2028")


class Away:
    """A cluster of one object, whose keys a service does not provide, or which cannot be read."""

    def __init__(self, error):
        self.client = self
        self.error = error

    def pages(self, _accounts, _size, _start):
        yield Page(EntityPath("a", "c"), Policy(0, "gold"), [{"name": "o", "bytes": 1}])

    def request(self, *_words, **_options):
        raise self.error


def make_run(error, path, reports):
    return RekeyRun(
        Away(error),
        RunState("-", "two"),
        str(path),
        concurrency=2,
        rate=0,
        stopped=lambda: False,
        report=lambda *words: reports.append(words),
        tell=lambda _text: None,
    )


def test_a_run_stops_while_the_key_service_is_away_and_passes_over_no_object(tmp_path):
    path, reports = tmp_path / "state", []
    with pytest.raises(KeyServiceUnavailable):
        make_run(KeyServiceUnavailable("the key service is sealed"), path, reports).run(["a"])
    assert RunState.read(str(path), "-", "two").position is None and not reports


def test_an_object_that_fails_is_reported_and_the_others_go_on(tmp_path):
    path, reports = tmp_path / "state", []
    error = UnexpectedResponse("GET", EntityPath("a", "c", "o"), 503, "away")
    assert make_run(error, path, reports).run(["a"])
    assert reports == [("failed", "/a/c/o", str(error))] and not path.exists()


def test_the_rate_bounds_the_bytes_of_a_second():

    pace, begun = Pace(1_000_000, lambda: False), time.monotonic()
    for _ in range(4):
        pace(50_000)
    assert 0.19 <= time.monotonic() - begun < 2
    stopped = Pace(1, lambda: True)
    stopped(1_000_000)
    assert time.monotonic() - begun < 2
