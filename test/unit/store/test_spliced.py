"""Spliced pickles are pickle's own, to the byte, and what is read from them is what pickle reads."""

from __future__ import annotations

import pickle

from hypothesis import example, given
from hypothesis import strategies as st

from swift.base.pickles import PickleRefused, restricted_loads
from swift.store.metadata import encode_metadata, guess_metadata

_TEXT = st.text(st.one_of(st.characters(max_codepoint=255), st.sampled_from("=\udcffл")), max_size=40)


@given(st.dictionaries(st.one_of(st.sampled_from(["ETag", "name", "A"]), _TEXT), _TEXT, max_size=60))
def test_what_is_stored_is_the_protocol_2_pickle_of_bytes_whatever_the_names_and_values_are(metadata):
    def utf8(text):
        return text.encode("utf-8", "surrogateescape")

    for values in (metadata, dict.fromkeys(metadata, "value")):
        expected = pickle.dumps({utf8(key): utf8(value) for key, value in values.items()}, 2)
        assert encode_metadata(values) == expected


def unpickled(blob):
    """What pickle reads from it, as texts; None when it reads nothing."""
    try:
        loaded = restricted_loads(blob, encoding="utf-8")
        return {
            k.decode("utf-8", "surrogateescape"): v.decode("utf-8", "surrogateescape")
            for k, v in loaded.items()
        }
    except (PickleRefused, AttributeError, TypeError, ValueError):
        return None


@given(st.dictionaries(_TEXT, _TEXT, max_size=20))
@example({"name": "/a/c/o", "ETag": "e" * 32})
@example({})
def test_what_was_spliced_is_guessed_or_left_to_pickle(texts):
    blob = encode_metadata(texts)
    assert guess_metadata(blob) in (None, texts)
    assert unpickled(blob) == texts


@given(
    st.dictionaries(st.sampled_from(["name", "ETag", "X-Timestamp", "Content-Type"]), _TEXT, min_size=1),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255), st.booleans()), min_size=1, max_size=4),
)
def test_of_damaged_bytes_nothing_is_guessed_that_pickle_would_not_read(texts, damages):
    blob = bytearray(encode_metadata(texts))
    for object_path, byte, is_cut in damages:
        if is_cut:
            del blob[object_path % len(blob) :]
        else:
            blob[object_path % len(blob) : object_path % len(blob) + 1] = bytes([byte])
        blob = blob or bytearray(b".")
    guessed = guess_metadata(bytes(blob))
    assert guessed is None or guessed == unpickled(bytes(blob))


@given(st.binary(max_size=200))
def test_of_any_bytes_nothing_is_guessed_that_pickle_would_not_read(blob):
    assert guess_metadata(blob) is None or guess_metadata(blob) == unpickled(blob)
