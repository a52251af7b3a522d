#!/usr/bin/env bash
# Makes the Debian packages and installs, upgrades, removes and purges them in a root made of Debian's packages, where qrmd
# then does its main job by its unit's command; ends with 77 (skipped) where there is no mmdebstrap or mirror.
#   test/e2e/packages.sh BUILD_DIR
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
command -v mmdebstrap >/dev/null || { echo "skipped: there is no mmdebstrap; scripts/deps.sh --operator installs it"; exit 77; }
if [ "${QRM_PACKAGES:-}" != inside ]; then
  unshare --mount true 2>/dev/null || { echo "skipped: this user may not make namespaces; run as root"; exit 77; }
  exec env QRM_PACKAGES=inside unshare --mount --propagation private "$0" "$build"  # its mounts end with it
fi
work=$(mktemp -d /tmp/qrm-packages.XXXXXX)
root=$work/root
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  umount --lazy "$root/proc" "$root/sys" 2>/dev/null || true
  rm -rf --one-file-system "$work"  # nothing that is mounted there
}
trap finish EXIT
. test/e2e/played_node.sh
inside() { chroot "$root" "$@"; }

pack() { (cd "$build" && cpack -G DEB -B "$work/$1" -D CPACK_PACKAGE_VERSION="$1" >"$work/cpack.log") || fail "$(cat "$work/cpack.log")"; }
pack 0.1.0
pack 0.1.1
ls "$work"/0.1.0/*.deb
# Installed while mmdebstrap still has the lists of packages and the network there.
mmdebstrap --variant=apt --include=ca-certificates \
  --customize-hook="mkdir \"\$1/packages\" && cp $work/0.1.0/*.deb \"\$1/packages\"" \
  --customize-hook="chroot \"\$1\" sh -c 'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    /packages/qrm_*.deb /packages/qrm-plugins_*.deb /packages/qrm-scheduler_*.deb' >$work/apt.log 2>&1 || echo failed >$work/failed" \
  bookworm "$root" >"$work/mmdebstrap.log" 2>&1 ||
  { echo "skipped: no root can be made: $(tail -3 "$work/mmdebstrap.log")"; exit 77; }
[ ! -e "$work/failed" ] || fail "$(tail "$work/apt.log")"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"

# What the page says about the packages' files.
for file in usr/sbin/qrmd usr/bin/qrmctl usr/sbin/qrm-plugin-cpu usr/sbin/qrm-cci-driver usr/sbin/qrm-scheduler etc/qrm/config.yaml \
  usr/lib/systemd/system/qrmd.service usr/lib/systemd/system/qrm-plugin@.service \
  usr/lib/systemd/system/qrm-cci-driver.service usr/share/man/man1/qrmctl-pool-set.1 \
  usr/share/man/man8/qrmd.8 \
  usr/share/bash-completion/completions/qrmctl usr/share/zsh/vendor-completions/_qrmctl \
  usr/share/fish/vendor_completions.d/qrmctl.fish; do
  [ -e "$root/$file" ] || fail "the packages have no /$file"
done
inside qrmd --config=/etc/qrm/config.yaml --check-config
read -ra driver < <(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/qrm-cci-driver.service")
echo "policies: {}" >"$root/etc/qrm/cci.yaml"
inside "${driver[0]}" --check-config "${driver[@]:1}"
rm "$root/etc/qrm/cci.yaml"

# The unit's own command, beside a simulated runtime.
mkdir -p "$root/run/play"
play_runtime "$root/run/play"
played_config /run/play >>"$root/etc/qrm/config.yaml"
await "ls $root/run/play" nri.sock
command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/qrmd.service")
# shellcheck disable=SC2086
chroot "$root" $command 2>"$work/qrmd.log" &
started+=($!)
await "inside qrmctl status" "connected, 1 connect"
echo '{"command": "run", "pod": {"name": "web", "namespace": "default", "containers": [{"name": "main", "milli_cpus": 500, "memory_bytes": 1048576}]}}' >&3
await "inside qrmctl pods" "web"
kill "${started[1]}"
wait "${started[1]}" || fail "qrmd did not end well: $(tail -3 "$work/qrmd.log")"

# An upgrade keeps the configuration and the state; removal does, too; a purge keeps nothing.
cp "$work"/0.1.1/*.deb "$root/packages"
echo "# mine" >>"$root/etc/qrm/config.yaml"
inside sh -c 'dpkg -i /packages/qrm_0.1.1*.deb' >"$work/dpkg.log" 2>&1 || fail "$(cat "$work/dpkg.log")"
inside dpkg-query -W -f '${Version}\n' qrm | grep -qx 0.1.1 || fail "it was not upgraded"
grep -qx "# mine" "$root/etc/qrm/config.yaml" || fail "the upgrade replaced the configuration"
inside qrmctl checkpoint verify | grep -F "1 pod with 1 container"
inside dpkg -r qrm >"$work/dpkg.log" 2>&1 || fail "$(cat "$work/dpkg.log")"
[ ! -e "$root/usr/sbin/qrmd" ] && [ ! -e "$root/usr/bin/qrmctl" ] || fail "removal left programs"
[ -e "$root/etc/qrm/config.yaml" ] && [ -e "$root/var/lib/qrm/state/checkpoint.db" ] || fail "removal took the state"
inside dpkg -P qrm >"$work/dpkg.log" 2>&1 || fail "$(cat "$work/dpkg.log")"
[ ! -e "$root/etc/qrm" ] && [ ! -e "$root/var/lib/qrm" ] || fail "the purge left $(find "$root/etc/qrm" "$root/var/lib/qrm")"
echo "packages are installed, run, upgraded, removed and purged"
