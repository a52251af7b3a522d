#!/usr/bin/env bash
# Loads the chart's admission policies into an unmodified kube-apiserver, which it builds of Go modules and keeps in
# build/cache; ends with 77 (skipped) where there is no Go or no module proxy.
#   test/e2e/admission_policy.sh BUILD_DIRECTORY
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
source test/e2e/kubernetes_programs.sh
QRM_APISERVER_DIR=$programs QRM_BIN_DIR=$build/bin go -C test/interop/chart test -count=1 -run TestApiServer -v .
