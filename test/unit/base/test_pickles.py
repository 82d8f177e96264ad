"""Pickles that cannot run anything."""

import collections
import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.errors import InvalidValue
from swift.base.pickles import PickleRefused, restricted_loads

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Harm:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@given(PLAIN, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back_in_every_protocol(value, protocol):
    assert restricted_loads(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_names_a_function_is_refused_and_runs_nothing(tmp_path, protocol):
    with pytest.raises(PickleRefused, match=r"posix\.system"):
        restricted_loads(pickle.dumps(Harm(tmp_path / "harm"), protocol))
    assert not (tmp_path / "harm").exists()


def test_a_class_is_refused_unless_its_format_has_it():
    data = pickle.dumps(collections.OrderedDict(a=1))
    with pytest.raises(PickleRefused, match="OrderedDict"):
        restricted_loads(data)
    extra = {("collections", "OrderedDict"): dict}
    assert restricted_loads(data, extra=extra) == {"a": 1}


@pytest.mark.parametrize(
    "name", ["eval", "exec", "getattr", "open", "__import__", "compile", "breakpoint", "bytearray"]
)
def test_functions_of_the_language_are_refused(name):
    with pytest.raises(PickleRefused):
        restricted_loads(b"cbuiltins\n" + name.encode() + b"\n(S'1'\ntR.")


def test_another_codec_than_those_of_texts_is_refused():
    with pytest.raises(PickleRefused, match="zlib"):
        restricted_loads(b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00zlibtR.")


def test_bytes_of_python_2_are_kept_when_asked_for():
    assert restricted_loads(b"S'\\xff'\n.", encoding="bytes") == b"\xff"


@given(st.binary(max_size=60))
def test_whatever_does_not_load_is_an_invalid_value(data):
    try:
        restricted_loads(data)
    except InvalidValue:
        pass


@given(PLAIN, st.data())
def test_a_damaged_pickle_loads_or_is_refused(value, draw):
    data = bytearray(pickle.dumps(value, 2))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        restricted_loads(bytes(data))
    except InvalidValue:
        pass
