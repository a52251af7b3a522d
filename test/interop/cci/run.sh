#!/usr/bin/env bash
# A compute driver in Python keeps every rule; ends with 77 (skipped) where Python has no gRPC (python3-grpcio).
#   run.sh SOURCE_DIR BUILD_DIR
set -euo pipefail

source_dir=$1
bin=$2/bin
python=
for candidate in python3 /usr/bin/python3; do  # the first may be a user's own
  if "$candidate" -c 'import google.protobuf, grpc' 2>/dev/null; then python=$candidate; fi
done
if [ -z "$python" ] || ! command -v grpc_python_plugin >/dev/null; then
  echo "skipped: there is no gRPC for Python; install python3-grpcio and python3-protobuf"
  exit 77
fi
work=$(mktemp -d /tmp/qrm-cci.XXXXXX)
driver=
trap '[ -z "$driver" ] || kill "$driver"; rm -rf "$work"' EXIT

protoc -I "$source_dir/api/proto" --python_out="$work" --grpc_python_out="$work" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" \
  "$source_dir/api/proto/cci/v1alpha1/cci.proto" "$source_dir/api/proto/pluginregistration/v1/api.proto"

PYTHONPATH=$work "$python" "$source_dir/test/interop/cci/driver.py" "$work/python.sock" &
driver=$!
for ((i = 0; i < 200; i++)); do
  [ -S "$work/python.sock" ] && break
  sleep 0.05
done
"$bin/qrm-plugin-check" "$work/python.sock" --cci --amount 2 --machine "synthetic:package:1 [numa] core:8 pu:1"
