"""Keys from root secrets (middleware.md §17.1)."""

import pytest

from swift.base.entity import EntityPath
from swift.middleware.encryption import cipher
from swift.middleware.keymaster.derivation import RootSecrets

SECRETS = {None: b"A" * 32, "two": b"B" * 32}
PATH = EntityPath("AUTH_test", "encr", "o \u00e9")
META = (
    "%7B%22body_key%22%3A+%7B%22iv%22%3A+%22F9wASOx9pvoUpEZpDbB5vw%3D%3D%22%2C+%22key%22%3A+%22%2FCd1dly6REyOIvFc1"
    "IBHShX9sIH75%2FLYLiMn9UdeS00%3D%22%7D%2C+%22cipher%22%3A+%22AES_CTR_256%22%2C+%22iv%22%3A+%22D8gKCUWU57YIFTvw"
    "RbXq3Q%3D%3D%22%2C+%22key_id%22%3A+%7B%22path%22%3A+%22%2FAUTH_test%2Fencr%2Fo+%5Cu00c3%5Cu00a9%22%2C+%22"
    "secret_id%22%3A+%22two%22%2C+%22v%22%3A+%222%22%7D%7D"
)


def test_the_golden_object_is_read():
    meta = cipher.load_meta(META)
    assert cipher.dump_meta(meta) == META
    keys = RootSecrets(SECRETS, "two", "2").derive_keys(PATH, meta["key_id"])
    assert keys["object"].hex() == "e7c4b1d2e9ce154e334f271bd9c2da73c4d958217fbbff9d545dbbcb5b7ba8f3"
    assert keys["container"].hex() == "5e96f0fe3a0f864bfefd627da8a8afa8c945879103525784af18e07e2a436773"
    body_key = cipher.KeyStream(keys["object"], meta["body_key"]["iv"]).update(meta["body_key"]["key"])
    assert body_key.hex() == "eedff1edb329bc133b9cc2309749e7ac7186d6e411833cc659e713fde39aae38"
    stored = bytes.fromhex("83b45d18800a39fe9c")
    assert cipher.KeyStream(body_key, meta["iv"]).update(stored) == b"plaintext"
    assert cipher.KeyStream(body_key, meta["iv"], 5).update(stored[5:]) == b"text"
    assert cipher.etag_mac(keys["object"], "f2bc5b1d869870d7688f71b2d87030bd") == (
        "4NlaM+GIikPuEDM5+9t/JzLW9AR5U14FS3Gmm3hvmPo="
    )


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_what_a_key_id_names_has_the_same_key_wherever_it_is_asked_for(version):
    secrets = RootSecrets(SECRETS, None, version)
    keys = secrets.derive_keys(PATH, None)
    assert secrets.derive_keys(PATH, keys["id"])["object"] == keys["object"]
    assert secrets.derive_keys(PATH._replace(obj=None), keys["id"])["container"] == keys["container"]
    elsewhere = secrets.derive_keys(EntityPath("AUTH_test", "encr", "other"), keys["id"])
    assert elsewhere["object"] == keys["object"]
    assert [key_id.get("secret_id") for key_id in keys["all_ids"]] == [None, "two"]
