"""rclone: sync, check, server-side copy, chunked uploads."""

from __future__ import annotations

from test.clients.site import Outcome, Site, digests


def sync(site: Site, count: int = 2000) -> Outcome:
    """A tree of many files goes there and comes back."""
    rclone = site.find("rclone", "rclone")
    outcome = Outcome("rclone", site.run(rclone, "version").stdout.split()[1])
    remote = {
        "RCLONE_CONFIG_OURS_TYPE": "swift",
        "RCLONE_CONFIG_OURS_USER": site.user,
        "RCLONE_CONFIG_OURS_KEY": site.key,
        "RCLONE_CONFIG_OURS_AUTH": site.auth_url,
        "RCLONE_CONFIG_OURS_CHUNK_SIZE": "1M",
    }

    def ask(*words: object) -> bool:
        done = site.run(rclone, "--config", "/dev/null", *words, **remote)
        if done.returncode:
            outcome.failed.append(f"rclone {words[0]}: {done.stderr[-300:]}")
        else:
            outcome.passed += 1
        return not done.returncode

    source = site.files("rclone-files", count, large=5 << 20)
    ask("sync", source, "ours:tree", "--transfers", 16, "--checkers", 16)
    ask("check", source, "ours:tree", "--checkers", 16)
    ask("sync", source, "ours:tree", "--checkers", 16)
    ask("copy", "ours:tree/d1", "ours:tree/copied")
    ask("moveto", "ours:tree/large.bin", "ours:tree/renamed.bin")
    ask("touch", "ours:tree/d2/0 ü.bin")
    back = site.folder / "rclone-back"
    ask("copy", "ours:tree", back, "--exclude", "/copied/**", "--transfers", 16)
    wanted = digests(source)
    wanted["renamed.bin"] = wanted.pop("large.bin")
    found = digests(back)
    found.pop("d2/0 ü.bin", None)
    outcome.check("the same bytes come back", found == {k: v for k, v in wanted.items() if k != "d2/0 ü.bin"})
    ask("purge", "ours:tree")
    return outcome
