#!/usr/bin/env bash
# Plays two hundred thousand random steps of a node's life, kills, losses and failures among them, and compares qrmd after
# each with a model of it; before, a hundred thousand of compute drivers beside the cpu plugin.
#   scripts/model.sh [steps [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_model test_manager_admission_unit
QRM_DRIVER_STEPS=25000 build/release/bin/test_manager_admission_unit --gtest_brief=1 --gtest_filter='*DriverModel*'
exec build/release/bin/test_model --steps="${1:-200000}" --seed="${2:-1}"
