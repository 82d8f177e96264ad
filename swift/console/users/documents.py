"""The XML and JSON documents of a bucket's settings: reading them for people, and changing single rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from lxml import etree

from swift.console.core.web import BadForm
from swift.console.core.xml import parse_xml

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_DIGEST_CHARACTERS = 32


class RuleRow(NamedTuple):
    """A rule of a document as people read it: the paths of its elements and their texts."""

    facts: tuple[tuple[str, str], ...]


def digest_of(document: bytes | None) -> str:
    """Return what a form carries, so that nothing is written over the change of another person."""
    return sha256(document or b"").hexdigest()[:_DIGEST_CHARACTERS]


def parse_document(document: bytes) -> etree._Element:
    """Return the root; raises ``BadForm`` for what is no XML."""
    try:
        return parse_xml(document)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadForm("form.no_xml", reason=error)


def rules_of(document: bytes | None, tag: str) -> list[RuleRow]:
    """Return the rules of a lifecycle or CORS document."""
    if not document:
        return []
    root = parse_document(document)
    return [RuleRow(tuple(_facts(rule, ""))) for rule in root if _name(rule) == tag]


def _facts(element: etree._Element, path: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for child in element:
        name = f"{path} {_name(child)}".strip()
        if len(child):
            found.extend(_facts(child, name))
        else:
            found.append((name, (child.text or "").strip()))
    return found


def _name(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def with_rule(
    document: bytes | None, root_tag: str, rule_tag: str, parts: Sequence[tuple[str, str]]
) -> bytes:
    """Return a document with one more rule; ``parts`` are paths (``Expiration/Days``) and texts."""
    root = parse_document(document) if document else etree.Element(f"{{{NAMESPACE}}}{root_tag}")
    space = etree.QName(root).namespace
    _add_parts(etree.SubElement(root, _qualified(space, rule_tag)), space, parts)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def make_document(root_tag: str, parts: Sequence[tuple[str, str]]) -> bytes:
    """Return a document of elements by their paths."""
    root = etree.Element(f"{{{NAMESPACE}}}{root_tag}")
    _add_parts(root, NAMESPACE, parts)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def _add_parts(parent: etree._Element, space: str | None, parts: Sequence[tuple[str, str]]) -> None:
    for path, text in parts:
        element = parent
        *folders, leaf = path.split("/")
        for folder in folders:
            found = element.find(_qualified(space, folder))
            element = etree.SubElement(element, _qualified(space, folder)) if found is None else found
        try:
            etree.SubElement(element, _qualified(space, leaf)).text = text
        except ValueError:
            raise BadForm("form.control")


def without_rule(document: bytes, rule_tag: str, index: int) -> bytes | None:
    """Return a document without a rule; None if it was the last one."""
    root = parse_document(document)
    rules = [rule for rule in root if _name(rule) == rule_tag]
    if not 0 <= index < len(rules):
        raise BadForm("form.no_rule")
    root.remove(rules[index])
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8") if len(rules) > 1 else None


def _qualified(space: str | None, tag: str) -> str:
    return f"{{{space}}}{tag}" if space else tag


def indented(document: bytes | None) -> str:
    """Return an XML document with a line for each element."""
    if not document:
        return ""
    root = parse_document(document)
    etree.indent(root, "  ")
    text: str = etree.tostring(root, encoding="unicode")
    return text


def indented_json(document: bytes | None) -> str:
    """Return a JSON document in lines; as it is if it is no JSON."""
    if not document:
        return ""
    try:
        return json.dumps(json.loads(document), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return document.decode("utf-8", "replace")
