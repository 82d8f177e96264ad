"""An identity provider in memory: its keys, its tokens and its responses."""

import json
from functools import cache
from urllib.parse import parse_qsl, urlsplit

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from swift.base.clock import ManualClock
from swift.identity.oidc.errors import OidcCause, OidcError
from swift.identity.oidc.fetch import ProviderResponse
from swift.identity.oidc.provider import Provider
from swift.identity.oidc.tokens import ALGORITHMS, encode_base64url
from swift.identity.oidc.verifier import TokenVerifier

ISSUER = "https://id.example/realms/main"
NOW = 1_700_000_000
DOCUMENT = {"name": "main", "issuer": ISSUER, "client_id": "swift", "tenant": "acme"}
CLAIMS = {"iss": ISSUER, "sub": "u-1", "aud": "swift", "exp": NOW + 300, "iat": NOW}
#: Algorithm → a key that it fits, for all that are accepted.
KINDS = {"RSA": (RSAKey, 2048), "Ed25519": (OKPKey, "Ed25519")}


@cache
def private_key(kind="RSA", number=0):
    """Return a private key, the same one for the same arguments."""
    key_type, size = KINDS.get(kind, (ECKey, kind))
    return key_type.generate_key(size)


def key_for(algorithm, number=0):
    return private_key(ALGORITHMS[algorithm], number)


def public(key, **members):
    """Return a key as it is published."""
    return {**key.as_dict(private=False), **members}


def encode(value):
    """Return a part of a token; bytes and texts as they are."""
    data = (
        value
        if isinstance(value, bytes)
        else value.encode()
        if isinstance(value, str)
        else json.dumps(value).encode()
    )
    return encode_base64url(data)


def sign(header, claims, key, algorithm=None):
    """Return a token, whatever header and claims are."""
    signed = f"{encode(header)}.{encode(claims)}"
    algorithm = algorithm or header["alg"]
    return f"{signed}.{encode_base64url(JWSRegistry.algorithms[algorithm].sign(signed.encode(), key))}"


class FakeProvider:
    """A provider whose responses a test changes; it is the ``Fetch`` of a verifier."""

    def __init__(self, **document):
        self.provider = Provider.from_document({**DOCUMENT, **document})
        self.clock = ManualClock(NOW)
        self.discovery = {
            "issuer": self.provider.issuer,
            "jwks_uri": "https://id.example/keys",
            "authorization_endpoint": "https://id.example/authorize",
            "token_endpoint": "https://id.example/token",
        }
        self.keys = {"one": (private_key(), {})}
        self.headers = {}
        #: Raised or called instead of a response.
        self.failure = None
        self.requests = []
        #: Form of a request for a token → response.
        self.tokens = lambda form: (200, {"id_token": self.token()})

    def verifier(self):
        return TokenVerifier(self.provider, self, self.clock)

    def __call__(self, url, form=None, *, authorization=""):
        self.requests.append((url, form, authorization))
        if self.failure is not None:
            self.failure()
        path = urlsplit(url).path
        if path.endswith("/.well-known/openid-configuration"):
            return response(self.discovery)
        if path == "/keys":
            keys = [public(key, **{"kid": kid, **more}) for kid, (key, more) in self.keys.items()]
            return response({"keys": keys}, headers=self.headers)
        if path == "/token" and form is not None:
            status, document = self.tokens(form)
            return response(document, status)
        return response({}, 404)

    def token(self, kid="one", algorithm="RS256", header=None, **claims):
        """Return a token of a key of ours; a claim None is left out."""
        key = self.keys[kid][0] if kid in self.keys else key_for(algorithm)
        members = {
            name: value
            for name, value in {**CLAIMS, "iss": self.provider.issuer, **claims}.items()
            if value is not None
        }
        return sign({"alg": algorithm, "kid": kid, **(header or {})}, members, key)

    def fetches_of(self, path):
        return sum(urlsplit(url).path.endswith(path) for url, _form, _authorization in self.requests)

    def go_away(self):
        def fail():
            raise OidcError("provider main: connection refused", OidcCause.UNAVAILABLE)

        self.failure = fail


def response(document, status=200, headers=None):
    return ProviderResponse(status, headers or {}, json.dumps(document).encode())


def query_of(url):
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
