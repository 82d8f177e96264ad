"""What every filter promises (``Filter`` in swift/middleware/filter.py)."""

import io

import pytest

from swift.base.hashing import PathHasher
from swift.base.limits import Limits
from swift.cluster.syncrealms import Realms
from swift.gateway.subrequest import PRE_AUTHED_USER
from swift.http import environkeys
from swift.http.body import BodyTimeout, WholeBody
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.account_quotas import AccountQuotas
from swift.middleware.admission.device import DeviceAdmission
from swift.middleware.admission.filter import Admission
from swift.middleware.admission.settings import AdmissionSettings, DeviceAdmissionSettings
from swift.middleware.backend_ratelimit import BackendRatelimit
from swift.middleware.bulk.filter import Bulk, BulkSettings
from swift.middleware.catch_errors import CatchErrors, CatchErrorsSettings
from swift.middleware.cname_lookup import CnameLookup, CnameLookupSettings
from swift.middleware.container_quotas import ContainerQuotas
from swift.middleware.container_sync import ContainerSyncFilter, ContainerSyncFilterSettings
from swift.middleware.copy import Copy, CopySettings
from swift.middleware.crossdomain import Crossdomain, CrossdomainSettings
from swift.middleware.dlo import Dlo, DloSettings
from swift.middleware.domain_remap import DomainRemap, DomainRemapSettings
from swift.middleware.encryption.filter import Encryption, EncryptionSettings
from swift.middleware.etag_quoter import EtagQuoter, EtagQuoterSettings
from swift.middleware.filter import Filter
from swift.middleware.formpost.filter import FormPost, FormPostSettings
from swift.middleware.gatekeeper import Gatekeeper, GatekeeperSettings
from swift.middleware.healthcheck import Healthcheck, HealthcheckSettings
from swift.middleware.keymaster.derivation import RootSecrets
from swift.middleware.keymaster.filter import Keymaster
from swift.middleware.keystoneauth.filter import Keystoneauth
from swift.middleware.keystoneauth.settings import KeystoneauthSettings
from swift.middleware.list_endpoints import ListEndpoints
from swift.middleware.listing_formats import ListingFormats
from swift.middleware.memcache import Memcache
from swift.middleware.name_check import NameCheck, NameCheckSettings
from swift.middleware.proxy_logging import ProxyLogging, ProxyLoggingSettings
from swift.middleware.ratelimit.filter import Ratelimit, RatelimitSettings
from swift.middleware.ratelimit.rates import SizedRates
from swift.middleware.read_only import ReadOnly, ReadOnlySettings
from swift.middleware.recon.filter import Recon
from swift.middleware.s3api.filter import S3Api
from swift.middleware.s3api.settings import S3Settings
from swift.middleware.s3token.filter import S3Token
from swift.middleware.s3token.keystone import HTTPKeystone
from swift.middleware.s3token.settings import S3TokenSettings
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.staticweb.filter import StaticWeb, StaticWebSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings
from swift.middleware.tempurl.filter import TempURL, TempURLSettings
from swift.middleware.versioned_writes.filter import VersionedWrites
from swift.middleware.versioned_writes.settings import VersionedWritesSettings
from swift.middleware.xprofile import Xprofile, XprofileSettings
from swift.policy.policies import Policies
from swift.policy.policy import Policy
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.checks import every
from test.support.sim import MemoryCache


def told():
    return Telemetry(silent_log())


