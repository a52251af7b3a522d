#!/usr/bin/env bash
# Runs the published Go clients against qrm's sockets; ends with 77 (skipped) where there is no Go or no module proxy.
#   scripts/interop.sh [INTEROP_NODE]
set -euo pipefail

cd "$(dirname "$0")/.."
node=${1:-$PWD/build/release/bin/interop_node}
export PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
  echo "skipped: there is no Go toolchain; install Go 1.26 to run test/interop"
  exit 77
fi
if [ ! -x "$node" ]; then
  echo "cannot run $node: it is not built; run: scripts/build.sh release interop_node" >&2
  exit 1
fi
cd test/interop
if ! go mod download; then
  echo "skipped: Go's module proxy cannot be reached, and the modules are not in its cache"
  exit 77
fi
QRM_INTEROP_NODE=$node go test -count=1 ./...
