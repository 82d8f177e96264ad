"""Requests that store or delete many objects at once."""

import io
import tarfile

A = "/v1/AUTH_test"
JSON = {"Accept": "application/json"}


def archive(*members, kind="", form=tarfile.PAX_FORMAT):
    """A tar file of (name, data, PAX headers) or ``TarInfo`` members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}", format=form) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, data, *pax = member
            info = tarfile.TarInfo(name)
            info.size, info.pax_headers = len(data), pax[0] if pax else {}
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def special(name, kind, link=""):
    """A member that is no file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def send_bulk(both):
    """Send every case."""
    both("PUT", A + "/bk")
    formats(both)
    members(both)
    broken(both)
    deletions(both)


def put(both, body, path="/bk", kind="tar", headers=JSON, **how):
    """Extract an archive."""
    both("PUT", f"{A}{path}?extract-archive={kind}", headers, body, **how)


def formats(both):
    """Kinds of archives and of answers."""
    body = archive(("a", b"1"), ("d/b c\xe9", b"22"), ("x" * 1100, b"3"))
    for accept in (
        *("text/plain", "application/json", "application/xml", "text/xml", "*/*", "image/png", "text/*", ""),
        *("application/xml;q=0.5, text/plain;q=0.2", "junk"),
    ):
        put(both, body, headers={"Accept": accept})
    put(both, body, headers={})
    for kind in ("tar", "tar.gz", "tar.bz2", "TAR", "tgz", "zip", "", "tar.xz"):
        packed = archive(("a", b"1"), kind={"tar.gz": "gz", "tar.bz2": "bz2"}.get(kind, ""))
        put(both, packed, kind=kind)
        put(both, [packed[:10], packed[10:]], kind=kind)
    both("POST", A + "/bk?extract-archive=tar", JSON, body)
    both("GET", A + "/bk?extract-archive=tar", JSON)
    for user in ("test:tester3", "test2:tester2", None):
        put(both, body, user=user)
        put(both, body, path="/bknew", user=user)
    both("GET", A + "/bk")


def members(both):
    """Which members become which objects."""
    put(
        both,
        archive(
            ("/abs", b"1"),
            ("./dot", b"1"),
            (".//dots", b"1"),
            ("//slashes", b"1"),
            ("../up", b"1"),
            ("d/../e", b"1"),
            ("d//f", b"1"),
            ("empty", b""),
            ("100%25", b"1"),
            ("q?a=b#c", b"1"),
            special("dir/", tarfile.DIRTYPE),
            special("link", tarfile.SYMTYPE, "abs"),
            special("hard", tarfile.LNKTYPE, "abs"),
            special("fifo", tarfile.FIFOTYPE),
            special("dev", tarfile.CHRTYPE),
        ),
    )
    both("GET", A + "/bk")
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT):
        put(both, archive(("l/" + "n" * 90, b"1"), ("dd/" * 40 + "name", b"2"), form=form), path="/bk/pre")
    put(both, archive(("pre1", b"1")), path="/bk/p")
    put(both, archive(("pre1", b"1")), path="/bk/p/")
    put(both, archive(("pre1", b"1")), path="/bk/")
    put(
        both,
        archive(("bk1/a", b"1"), ("bk1/b", b"1"), ("bk2/a", b"1"), ("lonely", b"1")),
        path="",
    )
    put(both, archive(("bk1/a", b"1")), path="/")
    put(both, archive(("x" * 257 + "/a", b"1"), ("..", b"1"), ("../a", b"1")), path="")
    marked = {
        "SCHILY.xattr.user.mime_type": "text/x-mine",
        "SCHILY.xattr.user.meta.color": "red",
        "SCHILY.xattr.user.meta.Two Words": "a b",
        "SCHILY.xattr.user.other": "x",
        "SCHILY.xattr.security.selinux": "x",
    }
    libarchive = {
        "LIBARCHIVE.xattr.user.mime_type": "text/x-lib",
        "LIBARCHIVE.xattr.user.meta.shade": "blue",
        "LIBARCHIVE.xattr.user.meta.enc%20oded": "cmVk",
    }
    long = {"SCHILY.xattr.user.meta.long": "x" * 300}
    files = (("m1", b"1", marked), ("m2", b"2", libarchive), ("m3", b"3", long), ("m4.txt", b"4"))
    put(both, archive(*files), headers={**JSON, "X-Object-Meta-All": "1", "X-Delete-At": "9999999999"})
    for name in ("m1", "m2", "m3", "m4.txt"):
        both("HEAD", f"{A}/bk/{name}")
    put(both, archive(("m5", b"1"), ("m6", b"1")), headers={**JSON, "X-Delete-At": "5"})
    latin = archive(("latin-\udcff", b"1"), ("fine", b"1"), form=tarfile.GNU_FORMAT)
    put(both, latin)


def broken(both):
    """Archives that are none, or not all of one."""
    good = archive(("a", b"1" * 700), ("b", b"2" * 700))
    for body in (
        *(
            b"",
            b"\0" * 512,
            b"\0" * 10240,
            b"junk",
            b"junk" * 500,
            good[:400],
            good[:1536],
            good + b"junk" * 1000,
            archive(),
        ),
    ):
        put(both, body)
    for kind in ("tar.gz", "tar.bz2"):
        packed = archive(("a", b"1" * 700), kind=kind[4:])
        for body in (b"", b"junk", packed[:20], packed[:-12], good, packed + b"junk"):
            put(both, body, kind=kind)
    put(
        both,
        archive(*((f"f{n}", b"") for n in range(30))),
        headers={**JSON, "X-Object-Meta-" + "x" * 200: "1"},
    )


def deletions(both):
    """Lists of what is to go."""

    def delete(body, method="POST", headers=None, path="", **how):
        sent = {"Content-Type": "text/plain", **JSON, **(headers or {})}
        both(method, f"{A}{path}?bulk-delete", sent, body, **how)

    for name in ("a", "b%20c", "d%C3%A9", "e%25f", "g", "h"):
        both("PUT", f"{A}/bk1/{name}", body=b"x")
    delete(b"bk1/a\n/bk1/b%20c\nbk1/nope\nbk1/d%C3%A9\nbk1/e%25f\n\n  /bk1/g  \nbk2\nnocontainer\nbk1/a\n")
    for accept in ("text/plain", "application/xml", "text/xml", "image/png", ""):
        delete(b"bk1/h\nbk2\nbk1/no%3C%26", headers={"Accept": accept})
    for body in (
        b"",
        b"\n\n",
        b"/",
        b"//",
        b"bk1/%FF",
        b"bk1/%00",
        b"%2Fbk1%2Fx",
        b"bk1/x\r\nbk1/y",
        b"x" * 20000,
        b"/v1/AUTH_test/bk1/a",
    ):
        delete(body)
    for kind in ("", "text/plain; charset=utf-8", "application/json", "Text/Plain"):
        delete(b"bk1/x", headers={"Content-Type": kind})
    delete(b"bk1/x", method="DELETE")
    delete(b"bk1/x", path="/bk1")
    delete(b"bk1/x", path="/bk1/y")
    delete([b"bk1/x\nbk1", b"/y\n"])
    for user in ("test:tester3", None):
        delete(b"bk1/h\nbk2", user=user)
    both("PUT", A + "?bulk-delete", {"Content-Type": "text/plain"}, b"bk1/x")
    both("GET", A + "?bulk-delete")
    delete(b"bk2/a\nbk2\nbk1/pre1")
    delete(b"\n".join(b"bk1/%d" % n for n in range(10)), headers={"X-Auth-Token": "bad"})
    both("GET", A + "/bk1")
