"""Links of the documentation lead somewhere, and tests paste every page of the handbook."""

import re
from functools import cache
from pathlib import Path

from test.support.handbook import CONTENTS, blocks_of, pages

ROOT = Path(__file__).parents[2]
DOC = ROOT / "doc"
PAGES = sorted([*ROOT.glob("*.md"), *DOC.rglob("*.md")])
#: Folders in which tests paste each page.
PASTED = ("howto", "tutorial")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*([^)\s]+)(?:\s+\"[^\"]*\")?\s*\)")


#: Folders of the checkout that pages name files of.
FOLDERS = ("swift", "test", "tools", "doc", "etc", "bin", "debian")
FILE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+\.\w+)`")


def prose_of(page):
    """Return the text of a page without blocks and words in backticks."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


@cache
def anchors_of(page):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        words = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
        found.add(words.strip().replace(" ", "-"))
    return found


def broken_links(page):
    """Return the links of a page that lead to no file, or to no heading of it."""
    broken = []
    for target in LINK.findall(prose_of(page)):
        path, _, anchor = target.partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors_of(file)):
            broken.append(target)
    return broken


def test_no_link_is_broken():
    broken = {str(page.relative_to(ROOT)): links for page in PAGES if (links := broken_links(page))}
    assert not broken


def test_a_link_without_a_file_or_heading_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One two\n\n[a](page.md#one-two) [b](page.md#three) [c](other.md) `[d](no.md)`\n")
    assert broken_links(page) == ["page.md#three", "other.md"]


def test_pages_of_the_site_link_within_it():
    # What lies outside of doc is not on the site.
    outside = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in DOC.rglob("*.md")
        for target in LINK.findall(prose_of(page))
        if "://" not in target and not (page.parent / target.partition("#")[0]).resolve().is_relative_to(DOC)
    ]
    assert not outside


def test_every_page_of_the_handbook_is_pasted_by_a_test():
    written = {str(page.relative_to(DOC)) for folder in PASTED for page in (DOC / folder).glob("*.md")}
    assert written - set(CONTENTS) == pages()


def test_every_page_of_the_handbook_has_commands():
    assert [
        page for page in pages() if not any(b.language == "sh" for b in blocks_of((DOC / page).read_text()))
    ] == []


def test_blocks_say_their_language():
    nameless = [
        f"{page.relative_to(ROOT)}:{block.line}"
        for folder in PASTED
        for page in (DOC / folder).glob("*.md")
        for block in blocks_of(page.read_text())
        if not block.language and not block.words.startswith("{")
    ]
    assert not nameless


def test_commands_on_other_hosts_leave_the_rest_of_a_pasted_block_alone():
    """ssh reads the input of its shell: the lines below it."""
    swallowing = [
        f"{page.relative_to(ROOT)}:{block.line}: {line}"
        for folder in PASTED
        for page in (DOC / folder).glob("*.md")
        for block in blocks_of(page.read_text())
        for line in block.text.splitlines()
        if re.search(r"\bssh (?!-n )", line) and " < " not in line
    ]
    assert not swallowing


def test_files_that_pages_name_exist():
    named = {(page, name) for page in PAGES for name in FILE.findall(page.read_text())}
    assert len(named) > 50
    assert not sorted(
        f"{page.relative_to(ROOT)}: {name}" for page, name in named if not (ROOT / name).exists()
    )
