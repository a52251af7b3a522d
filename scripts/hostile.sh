#!/usr/bin/env bash
# Attacks qrmd's pod-resources socket, its HTTP ports and its admissions for a while, and compares what admissions, memory
# and another user's calls feel of it with times of peace in the same run: once for each way in which qrmd's threads are
# scheduled (plain, nice, real time). Beside them a bare hand-over between two threads is measured, so that it shows what
# the machine's kernel lets any program have.
#   scripts/hostile.sh [seconds of each]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release qrmd qrmctl interop_runtime handover
QRM_HOSTILE_SECONDS=${1:-60} exec scripts/interop.sh "$PWD/build/release/bin" -v -timeout 1h ./hostile
