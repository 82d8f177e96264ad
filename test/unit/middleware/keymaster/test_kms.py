"""kms_keymaster: what is sent to the process that asks Barbican."""

from swift.middleware.keymaster.kms import make_kms_keymaster


def test_the_options_of_keystone_and_barbican_are_handed_on():
    sent = {}

    def fetch(service, options, key_ids):
        sent.update(options, service=service)
        return dict.fromkeys(key_ids, b"A" * 32)

    conf = {
        "key_id": "k1",
        "username": "swift",
        "password": "p",
        "project_name": "swift",
        "auth_endpoint": "http://keystone:5000/v3",
        "barbican_region_name": "one",
        "reauthenticate": "no",
    }
    make_kms_keymaster(lambda environ, start: [], conf, fetch)
    assert sent["service"] == "kms" and sent["reauthenticate"] == "false" and sent["trust_id"] == ""
    assert all(sent[name] == value for name, value in conf.items() if name not in ("reauthenticate",))
