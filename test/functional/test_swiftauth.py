"""Users, keys and roles of a running cluster, by the clients that people have."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from swift.aio.users import create_users
from test.support.cluster import LiveCluster
from test.support.oidc import FakeProvider
from test.support.processes import FORK_SERVER

KEY = "operator-key"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = "[filter:swiftauth]\nuse = egg:swift#swiftauth\nstale_seconds = 1\n"
    live = LiveCluster(
        tmp_path_factory.mktemp("swiftauth") / "data",
        nodes=1,
        disks=3,
        rest_s=LiveCluster.AT_REST_S,
        options=options,
        tempauth=False,
        key=KEY,
    )
    try:
        live.start()
        create_users(live.plan)
        yield live
    finally:
        live.stop()


def client(cluster, service, access_key="test:tester", secret=KEY, token=None):
    return boto3.client(
        service,
        "us-east-1",
        endpoint_url=cluster.plan.url,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"max_attempts": 0}),
    )


def user_command(cluster, *words, text="", status=0):
    """Return the JSON result of ``swift-user`` on the node."""
    conf = str(cluster.plan.etc / "internal-client.conf")
    done = FORK_SERVER.run(
        "swift-user",
        ["--conf", conf, "--format", "json", *words],
        input=text,
        timeout_s=60,
        environ=dict(os.environ),
    )
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout) if status == 0 else done.stderr


def code_of(call, **params):
    with pytest.raises(ClientError) as error:
        call(**params)
    return error.value.response["Error"]["Code"]


def test_the_first_user_is_an_operator_who_makes_others(cluster):
    iam = client(cluster, "iam")
    iam.create_user(UserName="amy")
    key = iam.create_access_key(UserName="amy")["AccessKey"]
    amy = key["AccessKeyId"], key["SecretAccessKey"]
    s3 = client(cluster, "s3", *amy)
    assert code_of(s3.list_buckets) == "AccessDenied"
    iam.attach_user_policy(UserName="amy", PolicyArn="arn:aws:iam::aws:policy/readwrite")
    cluster.await_true(lambda: _works(s3.list_buckets), "the policy counts")
    s3.create_bucket(Bucket="shared")
    s3.put_object(Bucket="shared", Key="o", Body=b"x")
    assert client(cluster, "s3").get_object(Bucket="shared", Key="o")["Body"].read() == b"x"
    assert [user["UserName"] for user in iam.list_users()["Users"]][0] == "amy"
    assert client(cluster, "sts", *amy).get_caller_identity()["Arn"] == "arn:aws:iam::test:user/amy"
    iam.delete_access_key(UserName="amy", AccessKeyId=amy[0])
    cluster.await_true(lambda: not _works(s3.list_buckets), "the key is refused by both workers")


def _works(call):
    try:
        for _ in range(4):
            call()
    except ClientError:
        return False
    return True


def test_a_role_gives_temporary_keys(cluster):
    iam, sts = client(cluster, "iam"), client(cluster, "sts")
    trust = statement(Principal={"AWS": "arn:aws:iam::test:root"}, Action="sts:AssumeRole")
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)
    iam.put_role_policy(
        RoleName="reader",
        PolicyName="read",
        PolicyDocument=statement(Action=["s3:ListAllMyBuckets"], Resource="*"),
    )
    found = sts.assume_role(RoleArn="arn:aws:iam::test:role/reader", RoleSessionName="job")["Credentials"]
    keys = found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]
    s3 = client(cluster, "s3", *keys)
    s3.list_buckets()
    assert code_of(s3.create_bucket, Bucket="denied") == "AccessDenied"
    url = s3.generate_presigned_url("list_buckets")
    assert cluster.raw("GET", path_of(url)).status == 200
    tampered = path_of(url).replace("security-token=1", "security-token=2")
    assert cluster.raw("GET", tampered).status == 403


def path_of(url):
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def statement(**members):
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **members}]})


@contextlib.contextmanager
def serve_provider(provider):
    """Serve a provider on loopback; yield its issuer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found = provider(self.path)
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        def log_message(self, *_words):
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = f"http://127.0.0.1:{server.server_port}"
        provider.discovery.update({"issuer": issuer, "jwks_uri": f"{issuer}/keys"})
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()


PROGRAM = """
import boto3
print(boto3.client("sts").get_caller_identity()["Arn"])
print(len(boto3.client("s3").list_buckets()["Buckets"]) >= 0)
"""


@pytest.mark.long
def test_a_workload_needs_no_key_but_the_token_of_its_platform(cluster, tmp_path):
    provider = FakeProvider()
    with serve_provider(provider) as issuer:
        document = tmp_path / "provider.json"
        document.write_text(json.dumps({"issuer": issuer, "client_id": "swift", "tenant": "test"}))
        user_command(cluster, "provider", "set", "platform", str(document))
        trust = tmp_path / "trust.json"
        trust.write_text(
            statement(
                Principal={"Federated": "platform"},
                Action="sts:AssumeRoleWithWebIdentity",
                Condition={"StringEquals": {f"{issuer.removeprefix('http://')}:sub": "job-7"}},
            )
        )
        user_command(cluster, "role", "add", "test:workload", "--trust", str(trust), "--policy", "readonly")
        now = int(time.time())
        times = {"aud": "swift", "iss": issuer, "iat": now, "nbf": now, "exp": now + 600}
        (tmp_path / "token").write_text(provider.token(sub="job-7", **times))
        environ = {
            "PATH": os.environ["PATH"],
            "AWS_ROLE_ARN": "arn:aws:iam::test:role/workload",
            "AWS_ROLE_SESSION_NAME": "job",
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
            "AWS_ENDPOINT_URL": cluster.plan.url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        words = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120)
        assert done.stdout.split() == ["arn:aws:sts::test:assumed-role/workload/job", "True"], done.stderr
        (tmp_path / "token").write_text(provider.token(sub="job-8", **times))
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120)
        assert "Not authorized to perform sts:AssumeRoleWithWebIdentity" in done.stderr


@pytest.mark.long
def test_the_command_manages_users_and_says_why_not(cluster, tmp_path):
    user_command(cluster, "add", "pets:dog", "--policy", "readwrite", text="a good password\n")
    assert user_command(cluster, "list", "pets")["users"] == ["dog"]
    key = user_command(cluster, "key", "create", "pets:dog", "--read-only", "--container", "bowl")
    assert user_command(cluster, "show", "pets:dog")["keys"] == [key["access_key"]]
    found = user_command(cluster, "policy", "check", "--user", "pets:dog", "s3:PutObject", "bowl/food")
    assert found["reasons"] == ["s3:PutObject: allow by readwrite Statement[0]"]
    for words in (
        ("add", "pets:dog", "--no-password"),
        ("add", "pets", "--no-password"),
        ("show", "pets:cat"),
        ("key", "create", "pets:dog", "--ends", "soon"),
        ("group", "join", "pets:none", "dog"),
        ("policy", "add", "pets:p", str(tmp_path / "missing.json")),
    ):
        output = user_command(cluster, *words, status=1)
        assert output.startswith("swift-user: "), output
        assert output.count("\n") == 1, output
    user_command(cluster, "remove", "pets:dog")
    assert user_command(cluster, "list", "pets")["users"] == []
