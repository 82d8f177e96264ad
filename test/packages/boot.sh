#!/usr/bin/env bash
# Boot a Debian root with systemd as process 1, install our packages in it, and use a node as the handbook says.
#
#   sudo test/packages/boot.sh DIRECTORY_WITH_DEBS [ROOT]
#
# The commands are those of "A node from packages" in doc/howto/install.md. Then every server and daemon runs under
# the unit names of Debian and of RDO, a reload loses no request, a broken configuration is refused, and a boot
# starts everything. ROOT is made with debootstrap where it does not exist; it is kept, so that a second run is
# quicker. Needs root, debootstrap, a Debian mirror, and a kernel that lets root make namespaces.
set -euo pipefail
debs=$(realpath "$1")
root=${2:-/var/tmp/swift-boot}
suite=${SUITE:-bookworm}
pages=$(dirname "$(realpath "$0")")/../../doc/howto
page=$pages/install.md
disks="d1 d2 d3"

say() { echo "boot: $*"; }
environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C)
offline() { chroot "$root" /usr/bin/env "${environment[@]}" "$@"; }

if [ ! -d "$root/etc" ]; then
    say "making $root"
    debootstrap --variant=minbase --include=ca-certificates,curl,dbus,iproute2,procps,systemd-sysv "$suite" "$root" \
        >/dev/null
fi
mkdir -p "$root/debs"
rm -f "$root"/debs/*
cp "$debs"/*.deb "$root/debs/"
rm "$root"/debs/swift-aio_* "$root"/debs/swift-tools_*
# The booted root has no network: what the packages depend on is fetched before.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
offline sh -c 'apt-get update && apt-get install --yes memcached && apt-get purge --yes "swift*" "python3-swift*"
    rm -rf /etc/swift /srv/node /var/log/journal /etc/systemd/system/*swift*
    rm -rf /srv/cache /srv/ssd /ssd /var/log/swift/audit
    apt-get install --yes --no-install-recommends --download-only /debs/*.deb' >/dev/null 2>&1

# Debian has an older lmdb.
version=$(offline apt-cache show python3 | sed -n 's/^Version: \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
python3 -m pip install --quiet --upgrade --only-binary :all: --python-version "$version" \
    --target "$root/usr/local/lib/python$version/dist-packages" 'lmdb>=2.1.1'

rm "$root/usr/sbin/policy-rc.d"
groups=$(mktemp -d)
mount -t cgroup2 cgroup2 "$groups"
group=$groups/swift-boot-$$
master=
# Make process 1 of namespaces of its own; its root has the file systems that systemd expects.
start() {
    mkdir -p "$group"
    # shellcheck disable=SC2016
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
        unshare --cgroup --mount --pid --net --uts --ipc --fork --kill-child sh -euc '
            mount --make-rprivate /
            mount --bind "$0" "$0"
            mount -t proc proc "$0/proc"
            mount -t sysfs sysfs "$0/sys"
            mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
            for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$0/$folder"; done
            chmod 1777 "$0/tmp"
            for device in null zero full random urandom tty; do
                : >"$0/dev/$device"
                mount --bind "/dev/$device" "$0/dev/$device"
            done
            ln -s /proc/self/fd "$0/dev/fd"
            mkdir "$0/dev/shm" "$0/dev/pts"
            mount -t devpts -o newinstance,ptmxmode=666 devpts "$0/dev/pts"
            ln -s pts/ptmx "$0/dev/ptmx"
            mount -t tmpfs tmpfs "$0/dev/shm"
            for disk in $1; do
                mkdir -p "$0/srv/node/$disk"
                mount -t tmpfs tmpfs "$0/srv/node/$disk"
            done
            hostname node
            ip link set lo up
            cd "$0"
            pivot_root . mnt
            umount --lazy /mnt
            exec env -i container=other /lib/systemd/systemd --log-target=null --show-status=0
        ' "$root" "$disks" >/dev/null 2>"$root/var/log/boot" </dev/null &
    master=$!
    for _ in $(seq 300); do
        case $(inside systemctl is-system-running 2>/dev/null) in running | degraded) return 0 ;; esac
        sleep 0.1
    done
    cat "$root/var/log/boot" >&2
    say "systemd did not boot" >&2
    return 1
}
inside() {
    nsenter --target "$(pgrep --parent "$master" | head -n 1)" --mount --pid --net --uts --ipc --cgroup --root --wd \
        env -i "${environment[@]}" HOME=/root "$@"
}
stop() {
    [ -n "$master" ] || return 0
    inside systemctl poweroff --force --force >/dev/null 2>&1 || true
    kill -KILL "$master" 2>/dev/null || true
    wait "$master" 2>/dev/null || true
    master=
}
finish() {
    status=$?
    [ "$status" = 0 ] || [ -z "$master" ] || inside journalctl --no-pager --lines 60 >&2 || true
    stop
    for _ in $(seq 50); do
        find "$groups" -depth -type d -path "$group*" -exec rmdir {} + 2>/dev/null && break
        sleep 0.1
    done
    umount "$groups" && rmdir "$groups"
}
trap finish EXIT
fail() { say "$*" >&2; exit 1; }

start
say "systemd $(inside systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p') runs"
inside sh -c 'apt-get install --yes --no-install-recommends /debs/*.deb' >"$root/var/log/install" 2>&1 ||
    { cat "$root/var/log/install" >&2; fail "the packages were not installed"; }
inside sh -c 'cd /lib/systemd/system && systemctl start $(ls swift*.service | grep -vE "@|swift-daemons")' >&2 ||
    fail "a unit of a node without a configuration failed"
# systemd finds nothing to say about any unit as it is installed.
# shellcheck disable=SC2016
inside sh -ec 'systemd-analyze verify --man=no $(cd /lib/systemd/system && ls swift* | sed "s/@\\./@1./") 2>&1 |
    { ! grep -i swift; }' >&2 || fail "systemd complains about units"

# Run the commands of the page: what follows the prompts of its blocks.
sed -n '/^### A node from packages/,/^## /p' "$page" | sed -n 's/^[#>] \(.*\)/\1/p' | grep -v '^## ' >"$root/var/tmp/page.sh"
[ "$(wc -l <"$root/var/tmp/page.sh")" -gt 10 ] || fail "$page has no commands"
inside sh -c "chown swift:swift /srv/node/*"
inside sh -eu /var/tmp/page.sh >"$root/var/log/page" 2>&1 || { cat "$root/var/log/page" >&2; fail "the page does not work"; }

units=$(inside sh -c 'cd /lib/systemd/system && ls swift*.service' | grep -vE '@|s3-|drive-audit|recon-cron|verify|history|layout-|reconciler|swift-daemons')
check() { # when
    local unit
    for unit in $units; do
        [ "$(inside systemctl is-active "$unit")" = active ] || fail "$unit is not active $1"
    done
    [ -z "$(inside systemctl --failed --quiet)" ] || { inside systemctl --failed >&2; fail "units failed $1"; }
}
check "after the start"
for name in swift-object-server openstack-swift-object openstack-swift-container-sharder swift-account; do
    inside systemctl is-active --quiet "$name" || fail "$name is no name of an active unit"
done
say "$(echo "$units" | wc -l) services are active"

key=$(inside sed -n 's/^user_test_tester = \([^ ]*\).*/\1/p' /etc/swift/proxy-server.conf)
token() { inside curl -si -H 'X-Auth-User: test:tester' -H "X-Auth-Key: $key" http://127.0.0.1:8080/auth/v1.0 |
    sed -n 's/^X-Auth-Token: *//Ip' | tr -d '\r'; }
