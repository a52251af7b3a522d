#!/usr/bin/env bash
# Fuzzes what reads foreign text, starting from the committed corpus; a finding ends the run with its input's path.
# An input may take 1 s of CPU time (test/fuzz/time_limit.cc), and an allocation 64 MiB. An input that takes two
# minutes of any time hangs.
# All inputs are then replayed on the release build, in a cgroup with the 256 MiB that qrmd has by its chart. This needs
# root.
#   scripts/fuzz.sh [SECONDS]           each target for so long (default 60), a quarter of it with inputs up to 1 MiB
#   scripts/fuzz.sh [SECONDS] --keep    and then adds to test/fuzz/corpus a few inputs that reach new code
#   QRM_FUZZ_TARGETS="cpu_set pod_spec" scripts/fuzz.sh    these targets only
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${1:-60}
keep=${2:-}
scripts/deps.sh --checks

build=build/fuzz
targets=(class_files configuration cpu_set foreign_json foreign_yaml hint_lists hwloc_xml machine_text node_annotations
  nri_frames peer_objects pod_admission pod_spec)
read -ra targets <<<"${QRM_FUZZ_TARGETS:-${targets[*]}}"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++-19 \
  -DQRM_SANITIZE=address,undefined,fuzzer-no-link -DQRM_FUZZ=ON -DQRM_TESTS=OFF -DQRM_BENCH=OFF >/dev/null
cmake --build "$build" --target "${targets[@]/#/fuzz_}"

for target in "${targets[@]}"; do
  found=$build/corpus/$target
  mkdir -p "$found" "$build/findings"
  echo "== $target, $seconds s"
  dictionary=()
  if [ -f "test/fuzz/$target.dict" ]; then
    dictionary=("-dict=test/fuzz/$target.dict")
  fi
  for run in "$((seconds - seconds / 4)) 16384 100" "$((seconds / 4 + 1)) 1048576 0"; do
    read -r length longest growth <<<"$run"
    # Not all of libhwloc's and libxml2's caches are freed at exit, so leaks say nothing here.
    ASAN_OPTIONS=detect_leaks=0 "$build/bin/fuzz_$target" -max_total_time="$length" -max_len="$longest" -len_control="$growth" -timeout=120 \
      -malloc_limit_mb=64 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
      -artifact_prefix="$build/findings/$target-" "${dictionary[@]}" "$found" "test/fuzz/corpus/$target"
  done
  if [ "$keep" = --keep ]; then
    ASAN_OPTIONS=detect_leaks=0 "$build/bin/fuzz_$target" -set_cover_merge=1 -max_len=1024 -verbosity=0 \
      "test/fuzz/corpus/$target" "$found"
    # At most 60 of the inputs that the fuzzer made, which are named by their hash; those made by hand stay.
    find "test/fuzz/corpus/$target" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' | sort | tail -n +61 | xargs -r rm
  fi
done

# limited COMMAND...: in a cgroup of 256 MiB.
limited() {
  local group=/sys/fs/cgroup/memory/qrm-fuzz file=memory.limit_in_bytes
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/qrm-fuzz file=memory.max
  fi
  mkdir -p "$group"
  echo $((256 << 20)) >"$group/$file"
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    exec "$@"
  )
}
if [ "$(id -u)" != 0 ]; then
  echo "no findings; not replayed on the release build, because only root can limit its memory"
  exit
fi
cmake --preset release >/dev/null
cmake --build build/release --target "${targets[@]/#/fuzz_}"
for target in "${targets[@]}"; do
  echo "== $target, replayed"
  limited find "test/fuzz/corpus/$target" "$build/corpus/$target" -type f -exec "build/release/bin/fuzz_$target" {} +
done
echo "no findings"
