"""XML of the API in both directions from declared schemas; no entity is ever expanded (middleware.md §21).

    TAGGING = Group("Tagging", Group("TagSet", RepeatedGroup("Tag", Text("Key"), Text("Value"))))
    parse(TAGGING, body)  ->  {"TagSet": {"Tag": [{"Key": "a", "Value": "b"}]}}
    render(TAGGING, value) -> bytes

A value is text, a dictionary by child names, or for what may come several times a list. Documents with a
DOCTYPE are refused before anything in them is looked at (CVE-2022-47950 and the like).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Union

from lxml import etree

from swift.s3.core.errors import S3Error

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
DECLARATION = b"<?xml version='1.0' encoding='UTF-8'?>\n"


class RenderedElement(str):
    """XML of an element that is rendered already."""


#: Content of an element.
Value = Union[str, int, "Mapping[str, Value]", "Sequence[Value]"]
Tree = dict[str, "Parsed"]
Parsed = Union[str, Tree, "list[Parsed]"]


class Element:
    """An element of a schema: its name, its children, and how often it may occur."""

    __slots__ = ("name", "children", "required", "is_repeated", "is_attribute")

    def __init__(
        self,
        name: str,
        children: tuple[Element, ...] | None = None,
        *,
        required: bool = False,
        is_repeated: bool = False,
        is_attribute: bool = False,
    ):
        self.name = name
        #: None: text.
        self.children = None if children is None else {child.name: child for child in children}
        self.required = required
        self.is_repeated = is_repeated
        #: The attribute ``xsi:type`` instead of an element.
        self.is_attribute = is_attribute


def Text(name: str, *, required: bool = False) -> Element:  # noqa: N802
    """Return the schema of an element with text."""
    return Element(name, required=required)


def texts(names: str) -> tuple[Element, ...]:
    """Return the schemas of elements with text; their names have blanks between them."""
    return tuple(map(Text, names.split()))


def RepeatedText(name: str, *, required: bool = False) -> Element:  # noqa: N802
    """Return the schema of an element with text that may occur several times."""
    return Element(name, required=required, is_repeated=True)


def Group(name: str, *children: Element, required: bool = False) -> Element:  # noqa: N802
    """Return the schema of an element with child elements."""
    return Element(name, children, required=required)


def RepeatedGroup(name: str, *children: Element, required: bool = False) -> Element:  # noqa: N802
    """Return the schema of an element with children that may occur several times; ``required``: at least
    once.
    """
    return Element(name, children, required=required, is_repeated=True)


def TypeAttribute(name: str = "type") -> Element:  # noqa: N802
    """Return the schema of the attribute ``xsi:type``."""
    return Element(name, is_attribute=True)


# --- reading ------------------------------------------------------------------------------------------


def parse(schema: Element, body: bytes, *, error: str = "MalformedXML") -> Tree:
    """Return the content of a document of this schema; raise ``S3Error`` with the code ``error``."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise S3Error(error)
    if root is None or root.getroottree().docinfo.doctype or _local_name(root) != schema.name:
        raise S3Error(error)
    value = _parse_element(schema, root, error)
    return value if isinstance(value, dict) else {}


def _local_name(element: etree._Element) -> str | None:
    tag = element.tag
    if not isinstance(tag, str):
        return None
    space, brace, name = tag.rpartition("}")
    return name if not brace or space[1:] == NAMESPACE else None


def _parse_element(schema: Element, element: etree._Element, error: str) -> Parsed:
    if schema.children is None:
        if len(element):
            raise S3Error(error)
        return element.text or ""
    found: Tree = {}
    kind = element.get(f"{{{XSI}}}type")
    if kind is not None and "type" in schema.children:
        found["type"] = kind
    for child in element:
        name = _local_name(child)
        node = schema.children.get(name) if name is not None else None
        if name is None or node is None or node.is_attribute:
            raise S3Error(error)
        value = _parse_element(node, child, error)
        if node.is_repeated:
            values = found.setdefault(name, [])
            assert isinstance(values, list), "what may come often is a list"
            values.append(value)
        elif name in found:
            raise S3Error(error)
        else:
            found[name] = value
    for name, node in schema.children.items():
        if node.required and name not in found:
            raise S3Error(error)
    return found


def text_of(value: Parsed | None) -> str:
    """Return the text of an element; empty if it is missing."""
    return value.strip() if isinstance(value, str) else ""


def word_of(tree: Tree, name: str, words: Sequence[str]) -> str:
    """Return the text of a child element that is one of some words; raise ``S3Error`` for others."""
    text = text_of(tree.get(name))
    if text not in words:
        raise S3Error("MalformedXML")
    return text


def tree_of(value: Parsed | None) -> Tree:
    """Return the children of an element; empty if it is missing."""
    return value if isinstance(value, dict) else {}


def trees_of(value: Parsed | None) -> list[Tree]:
    """Return the children of each occurrence of a repeated element."""
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


# --- writing ------------------------------------------------------------------------------------------

#: Characters that XML 1.0 cannot carry, not as references either (section 2.2).
_INVALID_CHARACTERS = r"\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff"
_has_special_characters = re.compile(rf"[&<>\r{_INVALID_CHARACTERS}]").search
_replace_special_characters = re.compile(rf"[&<>\r{_INVALID_CHARACTERS}]").sub
_CHARACTER_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xd;"}


def _character_reference(match: re.Match[str]) -> str:
    return _CHARACTER_REFERENCES.get(match[0], "\ufffd")


def escape(text: str) -> str:
    """Return text escaped as the content of an element; characters that XML forbids become U+FFFD.

    S3 writes character references instead, and XML parsers reject the whole response. Clients that need
    such keys request ``encoding-type=url``.
    """
    return _replace_special_characters(_character_reference, text) if _has_special_characters(text) else text


def escape_all(texts: Sequence[str]) -> Sequence[str]:
    """Return texts escaped like ``escape``; most lists have nothing to escape."""
    return [escape(text) for text in texts] if _has_special_characters("".join(texts)) else texts


def render(schema: Element, value: Value, *, namespace: bool = True, declaration: bool = True) -> bytes:
    """Return the XML document of a value; children in the order of the schema, absent ones left out."""
    pieces: list[str] = []
    space = f' xmlns="{NAMESPACE}"' if namespace else ""
    _render_element(pieces, schema, value, space)
    body = "".join(pieces).encode("utf-8")
    return DECLARATION + body if declaration else body


def _render_element(pieces: list[str], schema: Element, value: Value, attributes: str = "") -> None:
    name = schema.name
    if isinstance(value, RenderedElement):
        pieces.append(value)
        return
    if schema.children is None:
        text = value if isinstance(value, str) else str(value)
        if text:
            pieces.append(f"<{name}{attributes}>{escape(text)}</{name}>")
        else:
            pieces.append(f"<{name}{attributes}/>")
        return
    assert isinstance(value, Mapping), f"{name} has children"
    if "type" in schema.children and "type" in value:
        attributes += f' xmlns:xsi="{XSI}" xsi:type="{value["type"]}"'
    start = len(pieces)
    pieces.append("")
    for child_name, child in schema.children.items():
        if child.is_attribute:
            continue
        if child.is_repeated:
            items = value.get(child_name, ())
            assert isinstance(items, Sequence), f"{child_name} may come often"
            for item in items:
                _render_element(pieces, child, item)
        else:
            inner = value.get(child_name)
            if inner is not None:
                _render_element(pieces, child, inner)
    if len(pieces) == start + 1:
        pieces[start] = f"<{name}{attributes}/>"
        return
    pieces[start] = f"<{name}{attributes}>"
    pieces.append(f"</{name}>")
