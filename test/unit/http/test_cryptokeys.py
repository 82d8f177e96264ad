"""What a keymaster and the encryption filter tell each other."""

from swift.http.cryptokeys import NoKeys


def test_a_missing_key_says_whether_another_keymaster_may_have_it():
    assert not NoKeys("no key").unknown_secret
    error = NoKeys("no key", unknown_secret=True)
    assert error.unknown_secret and str(error) == "no key"
