#!/usr/bin/env bash
# Cuts the power of the machine of scripts/vm.sh in the middle of admissions, starts it again, then restarts it in
# order. Acknowledged allocations are the same each time.
#   test/vm/power.sh PROBE TESTS
#
# It runs QEMU itself, and is skipped where QEMU is missing or in that machine.
set -euo pipefail

root="$(cd "$(dirname "$0")/../.." && pwd)"
probe=$1 tests=$2

skip() {
  echo "skipped: $*"
  exit 77
}
[[ -z ${QRM_VM:-} ]] || skip "this is the machine that it would start; run scripts/check.sh vm outside"
command -v qemu-system-x86_64 >/dev/null || skip "there is no QEMU; run scripts/deps.sh --vm"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# part TEST [OPTION...]: plays one part, its output in $dir/TEST, to which pods it acknowledged are handed in by the
# file that the machine finds on its disk.
part() {
  local test=$1
  shift
  "$root/scripts/vm.sh" --state "$dir/disk" "$@" -- bash -c "
    printf '%s' $(printf %q "$(cat "$dir/acknowledged" 2>/dev/null)") >\$QRM_VM_STATE/acknowledged
    exec $root/test/vm/in_machine.sh $probe --dir \$QRM_VM_STATE/containerd -- $tests --gtest_filter=PowerTest.$test" |
    tee "$dir/$test"
}

remember() { grep '^admitted ' "$dir/$1" >"$dir/acknowledged"; }

echo "power.sh: pods come, and the power goes"
status=0
part AdmitsUntilThePowerIsCut --cut-at "admitted p6 " || status=$?
((status == 137)) || { echo "power.sh: the machine ended with $status before its power was cut" >&2 && exit 1; }
remember AdmitsUntilThePowerIsCut
echo "power.sh: power is back"
part AcknowledgedAllocationsAreRestored
remember AcknowledgedAllocationsAreRestored
echo "power.sh: the machine is restarted with containers running"
part AcknowledgedAllocationsAreRestored
