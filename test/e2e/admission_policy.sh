#!/usr/bin/env bash
# Loads the chart's admission policies into an unmodified kube-apiserver, which it builds of Go modules and keeps in
# build/cache; ends with 77 (skipped) where there is no Go or no module proxy.
#   test/e2e/admission_policy.sh BUILD_DIRECTORY
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
  echo "skipped: there is no Go toolchain to build a kube-apiserver; install Go 1.26"
  exit 77
fi
for module in test/interop/apiserver test/interop/chart; do
  if ! go -C "$module" mod download; then
    echo "skipped: Go's module proxy does not give the modules of $module, nor are they in its cache"
    exit 77
  fi
done

# Named by what they are built of.
programs=$PWD/build/cache/apiserver-$(cat test/interop/apiserver/go.{mod,sum} | sha256sum | cut -c1-12)
if [[ ! -x $programs/kube-apiserver ]]; then
  mkdir -p build/cache
  work=$(mktemp -d build/cache/apiserver.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  CGO_ENABLED=0 GOBIN=$(realpath "$work") nice go -C test/interop/apiserver install -ldflags '-s -w' tool
  rm -rf "$programs"
  mv "$work" "$programs"
fi
QRM_APISERVER_DIR=$programs QRM_BIN_DIR=$build/bin go -C test/interop/chart test -count=1 -run TestApiServer -v .
