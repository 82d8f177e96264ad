"""A codec gives k + m fragments, takes any k, and refuses anything else (replication.md §4)."""

import itertools
import random

import pytest

from swift.ec import codec as codec_module
from swift.ec.codec import (
    DEFAULT_EC_TYPE,
    Codec,
    CodecError,
    CodecUnavailable,
    NotEnoughFragments,
    available_types,
    by_preference,
)
from swift.ec.fragment import HEADER_BYTES, BadFragment, FragmentHeader, check_fragment


def _usable():
    for name in available_types():
        try:
            yield Codec(name, *((5, 5) if name.startswith("flat") else (4, 2)))
        except CodecError:
            continue


CODECS = list(_usable())


@pytest.fixture(params=CODECS, ids=lambda c: c.ec_type)
def codec(request):
    return request.param


def test_a_machine_without_the_recommended_code_gets_one_that_survives_any_losses():
    names = ["flat_xor_hd_3", "flat_xor_hd_4", "liberasurecode_rs_vand"]
    assert by_preference(names)[0] == "liberasurecode_rs_vand"
    assert by_preference([*names, DEFAULT_EC_TYPE])[0] == DEFAULT_EC_TYPE


@pytest.mark.parametrize("length", [1, 2, 79, 80, 100, 1000, 4096, 65537])
def test_the_length_of_fragments_is_known_beforehand(codec, length):
    fragments = codec.encode(bytes(length))
    assert len(fragments) == codec.fragments
    assert {len(f) for f in fragments} == {codec.fragment_length(length)}
    assert [check_fragment(f).index for f in fragments] == list(range(codec.fragments))
    assert {check_fragment(f).segment_length for f in fragments} == {length}
    assert codec.fragment_length(0) == 0


@pytest.mark.parametrize("length", [1, 100, 5000])
def test_every_combination_of_k_fragments_gives_the_segment_back(codec, length):
    if codec.ec_type.startswith("flat"):
        pytest.skip("an XOR code does not survive every combination")
    segment = random.Random(length).randbytes(length)
    fragments = codec.encode(segment)
    for chosen in itertools.combinations(fragments, codec.data):
        assert codec.decode(chosen) == segment


def test_a_rebuilt_fragment_is_the_original(codec):
    fragments = codec.encode(random.Random(7).randbytes(3000))
    for index, fragment in enumerate(fragments):
        assert codec.reconstruct(fragments[:index] + fragments[index + 1 :], index) == fragment


@pytest.mark.parametrize(
    "spoil",
    [
        lambda f: f[:-1],
        lambda f: [f[0]] * len(f),
        lambda f: [b"", *f[1:]],
        lambda f: [f[0][:40], *f[1:]],
        lambda f: [f[0][:-1], *f[1:]],
        lambda f: [b"x" * len(f[0]), *f[1:]],
        lambda f: [],
    ],
)
def test_what_is_no_set_of_fragments_is_refused_and_never_crashes(spoil):
    code = Codec("liberasurecode_rs_vand", 4, 2)
    fragments = spoil(code.encode(b"a" * 100)[:4])
    with pytest.raises(NotEnoughFragments):
        code.decode(fragments)


def test_fragments_of_different_segments_are_refused():
    code = Codec("liberasurecode_rs_vand", 4, 2)
    with pytest.raises(NotEnoughFragments, match="different segments"):
        code.decode([*code.encode(b"a" * 100)[:3], code.encode(b"b" * 900)[3]])


def test_a_flipped_bit_in_a_header_is_noticed(codec):
    fragment = bytearray(codec.encode(b"a" * 100)[1])
    assert codec.is_valid(bytes(fragment))
    fragment[12] ^= 1
    header = FragmentHeader.parse(fragment)
    assert header.checksum != header.computed_checksum
    assert not codec.is_valid(bytes(fragment))


def test_a_short_fragment_is_no_fragment():
    with pytest.raises(BadFragment):
        FragmentHeader.parse(b"\0" * (HEADER_BYTES - 1))


def test_an_unknown_code_names_those_that_are_here():
    with pytest.raises(
        CodecError, match="there is no ec_type 'nope'; available are .*liberasurecode_rs_vand"
    ):
        Codec("nope", 4, 2)


def test_a_code_that_is_not_installed_is_told_from_a_typing_error():
    with pytest.raises(CodecUnavailable, match="'shss' is not installed"):
        Codec("shss", 4, 2)


def test_a_code_that_refuses_its_numbers_says_so():
    with pytest.raises(CodecError, match=r"4000\+2"):
        Codec("liberasurecode_rs_vand", 4000, 2)


def test_without_the_library_one_sentence_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyeclib", None)
    with pytest.raises(CodecUnavailable, match="needs PyECLib and liberasurecode"):
        Codec(DEFAULT_EC_TYPE, 4, 2)
    assert codec_module.available_types() == ()


def test_the_scheme_is_what_archives_say_of_themselves():
    assert Codec("liberasurecode_rs_vand", 4, 2).scheme == "liberasurecode_rs_vand 4+2"
