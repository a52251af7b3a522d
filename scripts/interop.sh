#!/usr/bin/env bash
# Runs the published Go clients and a plugin in Go against qrmd; ends with 77 (skipped) where there is no Go or no
# module proxy.
#   scripts/interop.sh [DIRECTORY OF THE BUILT PROGRAMS [PACKAGE...]]
set -euo pipefail

cd "$(dirname "$0")/.."
bin=${1:-$PWD/build/release/bin}
shift || true
export PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
  echo "skipped: there is no Go toolchain; install Go 1.26 to run test/interop"
  exit 77
fi
for program in qrmd qrmctl interop_runtime; do
  if [ ! -x "$bin/$program" ]; then
    echo "cannot run $bin/$program: it is not built; run: scripts/build.sh release $program" >&2
    exit 1
  fi
done

# Go code of our own protos, beside which the published modules need none.
generate() {
  local name proto=$1 package=$2
  name=qrm.local/test/interop/wire/$package
  protoc --plugin="$(go -C test/interop tool -n protoc-gen-go)" \
    --plugin="$(go -C test/interop tool -n protoc-gen-go-grpc)" \
    --go_out=test/interop --go_opt=module=qrm.local/test/interop --go_opt="M$proto=$name" \
    --go-grpc_out=test/interop --go-grpc_opt=module=qrm.local/test/interop --go-grpc_opt="M$proto=$name" "$proto"
}

if ! (cd test/interop && go mod download); then
  echo "skipped: Go's module proxy cannot be reached, and the modules are not in its cache"
  exit 77
fi
generate api/proto/resourceplugin/v1alpha1/api.proto resourceplugin
generate api/proto/podresources/v1/api.proto podresources
cd test/interop
QRM_BIN_DIR=$bin go test -count=1 -p 1 "${@:-./...}"
