#!/usr/bin/env bash
# Kills qrmd a thousand times while pods come and go, and checks after each restart that nothing was lost; then takes the
# power from the checkpoint's disk as often, which forgets and reorders what was not synced. And kills it at each of its
# writes while containers of a compute driver come and go.
#   scripts/crash.sh [rounds [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
rounds=${1:-1000}
seed=${2:-1}
scripts/build.sh release test_crash test_checkpoint_unit test_e2e_e2e
build/release/bin/test_crash --rounds="$rounds" --seed="$seed"
# 500 power losses at a time.
build/release/bin/test_checkpoint_unit --gtest_brief=1 --gtest_filter='*PowerGoes*' \
  --gtest_shuffle --gtest_random_seed="$seed" --gtest_repeat=$(((rounds + 499) / 500))
QRM_DRIVER_KILLS=1 build/release/bin/test_e2e_e2e --gtest_brief=1 --gtest_filter='DriverKillTest.*'
