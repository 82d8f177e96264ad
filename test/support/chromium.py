"""Chromium by Playwright, and axe-core from npm."""

import contextlib
import os
import shutil
import subprocess
from importlib.util import find_spec

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = "axe-core@4"
INSTALL_S = 120
needs_chromium = pytest.mark.skipif(
    not (find_spec("playwright") and CHROMIUM), reason="needs playwright and Chromium"
)


def install_packages(folder, *packages):
    """Install npm packages into a folder; skip where the registry cannot be reached."""
    command = [
        "npm",
        "install",
        "--silent",
        "--no-fund",
        "--no-audit",
        "--ignore-scripts",
        "--prefix",
        folder,
    ]
    try:
        done = subprocess.run(
            [*command, *packages], capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {packages} within {INSTALL_S} s")
    if done.returncode:
        pytest.skip(f"npm cannot install {packages} here: {done.stderr.strip()[-200:]}")


@contextlib.contextmanager
def running_chromium():
    """Yield a browser."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        try:
            yield browser
        finally:
            browser.close()
