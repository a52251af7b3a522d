#!/usr/bin/env bash
# Twenty pods come and go each second. Prints each minute the resources of qrmd and its plugins and the start times of
# pods, and at the end whether they are constant from minute 5 on.
#   scripts/soak.sh [minutes]
#   scripts/soak.sh churn [pods]   so many pods, each with texts of its own (200,000): memory and files end as they began
set -euo pipefail

cd "$(dirname "$0")/.."
if [ "${1:-}" = churn ]; then
  scripts/build.sh release test_churn
  QRM_CHURN_PODS=${2:-200000} exec build/release/bin/test_churn
fi
scripts/build.sh release test_soak
exec build/release/bin/test_soak --minutes="${1:-30}"
