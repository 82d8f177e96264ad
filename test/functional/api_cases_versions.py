"""Requests to containers whose former objects are kept in another one.

Like ``api_cases``; the cases run on containers of their own, after those about links.
"""

A = "/v1/AUTH_test"
OTHER = "test2:tester2"


def send_versions(both):
    """Send every case."""
    for container in ("va", "vb", "vold", "vhist", "v%20old"):
        both("PUT", f"{A}/{container}")
    for part in (settings, stack, history, rights, kinds, missing):
        part(both)


def looked_at(both, path, **who):
    for method in ("GET", "HEAD"):
        both(method, path, **who)


def names(both, container):
    """How many rows there are: their names have times."""
    both("HEAD", f"{A}/{container}")


def settings(both):
    """What a container says of its versions."""
    for method in ("PUT", "POST"):
        for name in ("X-Versions-Location", "X-History-Location"):
            for value in ("vold", "v%20old", "v old", "a/b", "/vold", "", "none", "a%2Fb"):
                both(method, A + "/va", {name: value})
                both("HEAD", A + "/va")
            both(method, A + "/va", {f"X-Remove-{name[2:]}": "x"})
            both("HEAD", A + "/va")
        both(method, A + "/va", {"X-Versions-Location": "vold", "X-History-Location": "vhist"})
        both(method, A + "/va", {"X-Versions-Location": "vold", "X-History-Location": ""})
        both("HEAD", A + "/va")
        both(method, A + "/va", {"X-Versions-Location": "vold", "X-Remove-Versions-Location": "x"})
        both("HEAD", A + "/va")
    both("POST", A + "/va", {"X-Versions-Location": "vold"})
    looked_at(both, A + "/va")
    both("GET", A + "/va?format=json")
    both("POST", A + "/va", {"X-Container-Meta-A": "b"})
    both("HEAD", A + "/va")
    both("PUT", A + "/vnew", {"X-Versions-Location": "vold"})
    both("HEAD", A + "/vnew")
    both("HEAD", A + "/va", user=OTHER)


def stack(both):
    """A deletion brings the former one back."""
    both("POST", A + "/va", {"X-Versions-Location": "vold"})
    both("DELETE", A + "/va/none")
    for number in (1, 2, 3):
        both(
            "PUT",
            A + "/va/o",
            {"X-Object-Meta-N": str(number), "Content-Type": f"t/{number}"},
            b"v%d" % number,
        )
        looked_at(both, A + "/va/o")
        names(both, "vold")
    both("POST", A + "/va/o", {"X-Object-Meta-Posted": "1"})
    names(both, "vold")
    for _ in range(4):
        both("DELETE", A + "/va/o")
        looked_at(both, A + "/va/o")
        names(both, "vold")
    both("PUT", A + "/va/\xc3\xa9", None, b"1")
    both("PUT", A + "/va/\xc3\xa9", None, b"2")
    both("GET", A + "/vold?delimiter=/")
    both("DELETE", A + "/va/\xc3\xa9")
    both("GET", A + "/va/\xc3\xa9")
    both("COPY", A + "/va/%C3%A9", {"Destination": "va/o"})
    both("COPY", A + "/va/%C3%A9", {"Destination": "va/o", "X-Object-Meta-B": "c"})
    both("GET", A + "/vold?delimiter=/")
    both("PUT", A + "/va/o", {"If-None-Match": "*"}, b"x")
    names(both, "vold")
    both("PUT", A + "/va/o", {"ETag": "bad"}, b"x")
    looked_at(both, A + "/va/o")


def history(both):
    """A deletion is remembered too."""
    both("POST", A + "/vb", {"X-History-Location": "vhist"})
    both("DELETE", A + "/vb/none")
    names(both, "vhist")
    for number in (1, 2):
        both("PUT", A + "/vb/o", {"X-Object-Meta-N": str(number)}, b"v%d" % number)
        names(both, "vhist")
    for _ in range(2):
        both("DELETE", A + "/vb/o")
        looked_at(both, A + "/vb/o")
        names(both, "vhist")
    both("GET", A + "/vhist?delimiter=/")
    both("PUT", A + "/vb/o", None, b"again")
    both("POST", A + "/vb", {"X-Versions-Location": "vhist"})
    both("HEAD", A + "/vb")
    for _ in range(5):
        both("DELETE", A + "/vb/o")
        looked_at(both, A + "/vb/o")
        names(both, "vhist")


def rights(both):
    """Who may write may have versions kept."""
    both("POST", A + "/va", {"X-Container-Write": OTHER, "X-Versions-Location": "vold"})
    both("PUT", A + "/va/r", None, b"mine")
    both("PUT", A + "/va/r", None, b"theirs", user=OTHER)
    both("GET", A + "/va/r")
    names(both, "vold")
    both("DELETE", A + "/va/r", user=OTHER)
    both("GET", A + "/va/r")
    both("POST", A + "/va", {"X-Container-Write": ""})
    both("PUT", A + "/va/r", None, b"theirs", user=OTHER)
    both("DELETE", A + "/va/r", user=OTHER)
    both("DELETE", A + "/va/r", user=None)
    names(both, "vold")
    both("GET", A + "/va/r")
    both("POST", A + "/va", {"X-Versions-Location": "vb"}, user=OTHER)


def kinds(both):
    """Manifests and links are kept as what they are."""
    both("PUT", A + "/vb/seg/1", None, b"one")
    both("PUT", A + "/va/dlo", {"X-Object-Manifest": "vb/seg/"}, b"")
    both("PUT", A + "/va/dlo", None, b"plain")
    both("DELETE", A + "/va/dlo")
    looked_at(both, A + "/va/dlo")
    both("PUT", A + "/va/slo?multipart-manifest=put", {"Content-Type": "v/x"}, b'[{"path": "/vb/seg/1"}]')
    both("PUT", A + "/va/slo", None, b"plain")
    both("DELETE", A + "/va/slo")
    looked_at(both, A + "/va/slo")
    both("PUT", A + "/va/link", {"X-Symlink-Target": "vb/seg/1"})
    both("PUT", A + "/va/link", None, b"plain")
    both("DELETE", A + "/va/link")
    looked_at(both, A + "/va/link")
    both("HEAD", A + "/va/link?symlink=get")
    both("GET", A + "/va?format=json&prefix=slo")
    both("PUT", A + "/va/exp", {"X-Delete-At": "9999999999"}, b"e")
    both("PUT", A + "/va/exp", None, b"plain")
    both("DELETE", A + "/va/exp")
    looked_at(both, A + "/va/exp")


def missing(both):
    """The container of the versions is not there."""
    both("POST", A + "/va", {"X-Versions-Location": "nowhere"})
    both("PUT", A + "/va/m", None, b"first")
    both("PUT", A + "/va/m", None, b"second")
    both("GET", A + "/va/m")
    both("DELETE", A + "/va/m")
    both("POST", A + "/va", {"X-History-Location": "nowhere"})
    both("PUT", A + "/va/m", None, b"first")
    both("PUT", A + "/va/m", None, b"second")
    both("DELETE", A + "/va/m")
    both("DELETE", A + "/va/never")
    both("GET", A + "/va/m")
