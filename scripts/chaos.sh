#!/usr/bin/env bash
# Kills qrmd, containerd and a plugin's process at random while real containers come and go. Whenever all run again, checks
# that each container has what qrmd reports, that no CPU has two owners, and that pods are admitted. Needs root.
#   scripts/chaos.sh [minutes [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
bin=$PWD/build/release/bin
scripts/build.sh release qrm-chaos qrm-probe qrmd qrm-plugin-cpu
exec scripts/containerd.sh run --keep-alive --probe "$bin/qrm-probe" -- \
  "$bin/qrm-chaos" --seconds=$((${1:-10} * 60)) --seed="${2:-1}"
