#!/usr/bin/env bash
# Starts qrmd and plugins on two thousand damaged databases. Checks that they are ready within two seconds and delete
# nothing, that no container loses CPUs to another container, and that pods are admitted.
#   scripts/damage.sh [rounds [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_damage
exec build/release/bin/test_damage --rounds="${1:-2000}" --seed="${2:-1}"
