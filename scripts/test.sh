#!/usr/bin/env bash
# README command two: installs what is missing, builds, and runs every test. As root it also runs the tests on a real
# containerd; without root those say that they were skipped.
#   scripts/test.sh [ctest arguments...]      for example: scripts/test.sh -L unit
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/deps.sh
scripts/build.sh release
ctest --preset release "$@"
