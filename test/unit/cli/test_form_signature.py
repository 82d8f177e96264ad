"""swift-form-signature signs as formpost checks, in the peer's words."""

import json

import pytest

from swift.cli import form_signature


def test_a_form_is_signed_and_shown(capsys, monkeypatch):
    monkeypatch.setattr(form_signature.time, "time", lambda: 1795363178.0)
    words = ["/v1/a/c", "https://x/y?z", "100", "2", "60", "key"]
    assert form_signature.main([*words, "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["expires"] == 1795363238
    assert form_signature.main(words) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        f"  Expires: 1795363238\nSignature: {facts['signature']}\n\nSample form:\n\nNOTE: "
    )
    assert '  <input type="file" name="file1" />\n  <br />\n  <input type="submit" />\n</form>\n' in text


def test_the_signature_is_the_peers(capsys, monkeypatch):
    # Recorded: /v1/a/c http://x 1 1 -6 key, at 1795363178.
    monkeypatch.setattr(form_signature.time, "time", lambda: 1795363178.0)
    assert form_signature.main(["/v1/a/c", "http://x", "1", "1", "-6", "key"]) == 0
    assert "Signature: 44f6b4bd94c12f6211b642769a07fe3c2c51eb4f" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["/v1/a/c", "x", "a", "2", "6", "k"],
            "Please use a <max_file_size> value greater than or equal to 0.",
        ),
        (
            ["/v1/a/c", "x", "-1", "2", "6", "k"],
            "Please use a <max_file_size> value greater than or equal to 0.",
        ),
        (["/v1/a/c", "x", "1", "0", "6", "k"], "Please use a positive <max_file_count> value."),
        (["/v1/a/c", "x", "1", "1", "s", "k"], "Please use a whole number of <seconds>."),
        (["/v1/a", "x", "1", "1", "6", "k"], "<path> must point to a container at least."),
    ],
)
def test_what_cannot_be_signed_is_explained(capsys, words, sentence):
    assert form_signature.main(words) == 1
    assert capsys.readouterr().out.splitlines()[0] == sentence
    assert form_signature.main([]) == 1


def test_the_version_is_an_option_though_other_words_that_begin_with_a_hyphen_are_values(capsys):
    with pytest.raises(SystemExit) as end:
        form_signature.main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out.startswith("swift-form-signature (")
