#!/usr/bin/env bash
# Runs every benchmark and prints one line for each target and its result; exits with 1 if a target is missed. Takes about
# half an hour, and needs a quiet machine.
#   scripts/bench.sh [BENCHMARK...]     default: all; QRM_BENCH_DIR names the disk to measure (default /var/tmp)
set -euo pipefail

cd "$(dirname "$0")/.."
all=(topology_bench checkpoint_bench plugins_bench admission_bench churn_bench driver_bench class_bench reconcile_bench podresources_bench rdt_bench scheduler_bench footprint ways_in_bench sharers)
if [ $# -eq 0 ]; then
  set -- "${all[@]}"
fi
for name in "$@"; do
  if [[ " ${all[*]} " != *" $name "* ]]; then
    echo "unknown benchmark \"$name\"; use ${all[*]}" >&2
    exit 2
  fi
done

scripts/deps.sh
targets=("$@")
for i in "${!targets[@]}"; do
  [ "${targets[i]}" != sharers ] || targets[i]=sharers_bench
done
scripts/build.sh release "${targets[@]}"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# A missed target ends some programs with an error; an error without one is a broken benchmark.
run() {
  "build/release/bench/$1" "${@:2}" 2>&1 | tee -a "$output" || grep -q '^TARGET .*FAIL$' "$output" ||
    echo "TARGET $1 ends without an error |  |  | FAIL" >>"$output"
}

# Plugins in Go, which report their allocations in another order each time.
run_with_plugins_in_go() {
  if ! command -v go >/dev/null || ! go -C test/interop/katalyst mod download; then
    echo "left out: reconcile_bench with plugins in Go, for want of Go or of its modules"
    return
  fi
  local programs=build/release/bench/plugins-in-go
  for plugin in cpu memory nic; do
    go -C test/interop/katalyst build -o "$PWD/$programs/qrm-plugin-$plugin" ./plugin
  done
  for containers in 1000 10000; do
    run reconcile_bench --containers $containers --plugins-from $programs
  done
}

# Real pods on a real containerd.
run_sharers() {
  local status=0
  scripts/containerd.sh check || status=$?
  if [ $status -eq 77 ]; then
    echo "left out: sharers, for want of what containers need"
    return
  fi
  scripts/containerd.sh run --probe build/release/bin/qrm-probe -- build/release/bench/sharers_bench 2>&1 |
    tee -a "$output" || grep -q '^TARGET .*FAIL$' "$output" ||
    echo "TARGET sharers ends without an error |  |  | FAIL" >>"$output"
}

for name in "$@"; do
  echo "== $name"
  if [ "$name" = sharers ]; then
    run_sharers
    continue
  fi
  run "$name"
  if [ "$name" = reconcile_bench ]; then
    run_with_plugins_in_go
  fi
done

echo "== targets, on $(nproc) CPUs"
sed -n 's/^TARGET //p' "$output" | awk -F ' [|] ' '{ printf "%-66s %-14s %-14s %s\n", $1, $2, $3, $4 }'
! grep -q '^TARGET .*FAIL$' "$output"
