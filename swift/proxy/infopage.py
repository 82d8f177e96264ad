"""``/info`` as a page for people; pure."""

from __future__ import annotations

from html import escape

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>What this cluster can do</title>
<style>
body {font-family: sans-serif; margin: 2em; max-width: 60em;}
table {border-collapse: collapse;}
th, td {text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0;}
</style>
</head>
<body>
<h1>What this cluster can do</h1>
"""


def info_page(facts: dict[str, object]) -> bytes:
    """The facts of all sections, each a table; everything in it is text."""
    parts = [_HEAD]
    for section in sorted(facts):
        found = facts[section]
        values = found if isinstance(found, dict) else {"": found}
        parts.append(f"<h2>{escape(section)}</h2>\n<table>\n")
        for name in sorted(values):
            parts.append(f"<tr><th>{escape(name)}</th><td>{escape(_text(values[name]))}</td></tr>\n")
        parts.append("</table>\n")
    parts.append("</body>\n</html>\n")
    return "".join(parts).encode()


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(inner)}" for name, inner in value.items()) or "none"
    return str(value)
