"""aws --endpoint-url URL s3 ls|mb|cp, and rclone config create|sync|lsf, by boto3: what pages use of them."""

import json
import os
import sys
from pathlib import Path

import boto3

CONFIG = Path.home() / "rclone.json"


def s3(endpoint, **keys):
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)


def aws(option, endpoint, service, command, *words):
    assert (option, service) == ("--endpoint-url", "s3"), "the fake does not know these arguments"
    client = s3(endpoint)
    bucket, _, key = words[-1].removeprefix("s3://").partition("/")
    if command == "ls":
        for each in client.list_objects_v2(Bucket=bucket)["Contents"]:
            print(f"{each['LastModified']:%Y-%m-%d %H:%M:%S} {each['Size']:10} {each['Key']}")
    elif command == "mb":
        client.create_bucket(Bucket=bucket)
        print(f"make_bucket: {bucket}")
    elif command == "cp":
        client.upload_file(words[0], bucket, key)
        print(f"upload: {words[0]} to {words[1]}")
    else:
        sys.exit(f"aws: the fake does not know {command}")


def rclone(command, *words):
    if command == "config":
        create, name, kind, *options = words
        assert (create, kind) == ("create", "s3"), "the fake does not know these arguments"
        CONFIG.write_text(json.dumps({name: dict(option.split("=", 1) for option in options)}))
        return
    name, bucket = words[-1].split(":")
    options = json.loads(CONFIG.read_text())[name]
    keys = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key"}
    client = s3(options["endpoint"], **{name: options[option] for name, option in keys.items()})
    if command == "sync":
        client.create_bucket(Bucket=bucket)
        for path in Path(words[0]).iterdir():
            client.upload_file(str(path), bucket, path.name)
    elif command == "lsf":
        for each in client.list_objects_v2(Bucket=bucket)["Contents"]:
            print(each["Key"])
    else:
        sys.exit(f"rclone: the fake does not know {command}")


{"aws": aws, "rclone": rclone}[os.environ["AS"]](*sys.argv[1:])
