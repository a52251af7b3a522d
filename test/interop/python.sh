#!/usr/bin/env bash
# Runs a program in Python with the published protos as modules, and nothing else of ours; they are made in WORK_DIR. Ends
# with 77 where Python has no gRPC (python3-grpcio, python3-protobuf).
#   python.sh WORK_DIR PROGRAM [ARG...]
# QRM_PROTOS: their directory, else that of the source tree.
set -euo pipefail

work=$1
shift
protos=${QRM_PROTOS:-$(cd "$(dirname "$0")/../../api/proto" && pwd)}
python=
for candidate in python3 /usr/bin/python3; do  # the first may be a user's own
  if "$candidate" -c 'import google.protobuf, grpc' 2>/dev/null; then python=$candidate; fi
done
if [ -z "$python" ] || ! command -v grpc_python_plugin >/dev/null; then
  echo "skipped: there is no gRPC for Python; install python3-grpcio and python3-protobuf"
  exit 77
fi
mkdir -p "$work"
protoc -I "$protos" --python_out="$work" --grpc_python_out="$work" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" \
  cci/v1alpha1/cci.proto pluginregistration/v1/api.proto resourceplugin/v1alpha1/api.proto
PYTHONPATH=$work exec "$python" "$@"
