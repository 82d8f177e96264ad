"""XML in both directions (swift/s3/xml.py)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from swift.s3.api.delete import DELETE_OBJECTS
from swift.s3.core.errors import S3Error
from swift.s3.core.tags import TAGGING
from swift.s3.core.xml import NAMESPACE, parse, render

VALUE = {"TagSet": {"Tag": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": ""}]}}


def refused(body, schema=TAGGING):
    with pytest.raises(S3Error) as caught:
        parse(schema, body)
    assert caught.value.code == "MalformedXML"


def test_a_document_is_read_with_and_without_the_namespace():
    assert parse(TAGGING, render(TAGGING, VALUE)) == VALUE
    assert parse(TAGGING, render(TAGGING, VALUE, namespace=False)) == VALUE


def test_cve_2022_47950_an_entity_never_reads_a_file(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hash_path_suffix")
    for declared in (
        f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]>',
        f'<!DOCTYPE x [<!ENTITY % p SYSTEM "file://{secret}"> %p;]>',
        f'<!DOCTYPE Tagging SYSTEM "file://{secret}">',
        '<!DOCTYPE x [<!ENTITY e "inner">]>',
        "<!DOCTYPE Tagging>",
    ):
        body = f"{declared}<Tagging><TagSet><Tag><Key>k</Key><Value>&e;</Value></Tag></TagSet></Tagging>"
        refused(body.encode())
    plain = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"
    refused(f"<!DOCTYPE Tagging>{plain}".encode())


def test_a_bomb_of_entities_is_refused_unexploded():
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    refused(f"<!DOCTYPE x [{entities}]><Tagging><TagSet>&j;</TagSet></Tagging>".encode())


def test_inclusions_and_deep_nesting_are_refused():
    refused(b'<Tagging xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd"/></Tagging>')
    refused(b"<a>" * 100_000)
    refused(b"<Tagging>" + b"<TagSet>" * 500 + b"</TagSet>" * 500 + b"</Tagging>")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"\xff\xfe",
        b"no xml",
        b"<Other/>",
        b"<Tagging/>",
        b"<Tagging><TagSet/><TagSet/></Tagging>",
        b"<Tagging><TagSet><Tag><Key>k</Key></Tag></TagSet></Tagging>",
        b"<Tagging><TagSet><Tag><Key>k<b/></Key><Value/></Tag></TagSet></Tagging>",
        b"<Tagging><TagSet><Strange/></TagSet></Tagging>",
        b'<x:Tagging xmlns:x="urn:other"><TagSet/></x:Tagging>',
    ],
)
def test_what_is_not_of_the_schema_is_malformed(body):
    refused(body)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_document_or_malformed(body):
    try:
        parse(DELETE_OBJECTS, body)
    except S3Error as error:
        assert error.code == "MalformedXML"


@given(st.text(max_size=60))
def test_any_text_can_be_written(text):
    body = render(TAGGING, {"TagSet": {"Tag": [{"Key": text, "Value": "v"}]}})
    assert body.startswith(b"<?xml version='1.0' encoding='UTF-8'?>\n<Tagging xmlns=")
    assert body.count(b"<Key") == 1
    told = etree.fromstring(body).findtext(f".//{{{NAMESPACE}}}Key") or ""
    assert len(told) == len(text)
    if all(c.isprintable() for c in text):
        assert told == text


@pytest.mark.parametrize("character", ["\x00", "\x01", "\x0b", "\x1f", "\ufffe", "\uffff", "\udcff"])
def test_what_xml_cannot_carry_is_replaced_for_a_parser_refuses_references_to_it_too(character):
    body = render(TAGGING, {"TagSet": {"Tag": [{"Key": f"a{character}b\t\r&<", "Value": ""}]}})
    assert etree.fromstring(body).findtext(f".//{{{NAMESPACE}}}Key") == "a\ufffdb\t\r&<"
