#!/usr/bin/env bash
# Plays two hundred thousand random steps of a node's life, kills, losses and failures among them, and compares qrmd after
# each with a model of it.
#   scripts/model.sh [steps [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_model
exec build/release/bin/test_model --steps="${1:-200000}" --seed="${2:-1}"
