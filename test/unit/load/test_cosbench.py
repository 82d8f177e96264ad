"""Workloads of COSBench become workload files, or are refused with the line of what cannot be expressed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.load.cosbench import FILE_MAX, convert_workload
from swift.load.samples import Constant, Uniform, Weighted
from swift.load.workload import BadWorkload, parse

SWIFT = """<?xml version="1.0" encoding="UTF-8"?>
<workload name="mixed" description="reads and &quot;writes&quot;">
  <auth type="swauth" config="username=test:tester;password=testing;auth_url=http://192.0.2.1:8080/auth/v1.0"/>
  <storage type="swift" config="timeout=100000"/>
  <workflow>
    <workstage name="init">
      <work type="init" workers="1" config="containers=r(1,4)"/>
    </workstage>
    <workstage name="prepare">
      <work type="prepare" workers="2" config="containers=r(1,4);objects=r(1,50);sizes=c(64)KB"/>
    </workstage>
    <workstage name="main" closuredelay="0">
      <work name="main" workers="8" runtime="300" rampup="100" interval="5">
        <operation type="read" ratio="80" config="containers=u(1,4);objects=u(1,50)"/>
        <operation type="write" ratio="15" config="containers=u(1,4);objects=u(51,100);sizes=u(1,5)MB"/>
        <operation type="delete" ratio="5" config="containers=u(1,4);objects=u(51,100)"/>
      </work>
    </workstage>
    <workstage name="cleanup">
      <work type="cleanup" workers="1" config="containers=r(1,4);objects=r(1,100)"/>
    </workstage>
    <workstage name="dispose">
      <work type="dispose" workers="1" config="containers=r(1,4)"/>
    </workstage>
  </workflow>
</workload>
"""
S3 = """<workload name="two gateways">
  <workflow>
    <workstage name="i"><work type="init" workers="1" config="cprefix=s3b;containers=r(1,2)"/></workstage>
    <workstage name="w">
      <work name="a" workers="8" division="object" totalOps="100">
        <storage type="s3" config="accesskey=a;secretkey=b;endpoint=http://192.0.2.1/"/>
        <operation type="write" ratio="100"
          config="cprefix=s3b;containers=u(1,2);objects=s(1,1000);sizes=h(1|64|10,64|512|20)KB"/>
      </work>
      <work name="b" workers="8" division="object" totalOps="100">
        <storage type="s3" config="accesskey=a;secretkey=b;endpoint=http://192.0.2.2/"/>
        <operation type="write" ratio="100"
          config="cprefix=s3b;containers=u(1,2);objects=s(1,1000);sizes=h(1|64|10,64|512|20)KB"/>
      </work>
    </workstage>
  </workflow>
