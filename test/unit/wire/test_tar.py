"""Archives as every tar writes them, and archives that lie."""

import io
import tarfile

import pytest

from swift.wire.tar import BLOCK, EXTRAS_BYTES_MAX, BadTar, MemberKind, TarReader


def made(*infos, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, data in infos:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def info(name, **more):
    found = tarfile.TarInfo(name)
    for key, value in more.items():
        setattr(found, key, value)
    return found


def members(data, step=1 << 20):
    """(name, kind, data, attributes) of all members, read in pieces of ``step`` bytes."""
    source = io.BytesIO(data)
    tar = TarReader(lambda size: source.read(min(size, step)))
    found = []
    while (member := tar.next()) is not None:
        body = b""
        while piece := tar.read_data(4096):
            body += piece
        found.append((member.name, member.kind, body, member.attributes))
    return found


NAMES = [
    "a",
    "d/e",
    "x" * 100,
    "l/" + "n" * 150,
    "p" * 120 + "/" + "q" * 90,
    "\xe9/\u65e5",
    "deep/" * 60 + "x",
]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("step", [1, 511, 1 << 20])
def test_what_was_put_in_comes_out(form, step):
    names = [n for n in NAMES if form != tarfile.USTAR_FORMAT or len(n) < 100]
    files = [(name, name.encode() * 100) for name in names] + [("empty", b"")]
    found = members(made(*((info(name), data) for name, data in files), form=form), step)
    assert [(name, data) for name, _, data, _ in found] == [(name.encode(), data) for name, data in files]
    assert {kind for _, kind, _, _ in found} == {MemberKind.FILE}


def test_attributes_belong_to_one_member_or_to_all_that_follow():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"all": "1"}) as tar:
        tar.addfile(info("a", pax_headers={"one": "2\n="}))
        tar.addfile(info("b"))
    (_, _, _, first), (_, _, _, second) = members(out.getvalue())
    assert (first["all"], first["one"]) == (b"1", b"2\n=")
    assert (second["all"], "one" in second) == (b"1", False)


@pytest.mark.parametrize(
    "kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_what_is_no_file_has_no_data(kind):
    member = info("x", type=kind, linkname="y")
    header = bytearray(member.tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = b"00000001000\0"
    data = resealed(header) + made((info("a"), b"1"))
    assert [(name.rstrip(b"/"), what) for name, what, _, _ in members(data)] == [
        (b"x", MemberKind.OTHER),
        (b"a", MemberKind.FILE),
    ]


def resealed(header):
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def test_sparse_files_are_told_apart():
    pax = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 50)}
    old = bytearray(info("s").tobuf(tarfile.GNU_FORMAT))
    old[156:157] = b"S"
    for data in (made((info("s", pax_headers=pax), b"1")), resealed(old)):
        assert members(data)[0][1] is MemberKind.SPARSE


def long_name(size, kind=b"L"):
    return info("././@LongLink", type=kind, size=size).tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g"])
def test_names_and_attributes_of_any_size_are_not_kept(kind):
    source = io.BytesIO(long_name(EXTRAS_BYTES_MAX + 1, kind) + b"x" * 10 * EXTRAS_BYTES_MAX)
    with pytest.raises(BadTar, match="too long"):
        TarReader(source.read).next()
    assert source.tell() == BLOCK


@pytest.mark.parametrize("kind", [b"x", b"g"])
@pytest.mark.parametrize("size", [10, 100_000])
def test_headers_that_follow_each_other_without_end_are_not_kept(kind, size):
    def headers():
        for n in range(10**6):
            record = b"k%06d=%s\n" % (n, b"v" * size)
            record = b"%d %s" % (len(record) + 1 + len(str(size + 20)), record)
            record = record[: record.index(b" ")].zfill(len(str(size + 20))) + record[record.index(b" ") :]
            head = info("pax", type=kind, size=len(record)).tobuf(tarfile.USTAR_FORMAT)
            yield head + record + bytes(-len(record) % BLOCK)

    pieces, rest = headers(), [b""]

    def read(size):
        while len(rest[0]) < size:
            rest[0] += next(pieces)
        data, rest[0] = rest[0][:size], rest[0][size:]
        return data

    with pytest.raises(BadTar, match="too long"):
        TarReader(read).next()


def pax(records):
    block = info("pax", type=b"x", size=len(records)).tobuf(tarfile.USTAR_FORMAT)
    return block + records + bytes(-len(records) % BLOCK) + made((info("a"), b"1"))


@pytest.mark.parametrize(
    "records",
    [
        b"junk",
        b"5 a=b",
        b"100 a=b\n",
        b"0 a=b\n",
        b"2 \n",
        b"-6 a=b\n",
        b"6 abc\n",
        b"7 a=b\n",
        b"99999999999999999999999999 a=b\n",
        b"12 size=-100\n",
        b"16 size=1" + b"0" * 6 + b"x\n",
        b"".join(b"%d k%05d=\n" % (11, n) for n in range(2000)),
    ],
)
def test_records_that_lie_are_refused(records):
    with pytest.raises(BadTar):
        members(pax(records))


@pytest.mark.parametrize("cut", [1, 100, 511, 513, 600, 1024, 1536 + 1, 1536 + 511])
def test_an_archive_that_ends_early_is_an_error(cut):
    data = made((info("a"), b"1" * 700), (info("b"), b"2" * 700))
    with pytest.raises(BadTar, match="truncated header" if cut < BLOCK else "unexpected end of data"):
        members(data[:cut])


def test_an_archive_may_end_without_saying_so():
    data = made((info("a"), b"1" * 700))
    assert [name for name, _, _, _ in members(data[:1536])] == [b"a"]


@pytest.mark.parametrize("data", [b"", b"junk", b"junk" * 500, b"\xff" * 2048, b"0" * 512])
def test_what_is_no_archive_is_refused(data):
    with pytest.raises(BadTar):
        members(data)


def test_a_size_in_binary_is_understood():
    header = bytearray(info("a").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + (9 << 30).to_bytes(11, "big")
    tar = TarReader(io.BytesIO(resealed(header)).read)
    assert tar.next().size == 9 << 30
    with pytest.raises(BadTar, match="unexpected end"):
        tar.read_data(100)
