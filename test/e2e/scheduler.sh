#!/usr/bin/env bash
# Lets an unmodified kube-scheduler, with a kube-apiserver and an etcd of its own, schedule pods by qrm-scheduler; ends
# with 77 (skipped) where there is no Go or no module proxy.
#   test/e2e/scheduler.sh BUILD_DIRECTORY
# With QRM_RECORD_DIR, the first request of each verb is written there: test/vectors/extender was made so.
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export PATH=$PATH:/usr/local/go/bin
programs=$(scripts/kubernetes.sh)
QRM_APISERVER_DIR=$programs QRM_BIN_DIR=$build/bin go -C test/interop/chart test -count=1 -run '^TestScheduler(|PreemptsWhereItHelps|PreemptsForAnExtendedResourceAlone|RequeuesAPodThatWasPlacedByAnOlderView|CountsWhatAShrinkingPodStillHas|FollowsTheProposalsExample|HandsItsLeaseOver|FollowsARestoredEtcd)$' -v .
