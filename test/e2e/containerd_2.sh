#!/usr/bin/env bash
# The main job and the tests of label e2e that need a real containerd, beside containerd 2, with this machine's runc. Ends
# with 77 (skipped) where there is no Go, no module proxy, or where the machine cannot run containers.
#   test/e2e/containerd_2.sh BUILD_DIRECTORY
set -euo pipefail

cd "$(dirname "$0")/../.."
bin=$(realpath "$1")/bin
scripts/containerd.sh check
programs=$(scripts/kubernetes.sh containerd)
"$programs/containerd" --version

# beside [OPTION OF containerd.sh...] -- COMMAND [ARG...]
beside() { scripts/containerd.sh run --programs "$programs" --probe "$bin/qrm-probe" "$@"; }

beside -- "$bin/qrm-main-job" --reconcile-period-ms 1000 containers
beside -- "$bin/test_e2e_containerd"
beside -- "$bin/test_e2e_classes"
beside --keep-alive -- "$bin/test_e2e_resync"
