#!/usr/bin/env bash
# The steps of a scheduler extension's author: each example outside the tree, against the installed SDK, and its decisions.
# They are built and run in a root that has Debian's packages of libqrm-dev and nothing else, where mmdebstrap makes one. With
# Go, the program also decides for an unmodified kube-scheduler, by the chart's values. Also the example of each version of
# the SDK that was promised.
#   test/e2e/scheduler_stranger.sh BUILD_DIR
set -euo pipefail

cd "$(dirname "$0")/../.."
tree=$PWD
build=$(realpath "$1")
if [ "${QRM_STRANGER:-}" != inside ] && command -v mmdebstrap >/dev/null && unshare --mount true 2>/dev/null; then
  exec env QRM_STRANGER=inside unshare --mount --propagation private "$0" "$build"  # its mount ends with it
fi
# What both this machine and the root have at the same path.
work=$(mktemp -d /tmp/qrm-scheduler-stranger.XXXXXX)
root=
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  if [ -n "$root" ]; then
    umount --lazy "$root$work" && rm -rf --one-file-system "$root"
  fi
  rm -rf --one-file-system "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
await() {  # COMMAND TEXT
  local end=$((SECONDS + 60)) said=
  until said=$(eval "$1" 2>&1) && [[ $said == *"$2"* ]]; do
    [ $SECONDS -lt $end ] || fail "no \"$2\" in: $said"
    sleep 0.1
  done
}
# A program with a sanitized SDK is sanitized, too.
sanitizers=$(sed -n 's/^QRM_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
export CXXFLAGS=${sanitizers:+-fsanitize=$sanitizers}

if [ "${QRM_STRANGER:-}" = inside ]; then
  packages=$(grep -A1 'DEB-SDK_PACKAGE_\(DEPENDS\|RECOMMENDS\)' cmake/QrmPackages.cmake | grep -o '"[^"]*"' | tr -d '" ' | paste -sd,)
  made=$(mktemp -d /tmp/qrm-stranger-root.XXXXXX)
  if mmdebstrap --variant=apt --include="$packages" bookworm "$made" >"$work/root.log" 2>&1; then
    mkdir -p "$made$work"
    mount --bind "$work" "$made$work"
    root=$made
  else
    rm -rf --one-file-system "$made"
  fi
fi
[ -n "$root" ] || echo "left out: the empty root, for want of mmdebstrap, of rights or of a mirror"
# `run` COMMAND [ARG...]: in the root, where there is one.
printf '#!/bin/sh\nexec %s "$@"\n' "${root:+chroot $root}" >"$work/run"
chmod 755 "$work/run"
run() { "$work/run" "$@"; }

cmake --install "$build" --component sdk --prefix "$work/qrm" >"$work/install.log"
cp -r "$tree/scheduler/examples" "$work/examples"
for version in "$tree"/test/vectors/scheduler_sdk/*; do
  promised=$work/promised-$(basename "$version")
  mkdir "$promised"
  cp "$version/power_scheduler.cc.txt" "$promised/power_scheduler.cc"
  cp "$work/examples/power/CMakeLists.txt" "$promised"
done
for project in examples examples/power $(cd "$work" && ls -d promised-*); do
  if ! { run cmake -S "$work/$project" -B "$work/$project/build" -DCMAKE_PREFIX_PATH="$work/qrm" &&
    run cmake --build "$work/$project/build" -j2; } >"$work/build.log" 2>&1; then
    fail "$project: $(tail -30 "$work/build.log")"
  fi
done
lines=$(grep -cv '^ *\(//.*\)\?$' "$work/examples/power/power_scheduler.cc")
[ "$lines" -lt 120 ] || fail "power_scheduler.cc has $lines lines of code"
run "$work/examples/build/example-scheduler" serve --check-config --resources=fake,disk-io,numa | grep -q good || fail "example-scheduler"
grep -q nodediskiostatuses "$work/examples/crds.yaml" || fail "crds.yaml"

mkfifo "$work/objects"
"$build/bin/qrm-api-server" "$work/kubeconfig" <"$work/objects" &
started+=($!)
exec 3>"$work/objects"
put() { echo "$1 $2" >&3; }
pod() { echo '{"metadata": {"namespace": "d", "name": "'"$1"'", "uid": "uid-'"$1"'", "annotations": {"power.example.com/watts": "'"$2"'"}}, "spec": {"containers": [{"name": "c"}]}}'; }
put /api/v1/nodes '{"metadata": {"name": "n1"}}'
put /api/v1/configmaps '{"metadata": {"namespace": "kube-system", "name": "power-budgets"}, "data": {"n1": "400"}}'
put /api/v1/pods "$(pod a 300)"
echo "n1 50" >"$work/watts"
# As values of charts/qrm-scheduler have it.
cat >"$work/config.yaml" <<END
resources: [power]
options: {power: {measurements: $work/watts}}
END
await "ls $work" kubeconfig.ca
"$work/run" "$work/examples/power/build/power-scheduler" serve --config="$work/config.yaml" --kubeconfig="$work/kubeconfig" --lease-name= \
  --address=127.0.0.1:0 --monitor-address=127.0.0.1:0 2>"$work/power.log" &
started+=($!)
await "cat $work/power.log" '"extender serves" port='
port=$(sed -n 's/.*"extender serves" port=\([0-9]*\).*/\1/p' "$work/power.log")
ask() { curl -sf -H "Content-Type: application/json" -d "{\"Pod\": $(pod a 300), \"NodeNames\": [\"n1\"]}" "http://127.0.0.1:$port/filter"; }
await ask '"NodeNames":["n1"]'
echo "n1 200" >"$work/watts"
await ask '"n1":"not enough power"'  # the thread has seen it
put /api/v1/configmaps '{"metadata": {"namespace": "kube-system", "name": "power-budgets"}, "data": {"n1": "600"}}'
await ask '"NodeNames":["n1"]'
curl -sf "http://127.0.0.1:$port/dump?compare" >/dev/null || fail "the extension compares nothing"
echo "the extension decides by its ConfigMap and its thread"

# The same beside an unmodified kube-scheduler, as the chart has it.
export PATH=$PATH:/usr/local/go/bin
status=0
programs=$(scripts/kubernetes.sh) || status=$?
if [ $status -ne 0 ]; then
  [ $status -eq 77 ] || fail "kube-apiserver cannot be built"
  echo "left out: the chart's values beside kube-scheduler, for want of Go or of its modules"
  exit 0
fi
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$work/run" "$work/examples/power/build/power-scheduler" >"$work/power-scheduler"
chmod 755 "$work/power-scheduler"
mkdir "$work/tests"
QRM_APISERVER_DIR=$programs QRM_STRANGERS_SCHEDULER=$work/power-scheduler QRM_STRANGERS_FILE=$work/measured TMPDIR=$work/tests \
  go -C test/interop/chart test -count=1 -run '^TestStrangersSchedulerDecides$' -v .
