#!/usr/bin/env bash
# Loads the chart's admission policies into an unmodified kube-apiserver, of scripts/kubernetes.sh; ends with 77 (skipped)
# where that does.
#   test/e2e/admission_policy.sh BUILD_DIRECTORY
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export PATH=$PATH:/usr/local/go/bin
programs=$(scripts/kubernetes.sh)
QRM_APISERVER_DIR=$programs QRM_BIN_DIR=$build/bin go -C test/interop/chart test -count=1 -run TestApiServer -v .
