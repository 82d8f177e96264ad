"""An erasure coded upload: each node gets its own archive, and nobody an end that is not one."""

from __future__ import annotations

import json
import os
from hashlib import md5
from types import SimpleNamespace

import pytest

from swift.http import environkeys, fields
from swift.http.body import ClientDisconnected
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.policy.policy import ErasureCode, Policy
from swift.proxy.obj.commit.targets import UploadTarget
from swift.proxy.obj.scheme import ETAG, PREFIX, THREAD_BYTES, Schemes
from swift.proxy.obj.write.ec import OVERRIDE, ArchiveCoder, assign_indexes
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from swift.wire import etagtrailer
from test.support.daemons import make_node
from test.support.filters import PiecedBody
from test.support.object_servers import StubCluster, StubNode

SETTINGS = SimpleNamespace(client_chunk_size=65536, upload_memory=0)
CONTEXT = SimpleNamespace(
    limits=SimpleNamespace(max_file_size=1 << 20),
    settings=SETTINGS,
    planner=lambda _index: SimpleNamespace(settings=SETTINGS),
    telemetry=Telemetry(silent_log()),
)
SCHEMES = Schemes(CONTEXT)
SMALL = Policy(1, "ec21", ec=ErasureCode("liberasurecode_rs_vand", 2, 1, 1000))
LARGE = Policy(2, "large", ec=ErasureCode("liberasurecode_rs_vand", 2, 1, THREAD_BYTES))
NEED = 3


class Uploading:
    """An upload to three nodes."""

    def __init__(self, body, *, policy=SMALL, headers=None, footers=None, talks=None, believers=False):
        env = {} if footers is None else {environkeys.UPDATE_FOOTERS: lambda given: given.update(footers)}
        self.scheme = SCHEMES.for_policy(policy)
        self.request = Request("PUT", "/v1/a/c/o", headers or {}, body, env=env)
        self.talks = talks or [StubNode(), StubNode(), StubNode()]
        for talk in self.talks if believers else ():
            talk.continue_headers = {etagtrailer.OFFER: etagtrailer.CRC32}
        self.sinks = [
            UploadTarget(make_node(n), talk, {}, StubCluster()) for n, talk in enumerate(self.talks)
        ]
        coder, target = ArchiveCoder(CONTEXT, SCHEMES), SimpleNamespace(policy=policy)
        self.documents = coder.framing(self.request, is_conditional=False)
        self.attempts = [{"etag": "e"} for _ in self.talks]
        coder.frame(self.attempts, target, self.documents, body.length)
        self.upload = coder.start(self.request, target, self.documents, self.sinks, NEED)

    def send(self):
        self.upload.send()
        return self

    def refused(self):
        with pytest.raises(HTTPError) as told:
            self.send()
        return told.value.response.status

    def archive(self, number):
        """What a node got: its archive, and the footers."""
        sent = b"".join(self.talks[number].sent)
        mark = b"\r\n" + self.documents.opening.partition(b"\r\n")[0]
        assert sent.startswith(self.documents.opening)
        archive, _, rest = sent[len(self.documents.opening) :].partition(mark)
        return archive, json.loads(rest.partition(b"\r\n\r\n")[2].partition(b"\r\n")[0])

    def decoded(self, *numbers):
        """The object from the archives of these nodes."""
        archives = [self.archive(number)[0] for number in numbers]
        size, data = self.scheme.geometry.fragment_size, b""
        for at in range(0, len(archives[0]), size):
            data += self.scheme.codec.decode([archive[at : at + size] for archive in archives])
        return data

    @property
    def ended(self):
        """How many nodes were told of an end."""
        return sum(
            talk.trailers != "none" or b"object metadata" in b"".join(talk.sent) for talk in self.talks
        )


SIZES = [0, 1, 999, 1000, 1001, 2000, 2500]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [7, 1000, 65536])
def test_any_two_of_three_archives_are_the_object(size, piece):
    body = os.urandom(size)
    cut = [body[at : at + piece] for at in range(0, size, piece)]
    sent = Uploading(PiecedBody(*cut, length=size)).send()
    for pair in ((0, 1), (0, 2), (1, 2)):
        assert sent.decoded(*pair) == body
    assert (sent.upload.size, sent.upload.etag) == (size, md5(body).hexdigest())


@pytest.mark.parametrize("excess", [-1, 0, 1, THREAD_BYTES, THREAD_BYTES + 5, 3 * THREAD_BYTES])
def test_segments_that_are_coded_in_threads_stay_in_order(excess):
    body = os.urandom(2 * THREAD_BYTES + excess)
    assert Uploading(PiecedBody(body), policy=LARGE).send().decoded(0, 2) == body


@pytest.mark.parametrize("size", SIZES)
def test_nodes_are_told_beforehand_how_long_their_archive_becomes(size):
    sent = Uploading(PiecedBody(b"x" * size, length=size)).send()
    announced = {headers[fields.BACKEND_OBJ_CONTENT_LENGTH] for headers in sent.attempts}
    assert announced == {str(len(sent.archive(n)[0])) for n in range(3)}