client() { inside curl -sf -o /dev/null --max-time 20 -H "X-Auth-Token: $token" "$@"; }
url=http://127.0.0.1:8080/v1/AUTH_test/books
token=$(token)
client -X PUT "$url"
seq 100000 >"$root/var/tmp/numbers"
client -T /var/tmp/numbers "$url/numbers"

# A template reads its own file.
inside sh -ec 'mkdir /etc/swift/object-server
    sed "s/^bind_port = .*/bind_port = 6210/" /etc/swift/object-server.conf >/etc/swift/object-server/1.conf
    systemctl start swift-object@1
    curl -sf http://127.0.0.1:6210/healthcheck' >/dev/null || fail "swift-object@1 does not start"

# Requests go on while everything reloads, in the same processes.
masters() { inside sh -c 'for kind in proxy account container object; do
    systemctl show --property MainPID --value swift-$kind; done'; }
before=$(masters)
while [ ! -e "$root/var/tmp/reloaded" ]; do
    client "$url/numbers" && echo ok || echo failed
done >"$root/var/log/requests" &
requests=$!
for kind in proxy account container object object@1; do inside systemctl reload "swift-$kind"; done
touch "$root/var/tmp/reloaded"
wait "$requests"
rm "$root/var/tmp/reloaded"
[ "$before" = "$(masters)" ] || fail "a reload made new processes"
if grep -q failed "$root/var/log/requests"; then fail "a request failed during reloads"; fi
[ "$(wc -l <"$root/var/log/requests")" -gt 0 ] || fail "there was no request during reloads"
inside journalctl --unit swift-proxy --no-pager | grep Reloading >/dev/null || fail "the journal lacks the reload"
inside journalctl --unit swift-proxy --no-pager | grep 'PUT /v1/AUTH_test/books/numbers' >/dev/null ||
    fail "the journal lacks the request"
# A mistake is refused; the service goes on.
inside sh -c 'cd /etc/swift && cp -p proxy-server.conf /var/tmp/ && sed -i "s/^pipeline = .*/pipeline = absent/" proxy-server.conf'
if inside systemctl reload swift-proxy 2>/dev/null; then fail "a broken configuration was reloaded"; fi
client "$url/numbers" || fail "a refused reload ended the proxy"
inside cp -p /var/tmp/proxy-server.conf /etc/swift/
say "reloads lose no request, and refuse a mistake"

# Directories that pages name can be written to under the units. The block of the audit log is pasted.
sed -n '/^## Audit log/,/^| field/p' "$pages/usage.md" | sed -n '/^```sh/,/^```/p' | grep -v '^```' >"$root/var/tmp/audit.sh"
inside sh -eu /var/tmp/audit.sh >&2 || fail "the block of the audit log does not work"
client -X PUT "$url-audited"
for _ in $(seq 50); do
    inside grep -q books-audited /var/log/swift/audit/audit.log 2>/dev/null && break
    sleep 0.1
done
inside grep -q books-audited /var/log/swift/audit/audit.log || fail "the audit log has no line"
objects="swift-object swift-object-auditor swift-object-compactor swift-object-replicator swift-object-updater"
restart_objects() {
    # shellcheck disable=SC2086
    inside systemctl restart $objects || fail "object services do not start $1"
    client "$url/numbers" || fail "an object cannot be read $1"
    client -T /var/tmp/numbers "$url/other" || fail "an object cannot be stored $1"
}
inside install -d -o swift -g swift /srv/cache/swift /srv/ssd/index /ssd/index
inside sh -c 'printf "\n[cache-tier]\nenabled = true\nsize_mb = 1024\n" >>/etc/swift/object-server.conf'
restart_objects "with the cache tier"
[ -n "$(inside ls -A /srv/cache/swift)" ] || fail "the cache tier is empty"
inside sed -i '/^enabled = true/d' /etc/swift/object-server.conf
pack=$(sed -n '/^## Try it on one node/,$p' "$pages/packed.md" | sed -n '/^sed /p' | head -n 1)
inside sh -euc "$pack"
inside sh -c 'printf "\n[packed]\nindex_path = /srv/ssd/index\n" >>/etc/swift/object-server.conf'
restart_objects "with an index below /srv"
[ -n "$(inside ls -A /srv/ssd/index)" ] || fail "the index is not on the SSD"
# Elsewhere the check names the unit, and the command lets it write there.
inside sh -c "systemctl stop $objects; sed -i 's#^index_path = .*#index_path = /ssd/index#' /etc/swift/object-server.conf"
inside swift-object-server /etc/swift/object-server.conf --test-config 2>"$root/var/log/check" &&
    fail "the check does not find that the unit may not write"
grep -q 'may not write to /ssd/index; run swift-config --units' "$root/var/log/check" || fail "$(cat "$root/var/log/check")"
inside sh -euc 'swift-config --units && systemctl daemon-reload' >"$root/var/log/check" 2>&1 || fail "$(cat "$root/var/log/check")"
inside swift-object-server /etc/swift/object-server.conf --test-config || fail "the check fails with the drop-ins"
restart_objects "with an index elsewhere"
[ -n "$(inside ls -A /ssd/index)" ] || fail "the index is not where the configuration says"
[ -z "$(inside systemctl --failed --quiet)" ] || { inside systemctl --failed >&2; fail "units failed with directories of their own"; }
say "directories of the configuration can be written to under the units"

# All daemons in one process end those of the units, and are ended by them.
inside systemctl start swift-daemons || fail "the daemons do not start in one process"
for _ in $(seq 200); do
    left=$(inside sh -c "systemctl is-active $objects swift-container-replicator | grep -c -e ^active -e ^deactivating") || true
    [ "$left" = 1 ] && break
    sleep 0.1
done
[ "$left" = 1 ] || fail "$left units of objects run beside all daemons in one process, not the server alone"
[ "$(inside systemctl is-active swift-daemons)" = active ] || fail "the process of all daemons has ended"
# shellcheck disable=SC2086
inside systemctl start $objects || fail "the units do not start after all daemons in one process"
[ "$(inside systemctl is-active swift-daemons)" != active ] || fail "daemons run twice"
say "all daemons run in one process, or each in its own"

for name in recon-cron health-history; do
    inside systemctl start "swift-$name" || fail "swift-$name fails"
done
inside test -s /var/lib/swift/capacity.jsonl -a -s /var/cache/swift/capacity.prom || fail "there is no forecast"

inside systemctl stop swift.target
for unit in $units swift-object@1.service; do
    for _ in $(seq 100); do
        state=$(inside systemctl is-active "$unit") || true
        [ "$state" != active ] && [ "$state" != deactivating ] && break
        sleep 0.1
    done
    [ "$state" = inactive ] || fail "$unit is $state after the stop"
done
[ -z "$(inside systemctl --failed --quiet)" ] || { inside systemctl --failed >&2; fail "units failed when they stopped"; }
say "everything stopped"

stop
start
check "after a boot"
say "everything started at boot; passed"
