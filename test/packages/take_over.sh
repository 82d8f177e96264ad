#!/usr/bin/env bash
# Take over a node of Debian's OpenStack Swift with our packages, and go back, in a Debian root of its own.
#
#   sudo test/packages/take_over.sh DIRECTORY_WITH_DEBS [ROOT]
#
# Debian's servers write objects; our packages replace them, keep configuration and data, serve every object and
# write more; Debian's packages come back and serve all of them. ROOT is made with debootstrap where it does not
# exist; it is kept, so that a second run is quicker. Needs root, debootstrap and a Debian mirror.
set -euo pipefail
debs=$(realpath "$1")
root=${2:-/var/tmp/swift-take-over}
suite=${SUITE:-bookworm}
packages="swift swift-proxy swift-account swift-container swift-object swift-object-expirer swift-drive-audit"

say() { echo "take-over: $*"; }
environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C)
inside() { chroot "$root" /usr/bin/env "${environment[@]}" "$@"; }
exec_inside() { exec chroot "$root" /usr/bin/env "${environment[@]}" "$@"; }

if [ ! -d "$root/etc" ]; then
    say "making $root"
    debootstrap --variant=minbase --include=ca-certificates,procps,curl,rsync "$suite" "$root" >/dev/null
fi
mkdir -p "$root/debs"
cp "$debs"/*.deb "$root/debs/"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mountpoint -q "$root/dev" || { mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"; }
trap 'stop || true; umount --lazy --recursive "$root/proc" "$root/dev"' EXIT
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

pids=()
# The servers and memcached, as the user swift in a network of their own.
start() {
    exec_inside unshare --net sh -c 'ip link set lo up && exec sh /start.sh' >"$root/var/log/servers.log" 2>&1 &
    pids=($!)
    for _ in $(seq 300); do
        responds 6200 && responds 6201 && responds 6202 && responds 8080 && return 0
        sleep 0.2
    done
    cat "$root/var/log/servers.log" >&2
    say "the servers did not start" >&2
    return 1
}
stop() {
    [ ${#pids[@]} -gt 0 ] || return 0
    pkill --parent "${pids[0]}" 2>/dev/null || true
    kill "${pids[0]}" 2>/dev/null || true
    wait "${pids[0]}" 2>/dev/null || true
    pids=()
}
responds() { client -s -o /dev/null "http://127.0.0.1:$1/healthcheck"; } # port
client() { nsenter --net --target "${pids[0]}" curl --max-time 20 "$@"; }
token() { client -si -H 'X-Auth-User: test:tester' -H 'X-Auth-Key: testing' http://127.0.0.1:8080/auth/v1.0 |
    sed -n 's/^X-Auth-Token: *//Ip' | tr -d '\r'; }
put() { # release
    local key number
    key=$(token)
    client -sf -o /dev/null -X PUT -H "X-Auth-Token: $key" "http://127.0.0.1:8080/v1/AUTH_test/$1"
    for number in 1 2 3; do
        seq "$number" $((number * 20000)) | client -sf -o /dev/null -T - -H "X-Auth-Token: $key" \
            -H "X-Object-Meta-From: $1" "http://127.0.0.1:8080/v1/AUTH_test/$1/object-$number"
    done
}
check() { # release
    local key number
    key=$(token)
    [ "$(client -sf -H "X-Auth-Token: $key" "http://127.0.0.1:8080/v1/AUTH_test/$1" | wc -l)" = 3 ]
    for number in 1 2 3; do
        cmp <(seq "$number" $((number * 20000))) <(client -sf -H "X-Auth-Token: $key" \
            "http://127.0.0.1:8080/v1/AUTH_test/$1/object-$number")
        client -sfI -H "X-Auth-Token: $key" "http://127.0.0.1:8080/v1/AUTH_test/$1/object-$number" |
            grep -qi "^X-Object-Meta-From: $1"
    done
}
release() { inside dpkg-query -W -f '${Version}' swift-proxy; }

say "installing Debian's swift"
inside apt-get update -q >/dev/null
inside dpkg --configure -a >/dev/null
# shellcheck disable=SC2086
inside apt-get purge -y -q $packages python3-swift >/dev/null 2>&1 || true
rm -rf "$root/etc/swift" "$root/srv/node"
# shellcheck disable=SC2086
inside apt-get install -y -q --no-install-recommends --allow-downgrades iproute2 memcached adduser $(
    for package in $packages python3-swift; do echo "$package/$suite"; done) >/dev/null
theirs=$(release)
say "Debian has $theirs"

mkdir -p "$root/srv/node/d1" "$root/srv/node/d2" "$root/srv/node/d3" "$root/var/cache/swift"
inside chown -R swift:swift /srv/node /var/cache/swift
cat >"$root/etc/swift/swift.conf" <<'CONF'
[swift-hash]
swift_hash_path_suffix = of-the-take-over
[storage-policy:0]
name = Policy-0
default = yes
CONF
cat >"$root/etc/swift/proxy-server.conf" <<'CONF'
# Changed by the operator.
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = 8080
user = swift
workers = 1
[pipeline:main]
pipeline = catch_errors healthcheck cache tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:11211
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
CONF
port=6200
for kind in object container account; do
    cat >"$root/etc/swift/$kind-server.conf" <<CONF
# Changed by the operator.
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $port
user = swift
mount_check = false
workers = 1
[pipeline:main]
pipeline = $kind-server
[app:$kind-server]
use = egg:swift#$kind
[$kind-replicator]
[$kind-auditor]
CONF
    inside sh -ec "cd /etc/swift && swift-ring-builder $kind.builder create 4 3 1
        for disk in d1 d2 d3; do swift-ring-builder $kind.builder add r1z1-127.0.0.1:$port/\$disk 1; done
        swift-ring-builder $kind.builder rebalance" >/dev/null
    port=$((port + 1))
done
cat >"$root/start.sh" <<'START'
run() { setpriv --reuid=swift --regid=swift --clear-groups -- "$@" & }
run memcached -l 127.0.0.1
for kind in account container object proxy; do run "swift-$kind-server" "/etc/swift/$kind-server.conf"; done
wait
START
sum() { (cd "$root/etc/swift" && find . -name '*backups*' -prune -o -type f -print0 | sort -z | xargs -0 sha256sum); }
before=$(sum)

start
put debian
check debian
stop

say "installing our packages"
inside sh -c 'apt-get install -y -q --no-install-recommends $(ls /debs/*.deb | grep -vE "swift-(aio|tools)_")' >/dev/null
ours=$(release)
[ "$ours" != "$theirs" ]
[ "$before" = "$(sum)" ] || { diff <(echo "$before") <(sum) && say "the configuration changed"; exit 1; }
start
check debian
put ours
check ours
# Daemons of the new release pass over databases and files of the old one.
for daemon in account-auditor container-auditor object-auditor; do
    inside setpriv --reuid=swift --regid=swift --clear-groups -- "swift-$daemon" "/etc/swift/${daemon%-auditor}-server.conf" once
done >"$root/var/log/daemons.log" 2>&1
stop
[ ! -e "$root/srv/node/d1/quarantined" ]
say "$ours serves what $theirs wrote"

say "going back"
# shellcheck disable=SC2086
inside apt-get install -y -q --no-install-recommends --allow-downgrades $(
    for package in $packages python3-swift; do echo "$package/$suite"; done) >/dev/null
[ "$(release)" = "$theirs" ]
[ "$before" = "$(sum)" ]
start
check debian
check ours
stop
say "$theirs serves what both wrote: passed"
