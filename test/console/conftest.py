"""A cluster with the console, Chromium, and axe-core."""

import os
import shutil
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from swift.aio.users import create_users
from test.support.chromium import AXE, install_packages, running_chromium
from test.support.cluster import LiveCluster

KEY = "operator-key"
OPTIONS = """[filter:audit_log]
use = egg:swift#audit_log
path = {log}

[filter:console]
use = egg:swift#console
audit_log = {log}

[filter:swiftauth]
use = egg:swift#swiftauth
stale_seconds = 1
"""
#: With this variable the pictures of the handbook are made again.
PICTURES = "SWIFT_CONSOLE_PICTURES"
IMAGES = Path(__file__).parents[2] / "doc" / "howto" / "images"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    live = LiveCluster(
        folder / "data",
        nodes=3,
        rest_s=LiveCluster.AT_REST_S,
        places={"audit_log": "cache"},
        options=OPTIONS.format(log=folder / "audit.log"),
        tempauth=False,
        key=KEY,
    )
    try:
        live.start()
        create_users(live.plan)
        yield live
    finally:
        live.stop()


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm for axe-core")
    folder = tmp_path_factory.mktemp("axe")
    install_packages(folder, AXE)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def chromium():
    """A browser, gone when tests of other modules run: a thread can have one Playwright at a time."""
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def visit(cluster, chromium):
    """Return a function that opens a page of a person who has logged in, in a browser of its own."""
    contexts = []

    def open_page(user="test:tester", key=KEY, **options):
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: note_violation(page, message.text))
        page.goto(f"{cluster.plan.url}/console")
        if user:
            page.fill("[name=user]", user)
            page.fill("[name=key]", key)
            page.click("main button")
            page.wait_for_selector("header .user")
        return page

    yield open_page
    problems = [problem for context in contexts for page in context.pages for problem in page.problems]
    for context in contexts:
        context.close()
    assert not problems


def note_violation(page, text):
    """Keep what the browser refused because of the content policy."""
    if "Content Security Policy" in text:
        page.problems.append(text)


@pytest.fixture
def s3(cluster):
    """A client of S3 with the operator's key."""
    return s3_client(cluster)


def s3_client(cluster, access_key="test:tester", secret=KEY):
    return boto3.client(
        "s3",
        "us-east-1",
        endpoint_url=cluster.plan.url,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        config=Config(retries={"max_attempts": 0}),
    )


@pytest.fixture
def picture():
    """Return a function that makes a picture of the handbook, when pictures are wanted."""

    def make(page, name):
        if os.environ.get(PICTURES):
            page.screenshot(path=IMAGES / f"console-{name}.png")

    return make
