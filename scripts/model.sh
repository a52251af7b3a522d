#!/usr/bin/env bash
# Plays 200,000 random steps of a node's life, with kills, losses and failures, and compares qrmd after each step with a
# model. Before that, 100,000 steps of compute drivers beside the cpu plugin, and 10,000 pods that qrm-scheduler's filter
# and the cores of 200 nodes judge.
#   scripts/model.sh [steps [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_model test_manager_admission_unit test_scheduler_topology_unit
QRM_DRIVER_STEPS=25000 build/release/bin/test_manager_admission_unit --gtest_brief=1 --gtest_filter='*DriverModel*'
QRM_AGREEMENT_PODS=10000 build/release/bin/test_scheduler_topology_unit --gtest_brief=1 --gtest_filter='NodeAgreementTest.*'
exec build/release/bin/test_model --steps="${1:-200000}" --seed="${2:-1}"
