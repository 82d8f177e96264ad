"""Users of tempauth are read from its options, and a wrong option is named (middleware.md §1)."""

import base64

import pytest

from swift.base.errors import ConfigError
from swift.middleware.groupauth import required_groups
from swift.middleware.tempauth.users import (
    format_groups,
    parse_access_keys,
    parse_users,
)


def encoded(text):
    return base64.b64encode(text.encode()).decode().rstrip("=")


def test_a_user_has_a_key_groups_and_perhaps_a_url():
    users = parse_users(
        {
            "user_a_u": "secret .admin team http://host/v1/AUTH_x",
            "user_a_v": "key",
            "user_b_u": "key $HOST/v1/AUTH_y",
            "use": "egg:swift#tempauth",
        }
    )
    assert sorted(users) == [("a", "u"), ("a", "v"), ("b", "u")]
    assert users["a", "u"].groups == (".admin", "team")
    assert users["a", "u"].storage_url == "http://host/v1/AUTH_x"
    assert (users["a", "v"].key, users["a", "v"].groups, users["a", "v"].storage_url) == ("key", (), None)
    assert users["b", "u"].storage_url == "$HOST/v1/AUTH_y"


def test_names_may_be_base64_to_have_underscores():
    users = parse_users({f"user64_{encoded('an_account')}_{encoded('Jürgen_M')}": "key"})
    assert list(users) == [("an_account", "Jürgen_M")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_a", "key"),
        ("user_a_b_c", "key"),
        ("user__u", "key"),
        ("user_a_", "key"),
        ("user_a_u", ""),
        ("user_a_u", "   "),
        ("user64_a_b", "key"),
        (f"user64_{base64.b64encode(bytes([255, 254, 253])).decode()}_YQ", "key"),
    ],
)
def test_a_wrong_option_is_named(name, value):
    with pytest.raises(ConfigError, match=name.replace("+", r"\+")):
        parse_users({name: value})


def test_a_key_is_not_shown():
    [user] = parse_users({"user_a_u": "secret"}).values()
    assert "secret" not in repr(user)


def test_an_admin_owns_the_accounts_of_all_prefixes():
    [user] = parse_users({"user_a_u": "key .admin team"}).values()
    assert format_groups(user, ["AUTH_", "SERVICE_"]) == "a,a:u,team,AUTH_a,SERVICE_a"


def test_an_admin_owns_the_account_of_its_url_and_others_do_not():
    users = parse_users({"user_a_u": "key .admin http://h/v1/AUTH_x", "user_a_v": "key http://h/v1/AUTH_x"})
    assert format_groups(users["a", "u"], ["AUTH_"]) == "a,a:u,AUTH_a,AUTH_x"
    assert format_groups(users["a", "v"], ["AUTH_"]) == "a,a:v"


def test_a_group_may_be_required_for_each_prefix():
    conf = {"require_group": "staff", "SERVICE_require_group": "service"}
    assert required_groups(conf, ["AUTH_", "SERVICE_"]) == {"AUTH_": "staff", "SERVICE_": "service"}
    assert required_groups({}, [""]) == {"": ""}


def test_users_have_access_keys_by_name_and_others_by_option():
    conf = {"user_a_u": "secret .admin", "s3_key_AKIA_1": "a:u other secret", "use": "x"}
    users = parse_users(conf)
    keys = parse_access_keys(conf, users)
    assert {name: key.secret for name, key in keys.items()} == {"a:u": "secret", "AKIA_1": "other secret"}
    assert {key.user.name for key in keys.values()} == {"u"}
    assert "secret" not in repr(keys["AKIA_1"])


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("s3_key_", "a:u secret", "must be s3_key_"),
        ("s3_key_k", "a:u", "must be s3_key_"),
        ("s3_key_k", "b:u secret", "there is no user b:u"),
        ("s3_key_a:u", "a:u secret", "is already the access key"),
    ],
)
def test_a_wrong_access_key_is_named(option, value, text):
    conf = {"user_a_u": "secret", option: value}
    with pytest.raises(ConfigError, match=text):
        parse_access_keys(conf, parse_users(conf))
