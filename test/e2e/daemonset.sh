#!/usr/bin/env bash
# Runs the chart's pod, of the image that scripts/image.sh makes, on a real containerd; ends with 77 (skipped) where there
# is no Go, no module proxy, or where the machine cannot run containers.
#   test/e2e/daemonset.sh BUILD_DIRECTORY
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$1
export PATH=$PATH:/usr/local/go/bin
scripts/containerd.sh check
if ! command -v go >/dev/null || ! go -C test/interop/chart mod download; then
  echo "skipped: there is no Go toolchain, or its module proxy does not give the modules of test/interop/chart"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/image.sh "$work/image.tar" "$build"
go -C test/interop/chart test -c -o "$work/chart.test" .
# The test finds the chart from its folder.
cd test/interop/chart
QRM_IMAGE_ARCHIVE=$work/image.tar "$OLDPWD/scripts/containerd.sh" run --cache "$OLDPWD/build/cache" --probe "$build/bin/qrm-probe" \
  --image "$work/image.tar" -- "$work/chart.test" -test.run 'TestPodOnNode|TestImage' -test.v
