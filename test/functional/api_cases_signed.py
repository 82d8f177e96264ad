"""Requests about temporary URLs and signed forms, which end in the year 2286."""

import hmac

A = "/v1/AUTH_test"
END = "9999999999"
OBJECT = A + "/tu/a b/o.txt"
RAW = A + "/tu/a%20b/o.txt"


def send_signed(both):
    """Send every case."""
    both("POST", A, {"X-Account-Meta-Temp-URL-Key": "mykey"})
    both("PUT", A + "/tu", {"X-Container-Meta-Temp-URL-Key-2": "ckey"})
    both("PUT", A + "/tu/d", {"Content-Disposition": "inline; x=y"}, b"hello")
    for part in (methods, keys, times, parameters, dispositions, prefixes, pointers):
        both("PUT", RAW, {"X-Object-Meta-A": "1", "X-Object-Meta-Public-B": "2"}, b"hello")
        part(both)
    forms(both)


def signature(method, path, *, expires=END, key="mykey", digest="sha256", ip=None, prefix=None):
    """The signature of a link, in hexadecimal."""
    address = "" if ip is None else f"ip={ip}\n"
    path = path if prefix is None else "prefix:" + path
    text = f"{address}{method}\n{expires}\n{path}"
    return hmac.new(key.encode(), text.encode(), digest).hexdigest()


def link(both, method="GET", raw=RAW, path=OBJECT, *, verb=None, more="", sent=None, **how):
    """Send a signed request; ``sent`` is how its time is written."""
    headers, body = how.pop("headers", None), how.pop("body", None)
    query = f"temp_url_sig={signature(verb or method, path, **how)}&temp_url_expires={sent or END}"
    for name in ("ip", "prefix"):
        if how.get(name) is not None:
            query += f"&temp_url_{'ip_range' if name == 'ip' else name}={how[name]}"
    both(method, f"{raw}?{query}{more}", headers, body, user=None)


def methods(both):
    """Which signature is good for which method."""
    for verb in ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "COPY", "PATCH"):
        for method in ("GET", "HEAD"):
            link(both, method, verb=verb)
        link(both, verb, body=b"hello" if verb == "PUT" else None)


def keys(both):
    """Digests and keys."""
    for key in ("mykey", "ckey", "other", ""):
        for digest in ("sha1", "sha256", "sha512", "md5"):
            link(both, key=key, digest=digest)
    link(both, raw=A + "/tu2/o", path=A + "/tu2/o", key="ckey")
    link(both, raw=A + "/tu2/o", path=A + "/tu2/o")
    link(both, raw="/v1/AUTH_none/c/o", path="/v1/AUTH_none/c/o")
    good = signature("GET", OBJECT)
    encoded = "KvyEqIjUxA9PsmLfPlhJSwlv9TZTUP2EX5VwpmF/KWjF"
    for text in (
        good.upper(),
        good + "0",
        good[:-1],
        "sha256:" + encoded[:43] + "=",
        "sha256:" + encoded[:43],
        "sha256:" + encoded[:42].replace("/", "_"),
        "sha512:" + encoded[:42],
        "sha1:x",
        ":",
        "",
    ):
        both("GET", f"{RAW}?temp_url_sig={text}&temp_url_expires={END}", user=None)


def times(both):
    """Which texts are times."""
    for sent, second in (
        ("0", 0),
        ("-1", -1),
        ("1", 1),
        (f"%20{END}", END),
        (f"%2B{END}", END),
        (f"0{END}", END),
        ("9_999_999_999", END),
        (f"{END}.0", END),
        ("300000000000", "300000000000"),
        ("2999-01-01T00:00:00Z", 32472144000),
        ("2999-01-01T00:00:00", 32472144000),
        ("2999-01-01", 32472144000),
        ("2999-01-01T00:00:00+0000", 32472144000),
        ("1999-01-01T00:00:00Z", 915148800),
        ("x", END),
        ("", END),
    ):
        link(both, expires=second, sent=sent)