OURS = CnameLookupSettings(storage_domain=("h",))
FILTERS = {
    "Filter": Filter,
    "CatchErrors": lambda app: CatchErrors(app, CatchErrorsSettings(), silent_log()),
    "Copy": lambda app: Copy(app, CopySettings(), 1 << 30, silent_log()),
    "Dlo": lambda app: Dlo(app, DloSettings(), 10, silent_log()),
    "Gatekeeper": lambda app: Gatekeeper(app, GatekeeperSettings()),
    "Healthcheck": lambda app: Healthcheck(app, HealthcheckSettings()),
    "ListingFormats": ListingFormats,
    "Memcache": lambda app: Memcache(app, MemoryCache()),
    "ProxyLogging": lambda app: ProxyLogging(app, ProxyLoggingSettings(), None, told()),
    "Slo": lambda app: Slo(
        app, SloSettings(), PathHasher(suffix=b"x"), TypeGuesser("/none", ()), silent_log()
    ),
    "Symlink": lambda app: Symlink(app, SymlinkSettings()),
    "Tempauth": lambda app: Tempauth(app, TempauthSettings(), {}, {}, told()),
    "VersionedWrites": lambda app: VersionedWrites(app, VersionedWritesSettings()),
    "AccountQuotas": lambda app: AccountQuotas(app, Policies((Policy(0, "gold", is_default=True),))),
    "Admission": lambda app: Admission(app, AdmissionSettings(), told()),
    "DeviceAdmission": lambda app: DeviceAdmission(app, DeviceAdmissionSettings()),
    "BackendRatelimit": lambda app: BackendRatelimit(app, {}, "nowhere/backend-ratelimit.conf"),
    "Bulk": lambda app: Bulk(app, BulkSettings(), 5000, told()),
    "CnameLookup": lambda app: CnameLookup(app, OURS, lambda _: (0, None)),
    "ContainerQuotas": ContainerQuotas,
    "ContainerSyncFilter": lambda app: ContainerSyncFilter(app, ContainerSyncFilterSettings(), Realms()),
    "Crossdomain": lambda app: Crossdomain(app, CrossdomainSettings()),
    "DomainRemap": lambda app: DomainRemap(app, DomainRemapSettings()),
    "EtagQuoter": lambda app: EtagQuoter(app, EtagQuoterSettings()),
    "FormPost": lambda app: FormPost(app, FormPostSettings()),
    "Encryption": lambda app: Encryption(app, EncryptionSettings(), Limits(), silent_log()),
    "Keymaster": lambda app: Keymaster(app, RootSecrets({None: b"x" * 32}, None, "2")),
    "Keystoneauth": lambda app: Keystoneauth(app, KeystoneauthSettings(), {}),
    "NameCheck": lambda app: NameCheck(app, NameCheckSettings()),
    "Ratelimit": lambda app: Ratelimit(app, RatelimitSettings(), SizedRates({}), SizedRates({})),
    "ReadOnly": lambda app: ReadOnly(app, ReadOnlySettings()),
    "S3Token": lambda app: S3Token(app, S3TokenSettings(), HTTPKeystone(S3TokenSettings()), told()),
    "S3Api": lambda app: S3Api(app, S3Settings(), told()),
    "StaticWeb": lambda app: StaticWeb(app, StaticWebSettings()),
    "TempURL": lambda app: TempURL(app, TempURLSettings()),
    "Xprofile": lambda app: Xprofile(app, XprofileSettings()),
}
#: Filters that only answer their own paths; their tests say how.
ELSEWHERE = {Recon, ListEndpoints}
PATHS = ["/v1/AUTH_a", "/v1/AUTH_a/c", "/v1/AUTH_a/c/o", "/nothing", "/v1//", "/%FF"]


class App:
    """The rest of the pipeline."""

    def __init__(self, answer):
        self.answer = answer

    def handle(self, request):
        if request.env.get(environkeys.REMOTE_USER) == PRE_AUTHED_USER:
            # A filter looks up what is known of an account or container.
            return Response(204)
        return self.answer(request)


@pytest.fixture(params=FILTERS)
def make(request):
    return lambda answer: FILTERS[request.param](App(answer))


def test_every_filter_is_held_to_it():
    def below(cls):
        return {cls, *(deeper for child in cls.__subclasses__() for deeper in below(child))}

    ours = {cls for cls in below(Filter) if cls.__module__.startswith("swift.")}
    assert {cls.__name__ for cls in ours - ELSEWHERE} == set(FILTERS)


@every("path", PATHS)
@every("method", ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "ODD"])
def test_what_is_none_of_its_business_passes(make, method, path):
    seen = []

    def answer(request):
        seen.append((request.method, request.raw_path))
        return Response(299, {"x-from": "app", "content-length": "4"}, WholeBody(b"body"))

    response = make(answer).handle(Request(method, path, {"host": "h"}))
    assert (response.status, response.headers["x-from"], response.read_body()) == (299, "app", b"body")
    assert seen == [(method, path)]


@every("error", [HTTPError(418, "short"), BodyTimeout("slow")])
def test_an_error_that_carries_an_answer_is_an_answer_to_the_filter(make, error):
    def answer(_request):
        raise error

    response = make(answer).handle(Request("GET", "/v1/AUTH_a/c/o"))
    assert response.status == (418 if isinstance(error, HTTPError) else 408)


def test_a_refusal_passes_the_response_side_of_everything_to_its_left():
    class Refusing(Filter):
        def handle(self, request):
            raise HTTPError(400, "no", {"x-object-sysmeta-secret": "1", "x-shown": "2"})

    inner = Refusing(App(None))
    response = FILTERS["CatchErrors"](FILTERS["Gatekeeper"](FILTERS["Tempauth"](inner))).handle(
        Request("GET", "/v1/AUTH_a")
    )
    assert (response.status, response.read_body()) == (400, b"no")
    assert "x-object-sysmeta-secret" not in response.headers
    assert response.headers["x-shown"] == "2"
    assert response.headers["x-trans-id"].startswith("tx")


def test_the_end_of_the_body_is_told_through_it(make):
    ends = []

    def answer(_request):
        response = Response(200, {}, b"body")
        response.observe_end(lambda sent, complete: ends.append((sent, complete)))
        return response

    make(answer).handle(Request("GET", "/v1/AUTH_a/c/o")).ended(4, True)
    assert ends == [(4, True)]


def test_it_is_a_wsgi_application_to_foreign_servers(make):
    def answer(request):
        return Response(201, {"x-got": request.body.read().decode()}, b"made")

    environ = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/v1/AUTH_a/c/o",
        "QUERY_STRING": "",
        "CONTENT_LENGTH": "4",
        "wsgi.input": io.BytesIO(b"body"),
    }
    heads = []
    chunks = make(answer)(environ, lambda status, headers: heads.append((status, dict(headers))))
    assert b"".join(chunks) == b"made"
    chunks.close()
    assert heads[0][0] == "201 Created"
    assert heads[0][1]["X-Got"] == "body"
