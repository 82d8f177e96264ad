"""Blocks of pages are found, and their outputs compared."""

import pytest

from test.support.handbook import blocks_of, missing_line

PAGE = """# A page

```sh every node
echo one
```

1. A step:

   ```sh
   echo two
   ```

```output
two
```
"""


def test_blocks_have_their_language_words_text_and_line():
    one, two, output = blocks_of(PAGE)
    assert (one.language, one.words, one.text, one.line) == ("sh", "every node", "echo one\n", 4)
    assert (two.language, two.words, two.text) == ("sh", "", "echo two\n")
    assert (output.language, output.text) == ("output", "two\n")


@pytest.mark.parametrize(
    ("expected", "output", "missing"),
    [
        ("OK", "all is OK now", ""),
        ("one\ntwo", "two\none", "two"),
        ("a ... c", "a b c", ""),
        ("a ... c", "a b\nc", "a ... c"),
        ("a  b", "a b", ""),
    ],
)
def test_lines_of_an_output_must_come_in_order(expected, output, missing):
    assert missing_line(expected, output) == missing
