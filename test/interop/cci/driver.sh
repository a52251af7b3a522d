#!/usr/bin/env bash
# Serves the compute driver in Python on SOCKET, of the published protos alone; they become modules in WORK_DIR. Ends with
# 77 where Python has no gRPC (python3-grpcio, python3-protobuf).
#   driver.sh SOCKET WORK_DIR
set -euo pipefail

socket=$1 work=$2
root=$(cd "$(dirname "$0")/../../.." && pwd)
python=
for candidate in python3 /usr/bin/python3; do  # the first may be a user's own
  if "$candidate" -c 'import google.protobuf, grpc' 2>/dev/null; then python=$candidate; fi
done
if [ -z "$python" ] || ! command -v grpc_python_plugin >/dev/null; then
  echo "skipped: there is no gRPC for Python; install python3-grpcio and python3-protobuf"
  exit 77
fi
mkdir -p "$work"
protoc -I "$root/api/proto" --python_out="$work" --grpc_python_out="$work" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" \
  "$root/api/proto/cci/v1alpha1/cci.proto" "$root/api/proto/pluginregistration/v1/api.proto"
PYTHONPATH=$work exec "$python" "$root/test/interop/cci/driver.py" "$socket"
