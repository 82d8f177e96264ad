"""What a keymaster and the encryption filter tell each other."""

from swift.http.cryptokeys import EncryptionKeysUnavailable


def test_a_missing_key_says_whether_another_keymaster_may_have_it():
    assert not EncryptionKeysUnavailable("no key").unknown_secret
    error = EncryptionKeysUnavailable("no key", unknown_secret=True)
    assert error.unknown_secret and str(error) == "no key"
