"""Everything secret of a cluster hangs on keys in one file, which can be rotated."""

import base64
import os
import stat

import pytest

from swift.base.errors import ConfigError
from swift.identity.clusterkeys import (
    ClusterKey,
    ClusterKeys,
    Unreadable,
    create_key_file,
    new_key_line,
    read_key_file,
)

OLD, NEW = ClusterKey("old", b"o" * 32), ClusterKey("new", b"n" * 32)


def test_a_secret_is_opened_for_its_owner_only():
    keys = ClusterKeys((NEW,))
    sealed = keys.seal("s3cret", "AKIA1")
    assert sealed.startswith("new:")
    assert "s3cret" not in sealed
    assert keys.open(sealed, "AKIA1") == "s3cret"
    assert keys.seal("s3cret", "AKIA1") != sealed
    for keyring, owner, text in (
        (keys, "AKIA2", sealed),
        (ClusterKeys((ClusterKey("new", b"x" * 32),)), "AKIA1", sealed),
        (ClusterKeys((OLD,)), "AKIA1", sealed),
        (keys, "AKIA1", sealed[:-4] + "AAA="),
        (keys, "AKIA1", "new:not base64"),
        (keys, "AKIA1", "new:"),
        (keys, "AKIA1", ""),
    ):
        with pytest.raises(Unreadable) as error:
            keyring.open(text, owner)
        assert "s3cret" not in str(error.value)


def test_after_a_rotation_the_old_key_opens_and_verifies_and_the_new_one_makes():
    before, after = ClusterKeys((OLD,)), ClusterKeys((NEW, OLD))
    sealed = before.seal("s", "k")
    signature = before.sign("token", b"data")
    assert after.open(sealed, "k") == "s"
    assert after.is_signed("token", b"data", signature, "old")
    assert after.seal("s", "k").startswith("new:")
    assert not ClusterKeys((NEW,)).is_signed("token", b"data", signature, "old")


def test_a_signature_is_for_one_purpose_one_text_and_one_key():
    keys = ClusterKeys((NEW, OLD))
    signature = keys.sign("token", b"data")
    assert keys.is_signed("token", b"data", signature, "new")
    assert not keys.is_signed("session", b"data", signature, "new")
    assert not keys.is_signed("token", b"date", signature, "new")
    assert not keys.is_signed("token", b"data", signature, "old")
    assert not keys.is_signed("token", b"data", signature, "unknown")
    assert not keys.is_signed("token", b"data", b"", "new")


def test_a_new_file_is_for_its_owner_only_and_never_replaces_one(tmp_path):
    path = str(tmp_path / "swiftauth.key")
    create_key_file(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert read_key_file(path).ids == ("1",)
    with pytest.raises(FileExistsError):
        create_key_file(path)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "has no key"),
        ("# 1 AAAA\n", "has no key"),
        ("1\n", ":1: a line is"),
        ("1 2 3\n", ":1: a line is"),
        ("an_id AAAA\n", ":1: a line is"),
        ("1 AAAA\n", ":1: the key must be 32 bytes"),
        ("1 !!!\n", ":1: the key must be 32 bytes"),
        (f"1 {base64.b64encode(b'a' * 32).decode()}\n" * 2, "two keys have one id"),
        ("\xe9\n", "ascii"),
    ],
)
def test_a_wrong_file_is_named_with_the_line(tmp_path, text, words):
    path = tmp_path / "k"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=words):
        read_key_file(str(path))


def test_a_missing_file_tells_the_command_and_an_open_one_the_mode(tmp_path):
    path = tmp_path / "k"
    with pytest.raises(ConfigError, match="swift-user init"):
        read_key_file(str(path))
    path.write_text(new_key_line("a"))
    path.chmod(0o604)
    with pytest.raises(ConfigError, match="chmod 0600"):
        read_key_file(str(path))


def test_no_representation_shows_a_key():
    keys = ClusterKeys((NEW,))
    assert "nnn" not in f"{keys!r} {NEW!r}"
