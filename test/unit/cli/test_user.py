"""swift-user: the command line, the formats of its results, and errors of one line."""

import json

import pytest

from swift.cli.user import main, make_parser
from swift.identity.operations import EMPTY_CONTEXT
from test.support.identities import make_identities

DOCUMENT = '{"Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::c/*"}}'
TRUST = '{"Statement":{"Effect":"Allow","Principal":{"AWS":"t:u"},"Action":"sts:AssumeRole"}}'


class Node:
    """Operations over records in memory, and the commands that use them."""

    def __init__(self, folder):
        self._operations = make_identities().operations
        self._folder = folder

    def call(self, operation, **params):
        given = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in params.items()
            if value is not None
        }
        return self._operations.call(operation, given, None, EMPTY_CONTEXT)

    def run(self, line):
        """Return the result and the text of a command."""
        args = make_parser().parse_args([word.replace("FOLDER", str(self._folder)) for word in line.split()])
        result, lines = args.run(self, args)
        return result, "\n".join(lines)


@pytest.fixture
def node(tmp_path):
    (tmp_path / "policy.json").write_text(DOCUMENT)
    (tmp_path / "trust.json").write_text(TRUST)
    made = Node(tmp_path)
    made.run("add t:u --generate --owner --note first")
    return made


@pytest.mark.parametrize(
    "line, words",
    [
        ("", "command"),
        ("nothing", "invalid choice"),
        ("add", "TENANT:USER"),
        ("key", "command"),
        ("key revoke", "ACCESS_KEY"),
        ("role add t:r", "--trust"),
        ("policy attach p", "--user --group --role"),
        ("policy attach p --user t:u --group t:g", "not allowed with"),
        ("policy check --user t:u s3:GetObject", "resource"),
        ("provider show", "PROVIDER"),
        ("--format yaml list", "invalid choice"),
    ],
)
def test_a_wrong_command_line_is_named(line, words, capsys):
    with pytest.raises(SystemExit) as error:
        main(line.split())
    assert error.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "line, text",
    [
        ("list", "/swiftauth.key is missing"),
        ("login main", "a log-in needs the proxy"),
        ("--url ftp://h list", "is no URL of a log-in"),
    ],
)
def test_an_error_is_one_line(tmp_path, monkeypatch, capsys, line, text):
    monkeypatch.setenv("ST_KEY", "key")
    assert main(["--conf", str(tmp_path / "internal-client.conf"), *line.split()]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert text in err


@pytest.mark.parametrize(
    "line, text",
    [
        ("disable t:u", "t:u disabled"),
        ("enable t:u", "t:u enabled"),
        ("logout t:u", "tokens and sessions of t:u ended"),
        ("remove t:u", "t:u removed"),
        ("list t", "u"),
        ("list", "t"),
        ("group add t:g", "t:g created"),
        ("role add t:r --trust FOLDER/trust.json", "arn:aws:iam::t:role/r created"),
        ("policy add t:p FOLDER/policy.json", "t:p created"),
        ("provider list", ""),
        ("key list t:u", ""),
    ],
)
def test_a_command_says_what_it_did(node, line, text):
    assert node.run(line)[1] == text


def test_commands_of_one_kind_follow_each_other(node):
    for line, text in (
        ("group add t:g", "t:g created"),
        ("group join t:g u", "t:u is in t:g"),
        ("group list t", "g"),
        ("group leave t:g u", "t:u is no more in t:g"),
        ("group remove t:g", "t:g removed"),
        ("role add t:r --trust FOLDER/trust.json", "arn:aws:iam::t:role/r created"),
        ("role list t", "r"),
        ("role set t:r --disable", "t:r changed"),
        ("role logout t:r", "sessions of t:r ended"),
        ("role remove t:r", "t:r removed"),
        ("policy add t:p FOLDER/policy.json", "t:p created"),
        ("policy attach p --user t:u", "p attached to t:u"),
        ("policy detach p --user t:u", "p detached from t:u"),
        ("policy remove t:p", "t:p removed"),
    ):
        assert node.run(line)[1] == text, line


def test_a_key_is_shown_with_its_limits_and_without_its_secret(node):
    result, text = node.run("key create t:u --container c --prefix in/ --read-only --network 10.0.0.0/8")
    assert result["secret_key"] in text
    name = result["access_key"]
    assert node.run("key list t:u")[1] == f"{name}  lasts  not used  read-only, c/in/, 10.0.0.0/8"
    assert node.run(f"key disable {name}")[1] == f"{name} disabled"
    assert "disabled, read-only" in node.run("key list t:u")[1]
    assert node.run(f"key revoke {name}")[1] == f"{name} revoked"


def test_the_fields_of_a_user_are_text_and_json(node):
    result, text = node.run("show t:u")
    assert "note          first" in text.splitlines()
    assert "groups        .admin" in text.splitlines()
    assert json.loads(json.dumps(result))["user"] == "t:u"
    assert "password" not in text.replace("has password", "")


@pytest.mark.parametrize("ends", ["90", "1y", "2027-13-01", "x"])
def test_what_is_no_end_of_a_key_is_refused(node, ends):
    with pytest.raises(Exception, match="is no time; write 90d"):
        node.run(f"key create t:u --ends {ends}")
