#!/usr/bin/env bash
# Runs the published Go clients and a plugin in Go against qrmd; ends with 77 (skipped) where there is no Go or no
# module proxy.
#   scripts/interop.sh [DIRECTORY OF THE BUILT PROGRAMS [PACKAGE OF test/interop...]]
set -euo pipefail

cd "$(dirname "$0")/.."
bin=${1:-$PWD/build/release/bin}
shift || true
export PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
  echo "skipped: there is no Go toolchain; install Go 1.26 to run test/interop"
  exit 77
fi
for program in qrmd qrmctl interop_runtime; do
  if [ ! -x "$bin/$program" ]; then
    echo "cannot run $bin/$program: it is not built; run: scripts/build.sh release $program" >&2
    exit 1
  fi
done

# Upstream's clients, and the Katalyst fork that goes by the same module name.
modules=(test/interop test/interop/katalyst)
for module in "${modules[@]}"; do
  if ! go -C "$module" mod download; then
    echo "skipped: Go's module proxy cannot be reached, and the modules of $module are not in its cache"
    exit 77
  fi
done
export QRM_BIN_DIR=$bin
if [ $# -gt 0 ]; then
  exec go -C test/interop test -count=1 -p 1 "$@"
fi
for module in "${modules[@]}"; do
  go -C "$module" test -count=1 -p 1 ./...
done
