"""restic: backup, check, prune, restore."""

from __future__ import annotations

from test.clients.site import Outcome, Site, digests


def backup(site: Site) -> Outcome:
    """Two snapshots, one forgotten, the other one restored."""
    restic = site.find("restic", "restic")
    outcome = Outcome("restic", site.run(restic, "version").stdout.split()[1])

    def ask(*words: object) -> str:
        done = site.run(
            restic, "-r", "swift:restic:/repository", *words, RESTIC_PASSWORD="secret", timeout_s=900
        )
        outcome.check(f"restic {words[0]}: {done.stderr[-300:]}", done.returncode == 0)
        return done.stdout

    source = site.files("restic-files", 300, large=8 << 20)
    ask("init")
    ask("backup", source)
    (source / "more.bin").write_bytes(b"more" * 1000)
    ask("backup", source)
    ask("check", "--read-data")
    ask("forget", "--keep-last", 1, "--prune")
    ask("check")
    target = site.folder / "restic-back"
    ask("restore", "latest", "--target", target)
    outcome.check("the same bytes come back", digests(target / str(source)[1:]) == digests(source))
    return outcome