def parameters(both):
    """Links that lack something, or have it twice."""
    good = signature("GET", OBJECT)
    for query in (
        f"temp_url_sig={good}",
        f"temp_url_expires={END}",
        "temp_url_prefix=a",
        "temp_url_prefix=",
        "temp_url_ip_range=1.2.3.4",
        "temp_url_sig",
        "inline",
        f"temp_url_sig=x&temp_url_sig={good}&temp_url_expires={END}",
        f"temp_url_sig={good}&temp_url_sig=x&temp_url_expires={END}",
        f"temp_url_sig={good}&temp_url_expires=1&temp_url_expires={END}",
        f"%74emp_url_sig={good}&temp_url_expires={END}",
        f"Temp_Url_Sig={good}&temp_url_expires={END}",
        f"temp_url_sig={good};temp_url_expires={END}",
        f"temp_url_sig={good}&temp_url_expires={END}&temp_url_ip_range=127.0.0.1",
        f"temp_url_sig={good}&temp_url_expires={END}&temp_url_prefix=a",
        f"temp_url_sig={good}&temp_url_expires={END}&multipart-manifest=get&format=raw",
    ):
        both("GET", f"{RAW}?{query}", user=None)
        both("HEAD", f"{RAW}?{query}")
    for ip in ("127.0.0.1", "127.0.0.0/8", "127.0.0.1/8", "10.0.0.0/8", "::1", "x", ""):
        link(both, ip=ip)
    for raw, path in (
        (A + "/tu", A + "/tu"),
        (A + "/tu/", A + "/tu/"),
        (A, A),
        ("/v1.0/AUTH_test/tu/d", "/v1.0/AUTH_test/tu/d"),
        ("/v1.0/AUTH_test/tu/d", A + "/tu/d"),
        ("/info", "/info"),
        (A + "/tu/none", A + "/tu/none"),
        (A + "%2Ftu/d", A + "/tu/d"),
        (A + "/tu//d", A + "/tu/d"),
        (A + "/tu/x/../d", A + "/tu/d"),
    ):
        link(both, raw=raw, path=path)
    link(both, headers={"Range": "bytes=1-2"})
    link(both, headers={"If-None-Match": "5d41402abc4b2a76b9719d911017c592"})
    link(both, headers={"Range": "bytes=9-"})


def dispositions(both):
    """What a browser is told."""
    for more in (
        "&filename=na%C3%AFve%20%22q%22.txt",
        "&filename=",
        "&filename",
        "&filename=a/b",
        "&filename=x%0d%0ay",
        "&filename=%ff",
        "&inline",
        "&inline=0&filename=x",
        "&inline=&filename=",
    ):
        for name in ("/a%20b/o.txt", "/d"):
            link(both, raw=A + "/tu" + name, path=A + "/tu" + name.replace("%20", " "), more=more)
    for name in ("x/", "x//", "%C3%A9", "a%22b%5C"):
        path = f"{A}/tu/" + {"%C3%A9": "\xe9", "a%22b%5C": 'a"b\\'}.get(name, name)
        both("PUT", f"{A}/tu/{name}", body=b"hello")
        link(both, raw=f"{A}/tu/{name}", path=path)


def prefixes(both):
    """Links for what begins alike."""
    for prefix in ("a b/", "a", "", "a b/o.txt", "a b/o.txtx", "b"):
        shown = prefix.replace(" ", "%20")
        sig = signature("GET", f"{A}/tu/{prefix}", prefix=prefix)
        for raw in (RAW, A + "/tu", A + "/tu/", A + "/tu/d", A):
            query = f"temp_url_sig={sig}&temp_url_expires={END}&temp_url_prefix={shown}"
            both("GET", f"{raw}?{query}", user=None)
    sig = signature("PUT", A + "/tu/", prefix="")
    for raw in (A + "/tu/n", A + "/tu"):
        both("PUT", f"{raw}?temp_url_sig={sig}&temp_url_expires={END}&temp_url_prefix=", body=b"x", user=None)


def pointers(both):
    """Headers that are refused, dropped or ignored."""
    for name in ("X-Object-Manifest", "X-Symlink-Target", "X-Copy-From"):
        for method in ("PUT", "POST", "DELETE", "GET"):
            link(both, method, headers={name: "a/b"}, body=b"" if method == "PUT" else None)
    link(both, "PUT", headers={"X-Timestamp": "1", "X-Object-Meta-Public-B": "3"}, body=b"hello")
    both("HEAD", RAW)
    link(both, "POST", headers={"X-Object-Meta-C": "1", "X-Delete-At": "9999999998"})
    both("HEAD", RAW)


# --- forms --------------------------------------------------------------------------------------------

ONE = ('name="file1"; filename="a.txt"', b"Content-Type: text/x\r\n", b"hello")
TWO = ('name="file2"; filename="b.txt"', b"", b"hello2")


def form_body(fields, files, *, lead=b"", end=b"--B--\r\n"):
    """The body of a form with boundary ``B``."""
    out = lead
    for name, value in fields:
        out += f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    for about, lines, data in files:
        head = f"--B\r\nContent-Disposition: form-data; {about}\r\n".encode("latin-1")
        out += head + lines + b"\r\n" + data + b"\r\n"
    return out + end


