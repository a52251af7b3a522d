#!/usr/bin/env bash
# Runs a command beside containerd in the machine of scripts/vm.sh, and is skipped elsewhere.
#   test/vm/in_machine.sh PROBE [OPTION OF scripts/containerd.sh...] -- COMMAND [ARG...]
set -euo pipefail

if [[ -z ${QRM_VM:-} ]]; then
  echo "skipped: this is not the machine of scripts/vm.sh; run scripts/check.sh vm"
  exit 77
fi
root="$(cd "$(dirname "$0")/../.." && pwd)"
probe=$1
shift
exec "$root/scripts/containerd.sh" run --cache "$root/build/cache" --probe "$probe" "$@"
