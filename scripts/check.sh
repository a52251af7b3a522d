#!/usr/bin/env bash
# The slow checks, before a change is sent. The clang that they need is Debian's; each check says what it lacks.
#   scripts/check.sh [CHECK...]     default: all of them
#
#   format         clang-format leaves every file as it is
#   layering       no include points upward
#   thread-safety  clang's analysis of what each mutex guards (a part of tidy, and much faster)
#   tidy           clang-tidy by .clang-tidy; about 15 s a file
#   asan-ubsan     every test without limits of time and memory under the address and undefined-behaviour sanitizers
#   tsan           the tests without gRPC under the thread sanitizer
#   fuzz           each fuzz target for QRM_FUZZ_SECONDS (10)
#   bench          each benchmark once
set -euo pipefail

cd "$(dirname "$0")/.."

# need COMMAND PACKAGE...
need() {
  command -v "$1" >/dev/null && return
  echo "cannot check: $1 is missing; run: apt-get install --no-install-recommends ${*:2}" >&2
  exit 1
}

sources() { git ls-files -- '*.cc' '*.h'; }

check_format() {
  need clang-format-19 clang-format-19
  sources | xargs clang-format-19 --dry-run --Werror
}

check_layering() { test/check_layering.sh; }

# tidy [clang-tidy arguments...]: over all of our sources, which need the generated headers only.
tidy() {
  need clang-tidy-19 clang-tidy-19
  scripts/build.sh release qrm_messages qrm_services
  git ls-files -- '*.cc' | xargs -P "$(nproc)" -n 2 clang-tidy-19 -p build/release --quiet "$@"
}

# clang-tidy wants one check of its own beside the compiler's.
check_thread_safety() { tidy --checks='-*,clang-diagnostic-thread-safety*,misc-static-assert'; }

check_tidy() { tidy; }

check_sanitizer() {
  scripts/build.sh "$1"
  ctest --preset "$1"
}

check_bench() {
  scripts/build.sh release
  ctest --preset release -L bench
}

scripts/deps.sh
if [ $# -eq 0 ]; then
  set -- format layering thread-safety tidy asan-ubsan tsan fuzz bench
fi
for check in "$@"; do
  echo "== $check"
  case $check in
    format) check_format ;;
    layering) check_layering ;;
    thread-safety) check_thread_safety ;;
    tidy) check_tidy ;;
    asan-ubsan | tsan) check_sanitizer "$check" ;;
    fuzz) scripts/fuzz.sh "${QRM_FUZZ_SECONDS:-10}" ;;
    bench) check_bench ;;
    *)
      echo "unknown check \"$check\"; use format, layering, thread-safety, tidy, asan-ubsan, tsan, fuzz or bench" >&2
      exit 2
      ;;
  esac
done
