#!/usr/bin/env bash
# Builds one preset (release, debug, asan-ubsan, tsan); binaries land in build/<preset>/bin.
#   scripts/build.sh [preset [target...]]
set -euo pipefail

cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
case $preset in
  release | debug | asan-ubsan | tsan) ;;
  *)
    echo "cannot build preset \"$preset\"; use release, debug, asan-ubsan or tsan" >&2
    exit 2
    ;;
esac
# A checkout takes from ccache what another one has compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
cmake --preset "$preset" >"/tmp/qrm-configure.$$" || { cat "/tmp/qrm-configure.$$"; rm -f "/tmp/qrm-configure.$$"; exit 1; }
rm -f "/tmp/qrm-configure.$$"
targets=()
for target in "$@"; do
  targets+=(--target "$target")
done
cmake --build --preset "$preset" "${targets[@]}"
