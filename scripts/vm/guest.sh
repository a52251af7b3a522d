#!/usr/bin/env bash
# What the machine of scripts/vm.sh runs as root once it is up: the command, whose output goes out as it comes, then the
# hand-over of its exit status and files.
set -uo pipefail

checkout=$(dirname "$(dirname "$(dirname "$(realpath "$0")")")")
readonly checkout results=/run/qrm-results state=/var/lib/qrm-state

# The device behind a port of the virtual serial board that scripts/vm.sh gave this name; nothing when there is none.
port() {
  local name
  for name in /sys/class/virtio-ports/*/name; do
    [[ ! -e $name || $(<"$name") != "$1" ]] || echo "/dev/$(basename "$(dirname "$name")")"
  done
}

# Disks 3 to 6 of scripts/vm.sh: vdc for results, vdd that may be kept from run to run, vde and vdf to play with.
prepare() {
  modprobe virtio_console
  # The ports come one after another; that of the status is the last.
  until [[ -c $(port qrm.status) ]]; do
    sleep 0.1
  done
  exec >"$(port qrm.output)" 2>&1 </dev/null
  mkdir -p "$results" "$state"
  modprobe virtio_net
  ip address add 10.0.2.15/24 dev eth0
  ip link set eth0 up
  ip route add default via 10.0.2.2
  blkid /dev/vdd >/dev/null || mke2fs -q -t ext4 /dev/vdd
  mount /dev/vdd "$state"
  export HOME=/root TERM=dumb PATH="$checkout/build/release/bin:$PATH"
  export CTEST_OUTPUT_ON_FAILURE=1  # what ctest keeps in files goes with the machine
  export QRM_VM=1 QRM_VM_RESULTS=$results QRM_VM_STATE=$state QRM_VM_DISKS="/dev/vde /dev/vdf" QRM_VM_MONITOR
  QRM_VM_MONITOR=$(port qrm.monitor)
  echo "vm: Linux $(uname -r), CPUs $(</sys/devices/system/cpu/online), NUMA nodes" \
    "$(</sys/devices/system/node/online), $(stat -fc %T /sys/fs/cgroup) on /sys/fs/cgroup"
}

prepare
cd "$checkout/build/release" || exit
bash "$checkout/build/vm-command"
status=$?
cd /
tar -cf /dev/vdc -C "$results" .
sync
echo "$status" >"$(port qrm.status)"
systemctl --no-block start poweroff.target
