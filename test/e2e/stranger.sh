#!/usr/bin/env bash
# The steps of a plugin's author: from the installed SDK to a pod that got the plugin's variable, by the commands of
# docs/plugins.md; ends with 77 (skipped) where namespaces cannot be created.
#   test/e2e/stranger.sh BUILD_DIR
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
if [ "${QRM_STRANGER:-}" != inside ]; then
  unshare --mount true 2>/dev/null || { echo "skipped: this user may not make namespaces; run as root"; exit 77; }
  exec env QRM_STRANGER=inside unshare --mount --propagation private "$0" "$build"
fi
# The directories that the page names, private to this process.
mount -t tmpfs -o mode=755 tmpfs /opt
mkdir -p /var/lib/qrm
mount -t tmpfs -o mode=755 tmpfs /var/lib/qrm
mkdir -p /run/qrm
mount -t tmpfs -o mode=755 tmpfs /run/qrm
work=$(mktemp -d /tmp/qrm-stranger.XXXXXX)
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
page=$PWD/docs/plugins.md
tree=$PWD
export PATH=$PATH:$build/bin
. test/e2e/played_node.sh

# The first block of the page in language $1 that has $2 in it.
block() { awk -v fence="^\`\`\`$1\$" -v what="$2" '
  $0 ~ fence { inside = 1; text = ""; next }
  /^```$/ && inside { inside = 0; if (index(text, what)) { printf "%s", text; exit } }
  inside { text = text $0 "\n" }' "$page"; }
# The command of the page that begins with $1, without its comment.
command_of() {
  local line
  line=$(grep -m1 "^$1" "$page" | sed 's/ *# .*//')
  [ -n "$line" ] || fail "docs/plugins.md has no command: $1"
  echo "+ $line" >&2
  echo "$line"
}

# A program with a sanitized SDK is sanitized, too.
sanitizers=$(sed -n 's/^QRM_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
export CXXFLAGS=${sanitizers:+-fsanitize=$sanitizers}

cd "$work"
mkdir -p build lanes
ln -s "$build" build/release
block cpp "class LanePlugin" >lanes/lane_plugin.cc
block cmake "find_package(qrm" >lanes/CMakeLists.txt
cp "$tree/plugins/examples/lanes/lane_plugin_test.cc" lanes
block json '"kind": "Pod"' >pod.json
eval "$(command_of "cmake --install build/release")" >install.log
eval "$(command_of "cmake -S lanes")" >build.log || fail "$(tail -20 build.log)"

# The page's policy keeps every rule, too.
mkdir near
block cpp NearPlugin >near/near_plugin.cc
sed 's/lane_plugin/near_plugin/g; /^enable_testing/,$d' lanes/CMakeLists.txt >near/CMakeLists.txt
cmake -S near -B near/build -DCMAKE_PREFIX_PATH=/opt/qrm >near.log && cmake --build near/build >>near.log ||
  fail "$(tail -20 near.log)"
mkdir near/sockets
qrm-plugin-check near/sockets/memory.sock --machine live \
  --command "exec near/build/near_plugin --plugins-registry-dir near/sockets --state-dir near/state 2>>near.log" >checked ||
  fail "$(cat checked near.log)"

# A node: a simulated runtime, and qrmd with the page's line in its configuration.
play_runtime "$work"
block yaml implicit-resources >qrmd.yaml
echo 'machine: "synthetic:package:2 [numa] core:4 pu:2"' >>qrmd.yaml
played_config "$work" >>qrmd.yaml
await "ls $work" nri.sock
qrmd --simulate --config qrmd.yaml 2>qrmd.log &
started+=($!)
await "qrmctl status || tail -3 qrmd.log" "connected, 1 connect"
eval "$(command_of lanes/build/lane_plugin)" 2>plugin.log &
started+=($!)
await "$(command_of "qrmctl plugins")" "example.com/lane   live"

await "$(command_of "qrmctl admit --dry-run -f pod.json")" "default/model would be admitted"
CONTAINER_RUNTIME_ENDPOINT=unix://$work/cri.sock await "$(command_of "qrmctl play -f pod.json")" "LANE="
echo '{"command": "run", "pod": {"name": "model", "namespace": "default", "labels": {"katalyst.kubewharf.io/pod_role": "inference"}, "containers": [{"name": "main", "milli_cpus": 1000, "memory_bytes": 1048576}]}}' >&3
await "$(command_of "qrmctl pods model")" "LANE="
await "$(command_of "qrmctl explain model")" "example.com/lane:   1 (from configuration)"
echo '{"command": "options", "pod": "model"}' >&3
await "cat answers" '"LANE":'
echo "the pod has its lane"
