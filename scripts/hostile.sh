#!/usr/bin/env bash
# Attacks qrmd's pod-resources socket for a while, and compares what admissions, memory and another user's calls feel of it
# with times of peace in the same run.
#   scripts/hostile.sh [seconds]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release qrmd qrmctl interop_runtime
QRM_HOSTILE_SECONDS=${1:-60} exec scripts/interop.sh "$PWD/build/release/bin" -v ./hostile
