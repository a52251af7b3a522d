#!/usr/bin/env bash
# Starts qrmd on two thousand damaged databases, and checks that it is ready within two seconds and deletes nothing.
#   scripts/damage.sh [rounds [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_damage
exec build/release/bin/test_damage --rounds="${1:-2000}" --seed="${2:-1}"
