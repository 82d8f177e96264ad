"""Errors, log lines, reasons for an order and helps are plain sentences of bounded length (LANGUAGE)."""

import ast
import re

from test.support.sources import MODULES, ROOT, nodes_of

#: Machines neither speak nor hear, and are no persons; values are written, not said.
AVOIDED = re.compile(
    r"\b(told|tells?|said|says?|heard|hears?|asks|asked|who|whom|whoever|nobody|somebody|everybody|wish(?:es|ed)?"
    r"|knows|knew|believes?d?|speaks|understands|understood|is about|are about|must stand|silent)\b",
    re.IGNORECASE,
)
LOGS = frozenset(("error", "warning", "info", "debug", "critical", "exception", "notice"))
WORDS_MAX = 25
#: Texts that S3, OpenStack Swift or RFCs have.
RECORDED = re.compile(r"^This copy request is illegal|^X-Amz-Expires must be less than a week")


def text_of(node):
    """Return a text with its values in braces; None if the node is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            each.value if isinstance(each, ast.Constant) else f"{{{ast.unparse(each.value)}}}"
            for each in node.values
        )
    return None


def messages_of(module):
    """Yield (line, kind, text) of each text that users read: raise, log, order, help."""
    for node in nodes_of(module):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _texts("raise", node.exc.args)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in LOGS or name.lstrip("_").startswith("log_"):
                yield from _texts("log", node.args)
            for keyword in node.keywords:
                if keyword.arg in ("left_of", "right_of"):
                    yield from _texts(
                        "order", [n for n in ast.walk(keyword.value) if isinstance(n, ast.Constant)]
                    )
                elif keyword.arg in ("help", "description"):
                    yield from _texts("help", [keyword.value])


def _texts(kind, nodes):
    for node in nodes:
        text = text_of(node)
        if text and " " in text:
            yield node.lineno, kind, text


def flaws_of(kind, text):
    """Return what is wrong with a message."""
    bare = re.sub(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", " x ", text)
    if RECORDED.match(text):
        return ""
    if found := AVOIDED.search(bare):
        return f"{found[0]!r} is no word for a machine"
    longest = max(len(sentence.split()) for sentence in re.split(r"(?<=[.!?;:])\s+|\n", bare))
    if kind != "help" and longest > WORDS_MAX:
        return f"a sentence of {longest} words"
    return ""


def test_messages_are_plain_sentences():
    found = [
        f"{module.relative_to(ROOT)}:{line}: {flaw}: {text}"
        for module in MODULES
        for line, kind, text in messages_of(module)
        if (flaw := flaws_of(kind, text))
    ]
    assert not found, "\n".join(found)


def test_log_lines_name_what_happened():
    """A line of only variables belongs to a function whose callers pass the sentence, or to a stream."""
    found = []
    for module in MODULES:
        if module.name == "streams.py":
            continue
        helpers = {
            id(each)
            for node in nodes_of(module)
            if isinstance(node, ast.FunctionDef)
            and node.name.lstrip("_").startswith(("log_", "notice", "logged_"))
            for each in ast.walk(node)
        }
        for node in nodes_of(module):
            if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") in LOGS and node.args):
                continue
            text = text_of(node.args[0])
            if text is not None and id(node) not in helpers:
                words = re.findall(r"[A-Za-z]{3,}", re.sub(r"\{[^{}]*\}|ERROR|SSYNC", " ", text))
                if not words:
                    found.append(f"{module.relative_to(ROOT)}:{node.lineno}: {text}")
    assert not found, "\n".join(found)


def test_a_flaw_is_found():
    assert flaws_of("raise", "the server says nothing")
    assert flaws_of("log", "too " + "long " * WORDS_MAX)
    assert not flaws_of("log", "unresponsive for {seconds} s; trying other replicas first")
