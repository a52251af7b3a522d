#!/usr/bin/env bash
# Creates many pods at once (500 of 2 containers by 16 clients). Checks that qrmd knows each of them, and that the runtime
# never waits too long for qrmd.
#   scripts/load.sh [scripted|containerd [test_load arguments...]]      default: scripted
# `containerd` creates real containers, as root: that takes minutes and gigabytes; try --pods=50 first.
set -euo pipefail

cd "$(dirname "$0")/.."
runtime=${1:-scripted}
shift || true
scripts/build.sh release test_load qrm-probe
bin=$PWD/build/release/bin
case $runtime in
  scripted)
    "$bin/test_load" --plugins=builtin "$@"
    "$bin/test_load" --plugins=processes --hang "$@"
    ;;
  containerd)
    scripts/containerd.sh run --probe "$bin/qrm-probe" -- "$bin/test_load" --runtime=containerd "$@"
    ;;
  *)
    echo "cannot load \"$runtime\"; use scripted or containerd" >&2
    exit 2
    ;;
esac