def form_fields(path, *, key="mykey", digest="sha256", drop=(), fields=(), **over):
    """The signed fields of a form."""
    terms = {"redirect": "", "max_file_size": "100", "max_file_count": "2", "expires": END, **over}
    text = "\n".join([path, *terms.values()])
    terms["signature"] = hmac.new(key.encode(), text.encode(), digest).hexdigest()
    return [(name, value) for name, value in terms.items() if name not in drop] + list(fields)


def post(both, path=A + "/fp/pre", files=(ONE,), *, raw=None, kind="multipart/form-data; boundary=B", **how):
    """Send a signed form without a token."""
    shape = {name: how.pop(name) for name in ("lead", "end") if name in how}
    method, headers = how.pop("method", "POST"), how.pop("headers", {})
    body = form_body(form_fields(path, **how), files, **shape)
    both(method, raw or path, {"Content-Type": kind, **headers}, body, user=None)


def forms(both):
    """Forms, good and bad."""
    both("PUT", A + "/fp", {"X-Container-Meta-Temp-URL-Key-2": "ckey"})
    for path in ("/fp/pre", "/fp", "/fp/", "", "/", "/fpnone/pre", "/fp/p\xe9", "/fp/%ff"):
        raw = A + path.replace("\xe9", "%C3%A9").replace("%ff", "%2Fx%26")
        post(both, A + path.replace("%ff", "/x&"), raw=raw)
    for path in ("/v1.0/AUTH_test/fp/pre", "/v2/AUTH_test/fp/pre", "/v1/AUTH_none/fp/pre"):
        post(both, path)
    for key, digest in (("ckey", "sha256"), ("other", "sha256"), ("mykey", "sha1"), ("mykey", "md5")):
        post(both, key=key, digest=digest)
    post(both, A + "/fp2/pre", key="ckey")
    post(both, raw=A + "/fp%2Fpre?x=y")
    for name in ("max_file_size", "max_file_count", "expires", "redirect", "signature"):
        post(both, drop=(name,))
    for name in ("max_file_size", "max_file_count", "expires"):
        for value in ("x", "-1", "", "0", "4", "1_00"):
            post(both, **{name: value})
    post(both, expires="2999-01-01T00:00:00Z")
    for count, files in (("2", (ONE, TWO)), ("2", (ONE, TWO, ONE)), ("1", (ONE, TWO)), ("2", ())):
        for redirect in ("", "http://x/y", "http://x/y?z=1"):
            post(both, files=files, max_file_count=count, redirect=redirect)
    post(both, redirect="http://x/y", max_file_size="4")
    post(both, A + "/fpnone/pre", redirect="http://x/y")
    names(both)
    for fields in (
        [("x_delete_at", END)],
        [("x_delete_after", "x")],
        [("x_delete_at", "x")],
        [("x_delete_at", "5")],
        [("Content-Type", "a/b"), ("CONTENT-ENCODING", "gz")],
        [("MAX_FILE_SIZE", "3")],
        [("long", "x" * 5000)],
    ):
        post(both, fields=fields)
        both("HEAD", A + "/fp/prea.txt")
    for shape in ({"lead": b"\r\n"}, {"lead": b"preamble\r\n"}, {"end": b"--B-- junk"}, {"end": b"--B--"}):
        post(both, **shape)
    for kind in (
        'multipart/form-data; boundary="B"',
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; charset=x; boundary=B; y=z",
        "multipart/mixed; boundary=B",
    ):
        post(both, kind=kind)
    post(both, method="PUT")
    post(both, headers={"X-Object-Meta-A": "1", "X-Object-Manifest": "a/b", "X-Auth-Token": "bad"})
    both("HEAD", A + "/fp/prea.txt")
    both("GET", A + "/fp")


def names(both):
    """What files are called."""
    for about in (
        'name="f"; filename=""',
        'name="f"; filename="../x/%41b c?d#e.txt"',
        'name="f"; filename="q\\"u.txt"',
        'name="f"; filename=plain.txt',
        "name=\"f\"; filename*=UTF-8''star.txt",
        'name="f"; filename="C:\\\\x\\\\y.txt"',
        'name="f"; filename="\xc3\xa9"',
        'name="f"; filename="' + "n" * 1100 + '"',
    ):
        post(both, files=((about, b"Content-Encoding: br\r\nX-Object-Meta-A: 1\r\n", b"hello"),))
