"""Answers of the S3 API that differ from the peer's on purpose: our status and the reason."""

#: Beginnings of requests whose answers differ on purpose: our status and the reason.
DIFFERENT = {
    "PUT /golden/bad ['x-amz-website-redirect-location": (400, "it is kept here, if it is a place"),
    "HEAD /golden []": (200, "the region is told"),
    "PUT /parts/big?partNumber=3&uploadId=<upload>": (200, "no metadata of the source is told of a part"),
    "PUT /parts/big?partNumber=4&uploadId=<upload> ['x-amz-copy-source-range: bytes=0-3'": (
        200,
        "no metadata of the source is told of a part",
    ),
    "PUT /parts/big?partNumber=4&uploadId=<upload> ['x-amz-copy-source-range: bytes=0-'": (
        400,
        "as AWS: a range of a copy has an end",
    ),
    "PUT /parts/big?partNumber=4&uploadId=<upload> ['x-amz-copy-source-range: bytes=0-9": (
        400,
        "as AWS: no range behind the end",
    ),
    "GET /parts/big?uploadId=<upload> []": (200, "the peer lists a copied part without its ETag"),
    "GET /parts/big?uploadId=<upload>&part-number-marker=1": (200, "the same"),
    "POST /parts/big?uploadId=<upload>": (400, "the peer calls a missing document InvalidRequest"),
    "GET /kept/k?versionId=odd": (400, "as AWS: InvalidArgument"),
    "GET /kept/k?versionId=1000000000.00000": (404, "as AWS: NoSuchVersion"),
    "GET /kept/k?versionId=<marker>": (405, "as AWS"),
    "GET /kept/k []": (404, "as AWS: the delete marker is told"),
    "DELETE /kept/k?versionId=<": (204, "as AWS: the version that went is told, not the one that came back"),
    "PUT /shared?acl ['x-amz-acl: p": (200, "no Location is told of an ACL"),
    "PUT /shared?acl ['x-amz-acl: b": (200, "no Location is told of an ACL"),
    "GET /shared?acl": (200, "grants to all are shown"),
    "PUT /shared?acl []": (200, "no Location is told of an ACL"),
    "GET /golden?tagging": (404, "buckets have tags here"),
    "GET /golden?requestPayment": (200, "the owner pays"),
    **{
        f"GET /golden?{name} []": (404, "there is none; the peer knows none")
        for name in ("cors", "policy", "website", "publicAccessBlock")
    },
    **{
        f"PUT /golden?{name} []": (400, "it is none; the peer knows none")
        for name in ("cors", "policy", "website", "logging")
    },
    "POST /golden []": (412, "as AWS: it must be a form"),
    "GET /golden?notification": (200, "there are notifications here"),
    "PUT /golden?notification": (400, "there are notifications here"),
    "PUT /golden?object-lock": (400, "there is object lock here"),
    "POST /listed?delete ['Content-MD5: wxcV0HKdmu2LoKlZMBE+SA==": (200, "as AWS: the version is told"),
    **{
        f"PUT /uploads?{query} ['Content-MD5: ndTkYSaMgDT1yFZOFVxnpg=='": (
            400,
            "the body is held to Content-MD5",
        )
        for query in ("versioning", "acl")
    },
    "PUT /new-uploads ['Content-MD5": (400, "the body is held to Content-MD5"),
    "POST /uploads/begun?uploads ['x-amz-acl: authenticated-read'": (501, "the canned ACL is named"),
    "PUT /uploads/copied ['x-amz-acl: authenticated-read'": (501, "the canned ACL is named"),
    "PUT /uploads/hash ['X-Amz-Content-SHA256: STREAMING-AWS4-ECDSA": (501, "told before the missing length"),
    **{
        f"PUT stream AWS4-HMAC-SHA256-PAYLOAD: {case}": (400, "as AWS: a malformed body")
        for case in ("no signature", "other extension", "name in upper case")
    },
    "PUT stream AWS4-HMAC-SHA256-PAYLOAD: size with ": (400, "the size of a chunk is hexadecimal digits"),
    "PUT stream AWS4-HMAC-SHA256-PAYLOAD-TRAILER: trailer signature in upper case": (
        400,
        "an unannounced trailer",
    ),
    # signatures
    "GET /signed/key with {'SignedHeaders': 'Host;X-Amz-Date'}": (403, "the host must be signed"),
    "GET /signed/key without host signed": (403, "the host must be signed"),
    "GET /signed/key Authorization: AWS4-HMAC-SHA256 ": (400, "as AWS: the missing component is named"),
    "GET /signed/key Authorization: ": (403, "no date is missed in what is no signature"),
    "POST /signed/key link ": (405, "as AWS"),
    "GET /signed/key for DAY/us-east-1/s3": (400, "as AWS: the malformed component is named"),
    **{
        f"GET /signed/key with {{'{name}': {value}}}": (400, "as AWS: the missing component is named")
        for name in ("Credential", "SignedHeaders", "Signature")
        for value in ("None", "''", "'x'")
        if (name, value) not in (("SignedHeaders", "'x'"), ("Signature", "'x'"))
    },
    "PUT /signed/key-2 with unsigned x-amz-foo": (403, "all headers of S3 are signed"),
    "GET /signed/key link without ": (400, "as AWS: the missing parameter is named"),
    "GET /signed/key link with empty ": (400, "as AWS: the missing parameter is named"),
    **{
        f"GET /signed/key link with odd {name}": (400, "as AWS: AuthorizationQueryParametersError")
        for name in ("Algorithm", "Credential", "Date")
    },
    **{
        f"HEAD /signed/key link with {name} as HEAD": (400, "as AWS: AuthorizationQueryParametersError")
        for name in ("Credential", "Date")
    },
    **{
        f"GET /signed/key link with date {form}": (400, "as AWS: one form of dates in links")
        for form in ("YEAR8", "YEAR16", "YEAR15", "mail")
    },
    **{
        f"GET /signed/key link for {scope}": (400, "as AWS: the credential is malformed")
        for scope in ("test:tester", "/DAY/us-east-1/s3/aws4_request")
    },
    "GET /signed/key link by ": (400, "as AWS: AuthorizationQueryParametersError"),
    "GET /signed/key link with odd SignedHeaders": (403, "the host must be signed"),
    "GET /signed/key link that signs x-amz-date": (403, "the host must be signed"),
    "GET /signed/key link that signs HOST": (403, "the host must be signed"),
    "GET /signed/key link that signs ": (400, "as AWS: the missing parameter is named"),
    "GET /signed/key link that expires in  5": (400, "a number is digits"),
    "GET /signed/key link that expires in +5": (400, "a number is digits"),
    "GET /signed/key link of +1000 s": (403, "as AWS: not before its time, but for the clock skew"),
    "PUT /signed/key-l link with x-amz-foo unsigned": (403, "all headers of S3 are signed"),
    "PUT /signed/key-q link with x-amz-acl in the query": (400, "a header in the query is a header"),
    "PUT /signed/key-q link with x-amz-copy-source in the query": (200, "a header in the query is a header"),
    "HEAD /signed/key-q": (200, "the copy"),
    "GET /signed/key link and ": (400, "as AWS: one signature"),
    "GET /signed/key old link and header": (400, "as AWS: one signature"),
    "GET /signed/key old link that expires at 1.5": (403, "a time is digits"),
    "GET /signed/key old link that expires at  5": (403, "a time is digits"),
    "GET /signed/key?X-Amz-Credential=x": (400, "the algorithm is missed first"),
    "GET /signed/key?X-Amz-Signature=x": (400, "the peer takes it for a request of Swift"),
    "GET / anonymous": (200, "a page tells people what is here"),
    "GET /signed/key?acl anonymous": (403, "an error of S3 for what only S3 can mean"),
    "POST /signed/key?uploads anonymous": (403, "an error of S3 for what only S3 can mean"),
    "POST /more anonymous with nothing": (403, "an error of S3 for what only S3 can mean"),
    "POST /more anonymous with a text": (403, "an error of S3 for what only S3 can mean"),
    # listings
    **{
        f"GET /lists?{kind}prefix=a&prefix=b": (200, "all parameters are signed, the last one counts")
        for kind in ("", "list-type=2&", "versions&")
    },
    "HEAD /lists?max-keys=1": (200, "the region is told"),
    "HEAD /lists?list-type=2": (200, "the region is told"),
    "HEAD /lists?versions": (405, "no sub-resource of a bucket has a HEAD"),
    "GET /lists?versions&delimiter=1": (200, "any delimiter"),
    "GET /lists?versions&delimiter=.": (200, "any delimiter"),
    **{
        f"GET /lists?uploads&max-uploads={one}": (200, "the marker of the next page is told")
        for one in ("1 ", "%2B1", "%201", "1%20")
    },
    "GET /lists?uploads&delimiter= ": (200, "an empty delimiter is none"),
    "GET /lists?uploads&encoding-type=url": (200, "markers and prefixes are encoded"),
    "GET /lists?uploads&key-marker=a&upload-id-marker=x": (400, "it is none"),
    "GET /lists/b/1?uploadId=%FF": (400, "the peer fails"),
    # multipart uploads
    "POST /more/odd?uploads ['x-amz-checksum-algorithm: CRC32'": (200, "as AWS: the algorithm is told"),
    "POST /more/odd?uploads ['x-amz-checksum-algorithm: odd'": (400, "as AWS"),
    "POST /more/odd?uploads ['x-amz-checksum-type": (400, "as AWS: it needs an algorithm"),
    "POST /more/odd?uploads [] ": (400, "it has no body"),
    "PUT /more/big?uploadId=<upload big>&partNumber=%2": (400, "a number is digits"),
    "POST /more/big?uploadId=<upload big> ['Content-MD5": (
        400,
        "as AWS: it is told what is wrong with a number",
    ),
    "GET /more/big?uploadId=<upload big>": (404, "a completed upload is none"),
    "DELETE /more/big?uploadId=<upload big>": (404, "a completed upload is none"),
    "PUT /more/copied?uploadId=<upload copied>&partNumber=1 ['x-amz-copy-source-range: bytes=0-2'": (
        200,
        "no metadata of the source is told of a part",
    ),
    "PUT /more/copied?uploadId=<upload copied>&partNumber=1 ['x-amz-copy-source-range: bytes=2-2'": (
        200,
        "no metadata of the source is told of a part",
    ),
    "PUT /more/copied?uploadId=<upload copied>&partNumber=1 ['x-amz-copy-source-range: bytes=0-6'": (
        400,
        "as AWS: no range behind the end",
    ),
    "PUT /more/copied?uploadId=<upload copied>&partNumber=1 ['x-amz-copy-source-range: bytes=-2'": (
        400,
        "as AWS: a range of a copy has a start",
    ),
    "PUT /more/copied?uploadId=<upload copied>&partNumber=1 ['x-amz-copy-source: ": (
        400,
        "InvalidArgument for a version that is none; a copy has no body",
    ),
    "PUT /more/to ['x-amz-copy-source: /more/from?versionId=x'": (400, "as AWS: InvalidArgument"),
    "PUT /more/to ['x-amz-copy-source: /more/%FF'": (400, "a key is UTF-8"),
    "PUT /more/to ['x-amz-copy-source: /more/from']": (400, "a copy has no body"),
    "HEAD /more/head?versionId=": (400, "as GET"),
    "HEAD /more/head?torrent": (405, "as AWS"),
    "HEAD /more []": (200, "the region is told"),
    "HEAD /more/ []": (200, "the region is told"),
    "HEAD /more?versions": (405, "no sub-resource of a bucket has a HEAD"),
    # ACLs, tags, versioning
    "PUT /more?acl ['x-amz-grant-read: id": (200, "grants may be headers"),
    "PUT /more?acl ['x-amz-grant-": (400, "as AWS"),
    "PUT /more?acl ['x-amz-acl: private', 'x-amz-grant": (400, "as AWS: not both"),
    "PUT /more/head?acl": (501, "the option is named"),
    "PUT /more/tags [": (200, "objects have tags here"),
    "GET /more/tags?tagging": (200, "objects have tags here"),
    "GET /more?tagging": (404, "buckets have tags here"),
    **{
        f"{method} /{path}?tagging": (404, "there is none")
        for method, path in (
            *(("GET", "more/missing"), ("GET", "missing-more"), ("DELETE", "more/missing")),
            ("DELETE", "missing-more"),
        )
    },
    **{
        f"PUT /{path}?tagging": (400, "it is no set of tags")
        for path in ("more", "more/tags", "more/missing", "missing-more")
    },
    "DELETE /more?tagging": (204, "buckets have tags here"),
    "DELETE /more/tags?tagging": (204, "objects have tags here"),
    "PUT /more?versioning ['Content-MD5: 79p9": (501, "the peer fails"),
    "PUT /more?versioning ['Content-MD5: RorN": (400, "the peer fails"),
    **{
        f"{method} /more/head?versioning": (501, "a key has no versioning")
        for method in ("GET", "HEAD", "DELETE", "POST")
    },
    **{
        f"{request} ['x-amz-acl: {name}'": (400, "the canned ACL is named")
        for request, name in (
            *(("POST /more/odd?uploads", "odd"), ("PUT /more/to", "odd"), ("PUT /more-odd", "odd")),
            *(("PUT /more/acl", name) for name in ("", "PRIVATE", "odd")),
            *(("PUT /more-none", ""), ("PUT /more-private", "PRIVATE")),
        )
    },
    # the rest
    "POST /more?delete ['Content-MD5: 2plk": (200, "a key that is too long is told"),
    "POST /more?delete ['Content-MD5: 9GZF": (200, "as AWS: InvalidArgument"),
    "POST /more/key?delete": (501, "a key has no such sub-resource"),
    "POST /more anonymous with a whole form": (403, "a form of S3, which nobody signed"),
    "POST /more anonymous with a form without a file": (400, "a form of S3"),
    "POST /more ['Content-Type: multipart/form-data": (400, "as AWS: one signature"),
    "POST /more ['x-amz-meta-label: nothing'": (412, "as AWS: it must be a form"),
    "POST /more ['Content-Type: text/plain'": (412, "as AWS: it must be a form"),
    "POST /more/key%3F": (405, "as AWS"),
}
