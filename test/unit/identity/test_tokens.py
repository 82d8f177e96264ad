"""Tokens say who the caller is, and cannot be made or changed by other clients."""

import pytest

from swift.identity.clusterkeys import ClusterKey, ClusterKeys
from swift.identity.tokens import TOKEN_MAX, Ticket, Tickets
from test.support.identities import KEYS, OTHER_KEYS

NOW = 1_800_000_000.0
TICKET = Ticket("test:alice", NOW, NOW + 3600, "id1", parent="AKIAPARENT")
SESSION = Ticket(
    "test:reader",
    *(NOW, NOW + 900, "id2"),
    session="job",
    access_key="ASIAX",
    policy='{"Statement":[]}',
    source="gitlab:é",
)


def test_a_token_tells_what_was_put_in():
    tickets = Tickets(KEYS)
    assert tickets.read_token(tickets.make_token(TICKET), NOW) == TICKET
    token, secret = tickets.make_session_token(SESSION)
    assert Tickets(KEYS).read_session_token("ASIAX", token, NOW) == (SESSION, secret)
    assert len(secret) > 40
    assert secret not in token


def test_an_ended_token_is_nothing_also_when_it_is_known():
    tickets = Tickets(KEYS)
    token = tickets.make_token(TICKET)
    assert tickets.read_token(token, NOW + 3599.9) == TICKET
    assert tickets.read_token(token, NOW + 3600) is None


def test_a_session_token_is_for_its_access_key_only():
    tickets = Tickets(KEYS)
    token, secret = tickets.make_session_token(SESSION)
    for access_key in ("ASIAY", "", "ASIAX ", "asiax"):
        assert tickets.read_session_token(access_key, token, NOW) is None
    _token, other = tickets.make_session_token(SESSION)
    assert Tickets(OTHER_KEYS).read_session_token("ASIAX", token, NOW) is None
    assert secret == other, "the same content under the same key"


def test_kinds_of_tokens_do_not_stand_for_each_other():
    tickets = Tickets(KEYS)
    token, _secret = tickets.make_session_token(SESSION)
    assert tickets.read_token(token, NOW) is None
    assert tickets.read_session_token("", tickets.make_token(TICKET), NOW) is None


@pytest.mark.parametrize(
    "text", ["", ".", "..", "1..", "1.e30.AAAA", "x" * (TOKEN_MAX + 1), "1.é.é", "1.AA.AA", "\0"]
)
def test_other_texts_are_no_tokens(text):
    assert Tickets(KEYS).read_token(text, NOW) is None
    assert Tickets(KEYS).read_session_token("a", text, NOW) is None


def test_no_change_of_one_character_is_accepted():
    tickets = Tickets(KEYS)
    token = tickets.make_token(TICKET)
    for place, old in enumerate(token):
        for new in "A.-_1 ":
            if new != old:
                changed = token[:place] + new + token[place + 1 :]
                assert tickets.read_token(changed, NOW) is None, (place, new)
    for changed in (token + "=", token + "A", token[:-1], " " + token, token + "\n"):
        assert tickets.read_token(changed, NOW) is None


def test_tokens_survive_a_rotation_until_their_key_is_removed():
    old, new = ClusterKey("a", b"a" * 32), ClusterKey("b", b"b" * 32)
    token = Tickets(ClusterKeys((old,))).make_token(TICKET)
    session, secret = Tickets(ClusterKeys((old,))).make_session_token(SESSION)
    both = Tickets(ClusterKeys((new, old)))
    assert both.read_token(token, NOW) == TICKET
    assert both.read_session_token("ASIAX", session, NOW) == (SESSION, secret)
    assert Tickets(ClusterKeys((new,))).read_token(token, NOW) is None
