#!/usr/bin/env bash
# Builds one preset (release, debug, asan-ubsan, tsan, alone); binaries land in build/<preset>/bin.
#   scripts/build.sh [preset [target...]]
# Progress is one line on a terminal, elsewhere a line for each tenth.
set -euo pipefail

cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
case $preset in
  release | debug | asan-ubsan | tsan | alone) ;;
  *)
    echo "cannot build preset \"$preset\"; use release, debug, asan-ubsan, tsan or alone" >&2
    exit 2
    ;;
esac
# A checkout takes from ccache what another one has compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
cmake --preset "$preset" >"/tmp/qrm-configure.$$" || { cat "/tmp/qrm-configure.$$"; rm -f "/tmp/qrm-configure.$$"; exit 1; }
rm -f "/tmp/qrm-configure.$$"
targets=()
for target in "$@"; do
  targets+=(--target "$target")
done
if [ -t 1 ]; then
  cmake --build --preset "$preset" "${targets[@]}"
else
  cmake --build --preset "$preset" "${targets[@]}" | awk '
    /^\[[0-9]+\/[0-9]+\]/ {
      split(substr($1, 2), of, /[\/\]]/)
      if (int(10 * of[1] / of[2]) > tenth) {
        tenth = int(10 * of[1] / of[2])
        print "built " of[1] " of " of[2] " parts"
        fflush()
      }
      next
    }
    { print; fflush() }'
fi
