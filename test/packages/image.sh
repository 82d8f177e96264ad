#!/usr/bin/env bash
# Build the container image from packages and use its all-in-one store with Swift's and Amazon's clients.
#
#   sudo test/packages/image.sh DIRECTORY_WITH_DEBS [PYTHON]
#
# PYTHON has python-swiftclient and boto3 (.venv/bin/python). The image runs in namespaces of the kernel as its own
# user, with its entrypoint and environment; no container engine is needed, only buildah. BASE is that of
# containers/build. Needs root.
set -euo pipefail
here=$(dirname "$(realpath "$0")")/../..
python=$(realpath --no-symlinks "${2:-$here/.venv/bin/python}")
tag=localhost/swift:image-test

say() { echo "image: $*"; }
say "building"
BASE=${BASE:-bootstrap} "$here/containers/build" "$1" "$tag" >/dev/null
container=$(buildah from "$tag")
root=$(buildah mount "$container")
pid=
finish() {
    [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; } || true
    buildah rm "$container" >/dev/null
    buildah rmi "$tag" >/dev/null
}
trap finish EXIT
# The configuration of the image is what an engine would run.
config() { buildah inspect --type image --format "{{range .Docker.Config.$1}}{{.}}{{\"\\n\"}}{{end}}" "$tag"; }
mapfile -t environment < <(config Env)
mapfile -t words < <(config Entrypoint; config Cmd)
[ "$(buildah inspect --type image --format '{{.Docker.Config.User}}' "$tag")" = swift ]
[ "$(chroot "$root" id -u swift):$(chroot "$root" id -g swift)" = 42445:42445 ]

login=(SWIFT_USER=demo:me SWIFT_KEY=secret AWS_ACCESS_KEY_ID=EXAMPLEKEY AWS_SECRET_ACCESS_KEY=example-secret
    SWIFT_DEFAULT_BUCKET=first)
begun=$(date +%s%N)
# shellcheck disable=SC2016
unshare --net --mount --pid --fork --kill-child sh -c 'ip link set lo up
    mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev"
    shift 0; exec chroot --userspec=swift:swift "$0" env -i "$@"' \
    "$root" "${environment[@]}" "${login[@]}" "${words[@]}" >"$root/tmp/log" 2>&1 &
pid=$!
inside() { nsenter --net --target "$(pgrep --parent "$pid" | head -n 1)" "$@"; }
for attempt in $(seq 300); do
    if inside curl -sf -o /dev/null http://127.0.0.1:8080/healthcheck 2>/dev/null; then break; fi
    if [ "$attempt" = 300 ] || ! kill -0 "$pid" 2>/dev/null; then
        cat "$root/tmp/log"
        exit 1
    fi
    sleep 0.1
done
say "first response after $((($(date +%s%N) - begun) / 1000000)) ms"
inside chroot "$root" env -i "${environment[@]}" /usr/share/swift/container/health

seq 100000 >"$root/tmp/numbers"
swift=(inside "$python" -m swiftclient.shell -A http://127.0.0.1:8080/auth/v1.0 -U demo:me -K secret)
for _ in $(seq 100); do
    "${swift[@]}" list 2>/dev/null | grep -qx first && break
    sleep 0.1
done
"${swift[@]}" list | grep -qx first
"${swift[@]}" upload --object-name numbers by-swift "$root/tmp/numbers" >/dev/null
"${swift[@]}" download --output - by-swift numbers | cmp - "$root/tmp/numbers"
inside "$python" - "$root/tmp/numbers" <<'PYTHON'
import sys
from pathlib import Path

import boto3

s3 = boto3.client(
    "s3", "us-east-1", endpoint_url="http://127.0.0.1:8080",
    aws_access_key_id="EXAMPLEKEY", aws_secret_access_key="example-secret",
)
body = Path(sys.argv[1]).read_bytes()
s3.put_object(Bucket="first", Key="numbers", Body=body)
assert s3.get_object(Bucket="first", Key="numbers")["Body"].read() == body
assert s3.get_object(Bucket="by-swift", Key="numbers")["Body"].read() == body
PYTHON
for attempt in $(seq 100); do
    if grep -q "PUT /" "$root/tmp/log"; then break; fi
    if [ "$attempt" = 100 ]; then say "no access line in the log of the container"; exit 1; fi
    sleep 0.1
done
if grep "ended with status" "$root/tmp/log"; then exit 1; fi
say "swift and S3 clients read and wrote"

kill -TERM "$(pgrep --parent "$pid" | head -n 1)"
for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
if kill -0 "$pid" 2>/dev/null; then exit 1; fi
say "stopped"
# Any command runs, as an engine or kolla would start it.
chroot "$root" env -i "${environment[@]}" /usr/share/swift/container/entrypoint swift-object-server --help >/dev/null
say "ok"
