#!/usr/bin/env bash
# Has qrm-scheduler, with an author's resource in it, follow 5,000 nodes and 100,000 pods of an unmodified kube-apiserver.
# Measures its memory, its CPU time, what its filter adds to an extender that accepts all, and how often a pod is tried again
# because kube-scheduler's view of a node was older. Ends with 77 (skipped) where there is no Go or no module proxy.
# It takes some 4 GB and minutes: QRM_SCALE_NODES and QRM_SCALE_PODS make it smaller.
#   test/e2e/scheduler_scale.sh BUILD_DIRECTORY
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export PATH=$PATH:/usr/local/go/bin
programs=$(scripts/kubernetes.sh)
QRM_APISERVER_DIR=$programs QRM_BIN_DIR=$build/bin go -C test/interop/chart test -count=1 -timeout 40m -run '^TestSchedulerAtScale$' -v .
