#!/usr/bin/env bash
# Installs, builds and plays the main job: real containers placed and placed anew, then the three
# examples of the QoS Resource Manager proposal on a simulated 80-CPU machine.
#
# Exit 0 when everything was played and as it must be. What this machine lacks for the containers
# (root, cgroups) is said in one sentence; the examples are played all the same, and the exit is 1.
set -euo pipefail

cd "$(dirname "$0")/.."
bin=build/release/bin

section() {
  printf '\n######## %s\n' "$*"
}

section "1. dependencies (Debian packages)"
scripts/deps.sh
section "2. build"
scripts/build.sh release qrmd qrmctl qrm-plugin-cpu qrm-plugin-memory qrm-plugin-nic qrm-probe qrm-main-job

section "3. the main job on real containers (containerd with NRI, in a private directory)"
containers=0
scripts/containerd.sh run --probe "$bin/qrm-probe" -- "$PWD/$bin/qrm-main-job" containers ||
  containers=$?
if ((containers != 0 && containers != 77)); then
  exit "$containers"
fi

section "4. the proposal's examples (simulated runtime)"
work=$(mktemp -d /tmp/qrm.XXXXXX)
trap 'rm -rf "$work"' EXIT
"$bin/qrm-main-job" examples --work-dir "$work"

if ((containers == 77)); then
  echo "run.sh: the main job was not played on real containers; see section 3 for what is missing" >&2
  exit 1
fi
section "done: everything was as it must be"
