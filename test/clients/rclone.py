"""rclone: sync, check, server-side copy, chunked uploads; and the tests of its own backend."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from test.clients.site import Missing, Outcome, Site, digests

#: The version whose tests are run.
VERSION = "v1.68.2"
_MODULE = "github.com/rclone/rclone"


def own_tests(site: Site) -> Outcome:
    """The tests that rclone has for its backend of Swift."""
    options = {"type": "swift", "user": site.user, "key": site.key, "auth": site.auth_url}
    return _tests_of(site, "swift", options)


def own_s3_tests(site: Site) -> Outcome:
    """The tests that rclone has for its backend of S3."""
    options = {
        "type": "s3",
        "provider": "Other",
        "access_key_id": site.user,
        "secret_access_key": site.key,
        "endpoint": site.auth_url.removesuffix("/auth/v1.0"),
        "region": "us-east-1",
        # A bucket that one has already may be made again.
        "use_already_exists": "true",
    }
    return _tests_of(site, "s3", options)


def _tests_of(site: Site, backend: str, options: dict[str, str]) -> Outcome:
    """The tests of a backend, run in rclone's own module."""
    go = site.find("go", "golang")
    outcome = Outcome(f"rclone's backend/{backend} tests", VERSION)
    # Modules and what is built of them are shared with whoever else builds here.
    found = site.run(go, "env", "-json", "GOPATH", "GOCACHE", HOME=str(Path.home()))
    caches = {name: str(value) for name, value in json.loads(found.stdout).items()}
    done = site.run(go, "mod", "download", "-json", f"{_MODULE}@{VERSION}", timeout_s=900, **caches)
    if done.returncode:
        raise Missing(f"its module cannot be had: {(done.stderr or done.stdout)[-200:]}")
    folder = site.folder / f"rclone-{backend}-tests"
    shutil.copytree(json.loads(done.stdout)["Dir"], folder)
    for directory in (folder, *folder.rglob("*/")):
        directory.chmod(0o755)
    config = site.folder / f"rclone-{backend}.conf"
    # A name that begins with Test makes rclone start a server of its own.
    config.write_text("[Ours]\n" + "".join(f"{name} = {value}\n" for name, value in options.items()))
    words = ("test", "-json", "-count=1", "-timeout=20m", f"./backend/{backend}", "-remote", "Ours:")
    done = site.run(go, "-C", folder, *words, timeout_s=1500, RCLONE_CONFIG=str(config), **caches)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    results = {event["Test"]: event["Action"] for event in events if event.get("Test")}
    if not results:
        raise Missing(f"the tests cannot be built: {(done.stderr or done.stdout)[-300:]}")
    for name, action in results.items():
        # What skips itself is not counted; a test with parts is told by its parts.
        if action in ("pass", "fail") and not any(other.startswith(f"{name}/") for other in results):
            outcome.check(name, action == "pass")
    return outcome


def sync(site: Site, count: int = 10_000) -> Outcome:
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
