#!/usr/bin/env bash
# Kills qrm-scheduler fifty times while pods come and go, others bind three of ten of them, answers to bindings are lost
# or late, watches are cut or too old, and the API server is restarted. No node may ever have more pods than fit, and in
# the end the cache equals a new one. Ends with 77 (skipped) where there is no Go or no module proxy.
#   test/e2e/scheduler_chaos.sh BUILD_DIRECTORY
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export PATH=$PATH:/usr/local/go/bin
programs=$(scripts/kubernetes.sh)
QRM_APISERVER_DIR=$programs QRM_BIN_DIR=$build/bin go -C test/interop/chart test -count=1 -run '^TestSchedulerNeverOvercommits$' -v .
