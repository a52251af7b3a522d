#!/usr/bin/env bash
# Plays two hundred thousand random steps of a node's life, kills, losses and failures among them, and compares qrmd after
# each with a model of it; before, a hundred thousand of compute drivers beside the cpu plugin, and ten thousand pods that
# qrm-scheduler's filter and the cores of two hundred nodes judge.
#   scripts/model.sh [steps [seed]]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_model test_manager_admission_unit test_scheduler_topology_unit
QRM_DRIVER_STEPS=25000 build/release/bin/test_manager_admission_unit --gtest_brief=1 --gtest_filter='*DriverModel*'
QRM_AGREEMENT_PODS=10000 build/release/bin/test_scheduler_topology_unit --gtest_brief=1 --gtest_filter='NodeAgreementTest.*'
exec build/release/bin/test_model --steps="${1:-200000}" --seed="${2:-1}"
