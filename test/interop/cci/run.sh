#!/usr/bin/env bash
# The compute driver in Python keeps every rule; ends with 77 (skipped) where python.sh does.
#   run.sh BUILD_DIR
set -euo pipefail

bin=$1/bin
work=$(mktemp -d /tmp/qrm-cci.XXXXXX)
trap 'kill "$driver" 2>/dev/null || true; rm -rf "$work"' EXIT

here=$(dirname "$0")
"$here/../python.sh" "$work/modules" "$here/driver.py" "$work/python.sock" &
driver=$!
for ((i = 0; i < 400; i++)); do
  [ -S "$work/python.sock" ] && break
  kill -0 "$driver" 2>/dev/null || wait "$driver"  # and end as it did
  sleep 0.05
done
"$bin/qrm-plugin-check" "$work/python.sock" --cci --amount 2 --machine "synthetic:package:1 [numa] core:8 pu:1"
