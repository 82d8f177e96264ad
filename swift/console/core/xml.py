"""XML documents of the S3 API and of forms."""

from __future__ import annotations

from lxml import etree


def parse_xml(document: bytes) -> etree._Element:
    """Return the root of a document; entities are not resolved, nothing is fetched.

    Raises ``etree.XMLSyntaxError`` and ValueError.
    """
    return etree.fromstring(document, etree.XMLParser(resolve_entities=False, no_network=True))
