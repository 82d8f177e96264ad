"""duplicity: full and incremental backups, verified and restored."""

from __future__ import annotations

from test.clients.site import Outcome, Site, digests


def backup(site: Site) -> Outcome:
    """A full backup and an increment go there; the newest state comes back."""
    # What the package index brings together for it does not import on a Python of today.
    duplicity = site.find("duplicity", "duplicity, with python3-swiftclient")
    outcome = Outcome("duplicity", site.run(duplicity, "--version").stdout.split()[-1].strip(","))
    account = {
        "SWIFT_AUTHURL": site.auth_url,
        "SWIFT_USERNAME": site.user,
        "SWIFT_PASSWORD": site.key,
        "SWIFT_AUTHVERSION": "1",
    }

    def ask(*words: object) -> None:
        done = site.run(duplicity, *words, "--no-encryption", **account)
        outcome.check(f"duplicity {words[0]}: {(done.stderr or done.stdout)[-300:]}", done.returncode == 0)

    source = site.files("duplicity-files", 100, large=2 << 20)
    ask("full", source, "swift://duplicity")
    (source / "more.bin").write_bytes(b"more" * 1000)
    ask("incremental", source, "swift://duplicity")
    ask("verify", "swift://duplicity", source)
    target = site.folder / "duplicity-back"
    ask("restore", "swift://duplicity", target)
    outcome.check("the same bytes come back", digests(target) == digests(source))
    return outcome