def test_archives_say_whose_parts_they_are_and_what_the_listing_shows():
    body = os.urandom(1500)
    sent = Uploading(PiecedBody(body), footers={"X-Object-Meta-A": "1", PREFIX + "Evil": "x"}).send()
    for number in range(3):
        archive, footers = sent.archive(number)
        told = {name.lower(): value for name, value in footers.items()}
        assert told["etag"] == md5(archive).hexdigest()
        assert told[PREFIX + "frag-index"] == str(number)
        assert told[ETAG] == told[OVERRIDE + "etag"] == md5(body).hexdigest()
        assert told[PREFIX + "content-length"] == told[OVERRIDE + "size"] == "1500"
        assert told["x-object-meta-a"] == "1"
        assert PREFIX + "evil" not in told, "what archives say of themselves is not for filters"


def test_who_believes_our_md5_gets_what_to_compare_it_with():
    for believers in (False, True):
        footers = Uploading(PiecedBody(b"x" * 5000), believers=believers).send().archive(1)[1]
        assert (etagtrailer.SUMS.lower() in {name.lower() for name in footers}) is believers


def test_a_client_s_etag_is_of_the_object_and_never_of_an_archive():
    sent = Uploading(PiecedBody(b"hello"), headers={"etag": f'"{md5(b"hello").hexdigest()}"'}).send()
    assert all("etag" not in headers for headers in sent.attempts)


@pytest.mark.parametrize(
    ("headers", "footers"),
    [
        ({"etag": md5(b"other").hexdigest()}, None),
        ({"etag": "nonsense"}, {}),
        ({"etag": md5(b"hello").hexdigest()}, {"etag": md5(b"other").hexdigest()}),
    ],
)
def test_a_body_that_is_not_what_was_meant_is_422_and_ends_nowhere(headers, footers):
    sent = Uploading(PiecedBody(b"hello"), headers=headers, footers=footers)
    assert sent.refused() == 422
    assert sent.ended == 0


def test_what_a_filter_made_of_the_body_counts_not_what_the_client_sent():
    headers, footers = {"etag": md5(b"plain").hexdigest()}, {"Etag": md5(b"hello").hexdigest()}
    assert Uploading(PiecedBody(b"hello"), headers=headers, footers=footers).send().ended == 3


@pytest.mark.parametrize(("excess", "refused"), [(0, False), (1, True)])
def test_a_body_may_be_as_large_as_allowed_and_no_larger(excess, refused):
    sent = Uploading(PiecedBody(b"x" * ((1 << 20) + excess)), policy=LARGE)
    if refused:
        assert (sent.refused(), sent.ended) == (413, 0)
    else:
        assert sent.send().ended == 3


@pytest.mark.parametrize("policy", [SMALL, LARGE])
@pytest.mark.parametrize("size", [10, 300_000])
def test_a_client_that_vanishes_ends_the_upload_nowhere(policy, size):
    sent = Uploading(PiecedBody(b"x" * size, ClientDisconnected("gone")), policy=policy)
    with pytest.raises(ClientDisconnected):
        sent.send()
    assert sent.ended == 0


def test_too_few_nodes_are_503_before_and_during_the_upload():
    with pytest.raises(HTTPError) as told:
        Uploading(PiecedBody(b"x"), talks=[StubNode(), StubNode()])
    assert told.value.response.status == 503
    talks = [StubNode(), StubNode(fails=("send",)), StubNode()]
    body = PiecedBody(*[b"x" * 1000] * 5)
    sent = Uploading(body, talks=talks)
    assert (sent.refused(), sent.ended) == (503, 0)
    assert body.received < 5000, "no more is read from the client"


@pytest.mark.parametrize(
    ("indexes", "fragments", "copies", "assigned"),
    [
        ((0, 1, 2), 3, 1, [0, 1, 2]),
        ((2, 0, 1), 3, 1, [2, 0, 1]),
        ((0, None, 2), 3, 1, [0, 1, 2]),
        ((None, None, None), 3, 1, [0, 1, 2]),
        ((1, None, None, None), 3, 1, [1, 0, 2, 0]),
        ((0, 1, 2, 3, 4, 5), 3, 2, [0, 1, 2, 0, 1, 2]),
        ((0, None, 2, 3, None, None), 3, 2, [0, 1, 2, 0, 1, 2]),
        ((0, 0, None), 3, 1, [0, 0, 1]),
        ((), 3, 1, []),
    ],
)
def test_every_node_gets_the_archive_of_its_place_and_handoffs_what_is_missing(
    indexes, fragments, copies, assigned
):
    sinks = [SimpleNamespace(node=SimpleNamespace(index=index), index=-1) for index in indexes]
    assign_indexes(sinks, fragments, copies)
    assert [sink.index for sink in sinks] == assigned
