"""The reference of swift.conf has every option with its default."""

import dataclasses
import re
from pathlib import Path

from swift.base.limits import Limits
from swift.config.cluster import ServerAuthSettings
from swift.policy import policy

PAGE = (Path(__file__).parents[2] / "doc/reference/swift-conf.md").read_text()


def test_every_limit_is_there_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", PAGE, re.M))
    for field in dataclasses.fields(Limits):
        default = field.default if not isinstance(field.default, tuple) else ",".join(field.default)
        assert rows[field.name].strip() == str(default), field.name


def test_every_option_of_the_servers_is_there_with_its_default():
    section = PAGE.partition("### `[swift-servers]`")[2].partition("\n### ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.M))
    shown = {each.name: each.kind.show(each.default) for each in ServerAuthSettings.options()}
    assert {name: text.strip(" `").replace("(empty)", "") for name, text in rows.items()} == shown


def test_every_option_of_a_policy_is_there():
    section = PAGE.partition("### `[storage-policy:N]`")[2].partition("\n### ")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", section, re.M))
    assert named == policy._KNOWN | policy._EC_KNOWN
