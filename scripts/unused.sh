#!/usr/bin/env bash
# Lists the functions of the product that no program contains; fails unless there are none.
#   scripts/unused.sh
#
# The product is compiled without inlining and with a section for each function, and its programs are linked without the
# sections that nothing refers to. What an object defines and no program contains has no user but tests and benchmarks.
# Templates and inline functions are left out: they are compiled where they are used. What only plugin authors call is
# listed in scripts/unused.allow, a part of the demangled name in each line.
set -euo pipefail

cd "$(dirname "$0")/.."
build=build/unused
cmake -S . -B "$build" -G Ninja -DQRM_TESTS=OFF -DQRM_BENCH=OFF -DQRM_UNITS=OFF -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS="-O0 -ffunction-sections -fdata-sections" -DCMAKE_EXE_LINKER_FLAGS="-Wl,--gc-sections" >/dev/null
cmake --build "$build" --target programs sdk

functions() { # of the files named on stdin; $1: the kinds of symbols
  xargs nm --defined-only --format=posix | awk -v kinds="$1" 'NF > 2 && index(kinds, $2) { print $1 }' | sort -u
}
unused=$(comm -23 \
  <(find "$build" -name '*.o' -not -path '*/api/proto/*' -not -path '*/test/*' -not -path '*/bench/*' | functions T) \
  <(find "$build/bin" -type f | functions TtWw) | c++filt | grep '^qrm::' | grep -vFf scripts/unused.allow || true)
if [[ -n $unused ]]; then
  echo "No program contains these; use them or remove them:" >&2
  echo "$unused"
  exit 1
fi
