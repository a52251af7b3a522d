#!/usr/bin/env bash
# Twenty pods come and go each second; prints each minute what qrmd and its plugins take and how soon pods start, and at
# the end whether that is flat from minute 5 on.
#   scripts/soak.sh [minutes]
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/build.sh release test_soak
exec build/release/bin/test_soak --minutes="${1:-30}"
