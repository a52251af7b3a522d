#!/usr/bin/env bash
# Kills qrmd a thousand times while pods come and go, and checks after each restart that nothing was lost.
#   scripts/crash.sh [rounds [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_crash
exec build/release/bin/test_crash --rounds="${1:-1000}" --seed="${2:-1}"
