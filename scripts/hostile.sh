#!/usr/bin/env bash
# Attacks qrmd's pod-resources socket, its HTTP ports and its admissions for a while. Compares admissions, memory and the
# calls of another user with the same without attacks, for each scheduling of qrmd's threads (plain, nice, real time).
# Beside them, the time of a bare hand-over between two threads is measured: the best that the machine's kernel allows.
#   scripts/hostile.sh [seconds of each]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release qrmd qrmctl interop_runtime handover
QRM_HOSTILE_SECONDS=${1:-60} exec scripts/interop.sh "$PWD/build/release/bin" -v -timeout 1h ./hostile
