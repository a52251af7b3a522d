#!/usr/bin/env bash
# Runs the published Go clients and a plugin in Go against qrmd, and renders the Helm chart; ends with 77 (skipped) where
# there is no Go or no module proxy.
#   scripts/interop.sh [DIRECTORY OF THE BUILT PROGRAMS [PACKAGE OF test/interop...]]
#   scripts/interop.sh DIRECTORY katalyst_core    Katalyst's own plugins, reporter and ORM; builds them first, 3 min
set -euo pipefail

cd "$(dirname "$0")/.."
bin=${1:-$PWD/build/release/bin}
shift || true
export PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
  echo "skipped: there is no Go toolchain; install Go 1.26 to run test/interop"
  exit 77
fi
for program in qrmd qrmctl interop_runtime handover; do
  if [ ! -x "$bin/$program" ]; then
    echo "cannot run $bin/$program: it is not built; run: scripts/build.sh release $program" >&2
    exit 1
  fi
done

# The modules of one may be there while the proxy does not give those of the other.
fetch() {
  go -C "$1" mod download || { echo "skipped: Go's module proxy does not give the modules of $1, nor are they in its cache"; false; }
}

export QRM_BIN_DIR=$bin
if [ "${1:-}" = katalyst_core ]; then
  fetch test/interop/katalyst_core || exit 77
  exec go -C test/interop/katalyst_core test -count=1 ./...
fi
if [ $# -gt 0 ]; then
  fetch test/interop || exit 77
  exec go -C test/interop test -count=1 -p 1 "$@"
fi
result=77
# Upstream's clients, the Katalyst fork that goes by the same module name, and Helm.
for module in test/interop test/interop/katalyst test/interop/chart; do
  if fetch "$module"; then
    go -C "$module" test -count=1 -p 1 ./...
    result=0
  fi
done
exit $result
