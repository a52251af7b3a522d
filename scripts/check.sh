#!/usr/bin/env bash
# The slow checks, before a change is sent: format, clang-tidy, thread-safety analysis, tests under the sanitizers.
#   scripts/check.sh [format|tidy|thread-safety|asan-ubsan|tsan...]     default: all of them
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/deps.sh
if ! command -v clang-tidy-19 >/dev/null; then
  echo "cannot check: clang 19 is missing; run: apt-get install clang-19 clang-format-19 clang-tidy-19" >&2
  exit 1
fi

sources() { git ls-files -- '*.cc' '*.h'; }

check_format() { sources | xargs clang-format-19 --dry-run --Werror; }

check_tidy() {
  cmake --preset release >/dev/null
  cmake --build --preset release --target qrm_messages qrm_services
  git ls-files -- '*.cc' | xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/release --quiet
}

check_thread_safety() {
  cmake --preset debug -B build/clang -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_CXX_FLAGS=-Wthread-safety >/dev/null
  cmake --build build/clang
}

check_sanitizer() {
  scripts/build.sh "$1"
  ctest --preset "$1" -LE bench
}

if [ $# -eq 0 ]; then
  set -- format tidy thread-safety asan-ubsan tsan
fi
for check in "$@"; do
  echo "== $check"
  case $check in
    format) check_format ;;
    tidy) check_tidy ;;
    thread-safety) check_thread_safety ;;
    asan-ubsan | tsan) check_sanitizer "$check" ;;
    *)
      echo "unknown check \"$check\"; use format, tidy, thread-safety, asan-ubsan or tsan" >&2
      exit 2
      ;;
  esac
done
