#!/usr/bin/env bash
# Twenty pods come and go each second. Prints each minute the resources of qrmd and its plugins and the start times of
# pods, and at the end whether they are constant from minute 5 on.
#   scripts/soak.sh [minutes]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_soak
exec build/release/bin/test_soak --minutes="${1:-30}"
