#!/usr/bin/env bash
# Has qrmd publish its node to an unmodified kube-apiserver with the published CRD of NodeResourceTopology; ends with 77
# (skipped) where there is no Go or no module proxy. The objects are read by their publishers' own Go types; an unmodified
# kube-scheduler places pods by them through qrm-scheduler, as qrmd then admits.
#   test/e2e/publish.sh BUILD_DIRECTORY
# QRM_REST_SECONDS: for how long nothing may be written while nothing changes (5).
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export PATH=$PATH:/usr/local/go/bin
programs=$(scripts/kubernetes.sh)
minutes=$((10 + ${QRM_REST_SECONDS:-0} / 60))
QRM_APISERVER_DIR=$programs QRM_BIN_DIR=$build/bin go -C test/interop/chart test -count=1 -timeout "${minutes}m" -run '^TestPublish(|edNodeIsScheduledAsItAdmits)$' -v .
