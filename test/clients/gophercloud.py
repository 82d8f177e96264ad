"""gophercloud: the Go library, by a small program that is built here."""

from __future__ import annotations

import json
from pathlib import Path

from test.clients.site import Missing, Outcome, Site

_MODULE = "github.com/gophercloud/gophercloud/v2"
_PROGRAM = Path(__file__).with_suffix(".go")


def example(site: Site) -> Outcome:
    """Containers, objects, copies and bulk deletes through the library."""
    go = site.find("go", "golang")
    folder = site.folder / "gophercloud"
    folder.mkdir(exist_ok=True)
    (folder / "main.go").write_text(_PROGRAM.read_text())
    for words in (("mod", "init", "example"), ("get", f"{_MODULE}@latest"), ("build", "-o", "example", ".")):
        done = site.run(go, "-C", folder, *words, GOPATH=str(site.folder / "gopath"), GOFLAGS="-modcacherw")
        if done.returncode and words[0] != "mod":
            raise Missing(f"go {words[0]} failed: {done.stderr.strip()[-300:]}")
    version = next(
        line.split()[-1] for line in (folder / "go.mod").read_text().splitlines() if _MODULE in line
    )
    done = site.run(folder / "example", site.auth_url.removesuffix("auth/v1.0"), site.user, site.key)
    if done.returncode:
        return Outcome("gophercloud", version, failed=[done.stderr[-400:]])
    outcome = Outcome("gophercloud", version)
    for what, holds in json.loads(done.stdout).items():
        outcome.check(what, holds)
    return outcome