</workload>
"""


def workload_of(text):
    return parse(convert_workload(text.encode(), "w.xml"), "w.xml")


def test_a_mix_of_reads_new_objects_and_their_deletion():
    found = workload_of(SWIFT)
    assert (found.name, found.description) == ("mixed", 'reads and "writes"')
    assert (found.objects.containers, found.objects.per_container) == (4, 50)
    assert found.objects.sizes == Constant(64000)
    assert [phase.kind for phase in found.phases] == ["init", "prepare", "main", "cleanup"]
    main = found.phases[2]
    assert (main.clients, main.seconds, main.rampup, main.names) == (8, 300.0, 100.0, "fresh")
    assert main.mix == (("get", 80.0), ("put", 15.0), ("delete", 5.0))
    assert main.sizes == Uniform(10**6, 5 * 10**6)


def test_equal_works_of_a_stage_are_one_with_the_workers_of_all():
    main = workload_of(S3).phases[1]
    assert (main.clients, main.operations, main.seconds) == (16, 200, None)
    assert main.sizes == Weighted(((Uniform(1000, 64000), 10.0), (Uniform(64000, 512000), 20.0)))


def test_reading_a_part_of_the_objects_is_a_working_set():
    text = SWIFT.replace(
        'ratio="80" config="containers=u(1,4);objects=u(1,50)', 'ratio="80" config="objects=u(1,10)'
    )
    assert workload_of(text).phases[2].working_set == 0.2


def test_hash_checks_are_verification():
    assert workload_of(SWIFT.replace("objects=u(1,50)", "objects=u(1,50);hashCheck=true")).phases[2].verify


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('type="read"', 'type="filewrite"', 14, "operation 'filewrite' cannot be expressed"),
        ('type="delete"', 'type="read"', 16, "an operation twice"),
        ("objects=u(1,50)", "objects=u(1,60)", 14, "it reads objects that were not prepared"),
        ("objects=u(1,50)", "objects=u(2,50)", 14, "begins with the first"),
        ("objects=u(1,50)", "objects=z(1,50)", 14, "cannot be expressed"),
        ("objects=u(1,50)", "objects=u(1,50", 14, "is written like"),
        ("objects=u(51,100);sizes", "objects=u(50,100);sizes", 15, "it writes either"),
        ("sizes=u(1,5)MB", "sizes=u(5,1)MB", 15, "no size lies between"),
        ("sizes=u(1,5)MB", "sizes=c(1)XB", 15, "sizes are written like"),
        (";sizes=u(1,5)MB", "", 15, "a write needs objects and sizes"),
        (
            '"containers=u(1,4);objects=u(51,100)"/>',
            '"objects=u(1,9)"/>',
            16,
            "only objects that the phase wrote",
        ),
        ("containers=u(1,4);objects=u(1,50)", "containers=u(1,2);objects=u(1,50)", 14, "all of them"),
        ('rampup="100"', 'rampdown="100"', 13, "rampdown cannot be expressed"),
        ('rampup="100"', 'totalBytes="1"', 13, "totalBytes cannot be expressed"),
        ('rampup="100"', 'trigger="x"', 13, "attribute trigger is not known"),
        ('runtime="300"', 'runtime="-1"', 13, "runtime must be a whole number"),
        ('runtime="300"', "", 13, "it ends after runtime or totalOps"),
        ('type="init" workers="1"', 'type="delay"', 7, "a delay cannot be expressed"),
        ("sizes=c(64)KB", "sizes=c(64)KB;colour=red", 10, "colour in config"),
        ('<workstage name="init">', '<workstage name="init"><work type="prepare"/>', 7, "that differ"),
        ("</workflow>", "<workstage/></workflow>", 25, "there is no <work>"),
    ],
)
def test_what_cannot_be_expressed_is_refused_with_its_line(old, new, line, message):
    assert old in SWIFT
    with pytest.raises(BadWorkload) as error:
        workload_of(SWIFT.replace(old, new, 1))
    assert str(error.value).startswith(f"w.xml:{line}: ") and message in str(error.value), error.value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<workload>",
        b"<other/>",
        b"<workload/>",
        b"<workload><workflow/></workload>",
        b'<!DOCTYPE workload [<!ENTITY a SYSTEM "file:///etc/passwd">]><workload>&a;</workload>',
        b"<workload>" + b" " * FILE_MAX + b"</workload>",
    ],
)
def test_what_is_no_workload_is_refused(data):
    with pytest.raises(BadWorkload, match=r"^w\.xml"):
        convert_workload(data, "w.xml")


@given(st.data())
def test_whatever_is_in_a_config_is_understood_or_refused(data):
    old = data.draw(st.sampled_from(["r(1,4)", "u(1,50)", "c(64)KB", "u(1,5)MB", "300", "u(51,100)"]))
    new = data.draw(st.text("rucsh(),|0123456789KMB;=\u00e4 ", max_size=14))
    try:
        workload_of(SWIFT.replace(old, new, 1))
    except BadWorkload as error:
        assert str(error).startswith("w.xml")
