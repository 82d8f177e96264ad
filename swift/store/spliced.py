"""Pickles of metadata, spliced: the protocol 2 pickle of a dictionary of texts, without pickling.

Objects of one kind have the same names, and then their pickles differ in the lengths and texts of the values
only. So pickle is asked once for each set of names, with values that are found again in what it writes; the
*frames* between them are kept, and later pickles are frames with other values between. The bytes are those
that pickle writes; where they would not be, pickle writes them:

* a value of fewer than two bytes, because Python has one object for all of them and pickle writes it once;
* names outside ASCII, and no names at all.

Reading goes the other way: cut a pickle at its frames, guess the texts, and believe the guess only when it
leads back to the very same bytes. spec: object-disk.md §4
"""

from __future__ import annotations

import pickle
from functools import lru_cache

#: Names as stored to values: texts, or views of bytes that are not UTF-8.
Texts = dict[str, str]

#: How our pickles go on after a text, and after the first one; where texts begin behind that.
_AFTER_TEXT = b"h\x03\x86q"
_AFTER_FIRST = b"q\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\x05h\x01X"
_FIRST_TEXT = len(b"\x80\x02}q\x00(c_codecs\nencode\nq\x01X") + 4
_NEXT_TEXT = len(b"\x07Rq\x08h\x01X") + 4
#: Sets of names whose frames are kept.
FRAMES_MAX = 128


def encode(texts: Texts) -> bytes:
    """The protocol 2 pickle of ``texts`` as UTF-8, names in their order."""
    frames = _frames(tuple(texts))
    parts: list[bytes] = []
    for frame, value in zip(frames, texts.values(), strict=False):
        if len(value) < 2:
            # Python has one object for all bytes of such a value, and pickle writes an object once.
            return _pickled(texts)
        text = value.encode() if value.isascii() else _utf8(value).decode("latin-1").encode()
        parts += (frame, len(text).to_bytes(4, "little"), text)
    if not parts:
        return _pickled(texts)
    parts.append(frames[-1])
    return b"".join(parts)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _pickled(texts: Texts) -> bytes:
    return pickle.dumps({_utf8(key): _utf8(value) for key, value in texts.items()}, 2)


@lru_cache(maxsize=FRAMES_MAX)
def _frames(names: tuple[str, ...]) -> tuple[bytes, ...]:
    """What pickle writes before the length of each value, and after the last value; none for odd names.

    Only lengths and texts differ between objects that have the same names, so pickle is asked once.
    """
    if not all(map(str.isascii, names)):
        return ()
    # Longer than any name and therefore found in no other place.
    fill = "=" * (1 + max(map(len, names), default=0))
    marks = [f"{fill}{number}=" for number in range(len(names))]
    rest = _pickled(dict(zip(names, marks, strict=True)))
    frames = []
    for mark in marks:
        frame, _, rest = rest.partition(len(mark).to_bytes(4, "little") + mark.encode())
        frames.append(frame)
    return (*frames, rest)


def guess(blob: bytes) -> Texts | None:
    """What ``encode`` made ``blob`` of; None for any other bytes."""
    texts = _between_frames(blob)
    # A guess that leads back to the very same bytes is right, and far less work than unpickling.
    return texts if texts and encode(texts) == blob else None


def _between_frames(blob: bytes) -> Texts:
    """The texts between what our pickles have around them; anything for other pickles."""
    first, *others = blob.split(_AFTER_TEXT)
    name, _, value = first.partition(_AFTER_FIRST)
    texts = [name[_FIRST_TEXT:], value[4:-2]]
    texts += [piece[_NEXT_TEXT:-2] for piece in others[:-1]]
    try:
        words = [_text_of(text) for text in texts]
    except UnicodeError:
        return {}
    return dict(zip(words[::2], words[1::2], strict=False))


def _text_of(pickled: bytes) -> str:
    text = pickled.decode()
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "surrogateescape")
