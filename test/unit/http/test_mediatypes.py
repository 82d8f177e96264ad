"""Content types of objects whose sender named none."""

import pytest

from swift.http.mediatypes import TypeGuesser


@pytest.fixture
def guesser(tmp_path):
    (tmp_path / "mime.types").write_text("application/x-own own\n# a comment\ntext/other html\n")
    return TypeGuesser(str(tmp_path), system_files=())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text/plain"),
        ("photo.JPG", "image/jpeg"),
        ("a%2Eown", "application/x-own"),
        ("page.html", "text/other"),
        ("noextension", "application/octet-stream"),
        ("", "application/octet-stream"),
        ("a.unheardof", "application/octet-stream"),
        ("%ff%00.txt", "text/plain"),
    ],
)
def test_the_end_of_a_name_tells_its_type(guesser, name, kind):
    assert guesser.guess(name) == kind


def test_without_files_the_language_knows_the_usual_ones(tmp_path):
    assert (
        TypeGuesser(str(tmp_path / "none"), system_files=("/nowhere",)).guess("a.json") == "application/json"
    )
