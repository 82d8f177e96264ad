"""Passwords are hashed slowly, guesses are slowed, and no user is locked out by others."""

import pytest

from swift.identity.names import InvalidIdentity
from swift.identity.passwords import (
    FREE_FAILURES,
    KNOWN_S,
    LONGEST_PAUSE_S,
    LoginBrake,
    Passwords,
)
from swift.identity.turns import TooManyLogins
from test.support.identities import Ticking, run_inline


class CountingRun:
    """Runs at once and counts."""

    def __init__(self):
        self.calls = 0

    def __call__(self, function, *args):
        self.calls += 1
        return function(*args)


def test_a_hash_is_argon2id_and_verifies_its_password_only():
    passwords = Passwords(run_inline)
    hashed = passwords.make_hash("pässword 1")
    assert hashed.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert passwords.is_right(hashed, "pässword 1")
    for wrong in ("pässword 2", "", "pässword 1 ", "x" * 5000, "\ud800"):
        assert not passwords.is_right(hashed, wrong)
    for damaged in ("", "$argon2id$", "plain", hashed[:-5]):
        assert not passwords.is_right(damaged, "pässword 1")


@pytest.mark.parametrize("password", ["", "short", "x" * 1025, "with\nnewline", "with\x7fdelete"])
def test_a_bad_new_password_is_refused_without_showing_it(password):
    with pytest.raises(InvalidIdentity) as error:
        Passwords(run_inline).make_hash(password)
    assert error.value.field == "password"
    assert not password or password not in str(error.value)


def test_a_wrong_password_and_an_unknown_user_take_a_hash_each_and_a_right_one_is_known_for_a_time():
    run, clock = CountingRun(), Ticking()
    passwords = Passwords(run, monotonic=clock)
    hashed = passwords.make_hash("password1")
    run.calls = 0
    assert not passwords.is_right(hashed, "password2")
    assert not passwords.is_right("", "password2")
    assert run.calls == 2
    for _ in range(3):
        assert passwords.is_right(hashed, "password1")
    assert run.calls == 3
    assert not passwords.is_right(passwords.make_hash("password3"), "password1")
    clock.now += KNOWN_S
    run.calls = 0
    assert passwords.is_right(hashed, "password1")
    assert run.calls == 1


def test_failures_slow_one_user_from_one_address():
    clock = Ticking()
    brake = LoginBrake(clock)
    for _ in range(FREE_FAILURES):
        brake.require_allowed("t:u", "1.1.1.1")
        brake.report("t:u", "1.1.1.1", right=False)
    with pytest.raises(TooManyLogins) as error:
        brake.require_allowed("t:u", "1.1.1.1")
    assert error.value.retry_after_s == 1
    brake.require_allowed("t:u", "2.2.2.2")
    brake.require_allowed("t:other", "1.1.1.1")
    pauses = []
    for _ in range(12):
        clock.now += LONGEST_PAUSE_S
        brake.require_allowed("t:u", "1.1.1.1")
        brake.report("t:u", "1.1.1.1", right=False)
        with pytest.raises(TooManyLogins) as error:
            brake.require_allowed("t:u", "1.1.1.1")
        pauses.append(error.value.retry_after_s)
    assert pauses[:4] == [2, 4, 8, 16]
    assert max(pauses) == LONGEST_PAUSE_S
    clock.now += LONGEST_PAUSE_S
    brake.report("t:u", "1.1.1.1", right=True)
    brake.report("t:u", "1.1.1.1", right=False)
    brake.require_allowed("t:u", "1.1.1.1")
