#!/usr/bin/env bash
# The slow checks, before a change is sent. Installs what is missing: clang from Debian, clang-tidy from PyPI.
#   scripts/check.sh [CHECK...]     default: all but tidy-recent, which is a part of tidy
#
#   format         clang-format leaves every file as it is
#   layering       no include points upward
#   words          texts have the field's words, pages short sentences, and links lead to something
#   headers        what each header brings in stays below a bound, in lines after the preprocessor
#   shell          ShellCheck finds nothing in the scripts
#   unused         every function of the product is used by a program
#   walk           one creation and one reconcile pass through few functions and files; a build of its own
#   rules          a test fails for each rule of pools, owners and memory that is taken away
#   alone          each source compiles by itself, in clang, with its analysis of what each mutex guards; 2 to 4 s a source
#   tidy           clang-tidy by .clang-tidy; 5 to 10 s a file, and a second for one that passed before as it is
#   tidy-recent    the same for the files that the last thirty commits changed most, at most QRM_TIDY_FILES (25)
#   asan-ubsan     every test without limits of time and memory under the address and undefined-behaviour sanitizers
#   tsan           the tests without gRPC under the thread sanitizer
#   fuzz           each fuzz target for QRM_FUZZ_SECONDS (10)
#   bench          each benchmark once
#   cluster        tests with Kubernetes and containerd 2, built from Go modules, and on the node of scripts/cluster.sh
#   packages       tests that install something: the SDK, as plugin authors do; the Debian packages; the alerts; a terminal
#   vm             tests in the emulated machine of scripts/vm.sh, and tests that restart it; about 40 minutes
set -euo pipefail

cd "$(dirname "$0")/.."
jobs=$(nproc)

sources() { git ls-files -- '*.cc' '*.h'; }

check_format() { sources | xargs clang-format-19 --dry-run --Werror; }

check_layering() { test/check_layering.sh; }

# SC1007: an assignment of nothing, as in `local a= b=`, is meant.
check_shell() {
  git ls-files -- '*.sh' .ci/run packaging/debian/p* | xargs shellcheck -x -S warning -e SC1007
}

# tidy [clang-tidy arguments...]: over the sources named by standard input, which need the generated headers only.
tidy() {
  scripts/build.sh alone generated </dev/null
  scripts/tidy.sh "$@"
}

# The .cc files that the last thirty commits changed, or whose header they changed, with the number of changed lines,
# the most first. A file that only moved, and its includes with it, has not changed. Of a clone that is too shallow to
# know, every file has.
recent_sources() {
  local base
  base=$(git rev-parse -q --verify HEAD~30) || base=$(git hash-object -t tree /dev/null)
  git diff -M -l0 -U0 --no-color "$base" HEAD -- '*.cc' '*.h' |
    awk '/^[+][+][+] / { file = substr($2, 3); sub(/[.]h$/, ".cc", file); next }
      /^--- / || /^[-+] *(#include .*|[/][/].*)?$/ { next }
      /^[-+]/ { lines[file]++ }
      END { for (file in lines) print lines[file], file }' |
    sort -k1,1nr -k2 | while read -r lines file; do [ ! -e "$file" ] || echo "$lines $file"; done
}

# clang-tidy wants one check of its own beside the compiler's, whose errors it always shows.
check_alone() {
  git ls-files -- '*.cc' | tidy --checks='-*,clang-diagnostic-thread-safety*,misc-static-assert'
}

check_tidy() { git ls-files -- '*.cc' | tidy; }

check_tidy_recent() {
  local files changed=() most=${QRM_TIDY_FILES:-25}
  files=$(recent_sources)
  mapfile -t changed < <(sed 's/^[0-9]* //' <<<"$files")
  if [ ${#changed[@]} -gt "$most" ]; then
    echo "the last thirty commits changed ${#changed[@]} files: checking the $most that changed most, down to" \
      "$(sed -n "${most}s/ .*//p" <<<"$files") lines; run scripts/check.sh tidy for all"
  fi
  printf '%s\n' "${changed[@]:0:$most}" | tidy
}

# check_sanitizer PRESET [target...]
check_sanitizer() {
  scripts/build.sh "$@"
  ctest --preset "$1" -j "$jobs"
}

check_bench() {
  scripts/build.sh release
  ctest --preset release -L bench
}

check_cluster() {
  scripts/build.sh release programs cluster_tests
  ctest --preset release -L cluster --output-on-failure
}

check_packages() {
  scripts/deps.sh --operator
  scripts/build.sh release
  ctest --preset release -L packages
  ctest --preset release -R '^e2e_(alerts|page|terminal)$'
}

# By what a qrmd records that was compiled to, while a simulated runtime plays with it.
check_walk() {
  scripts/build.sh release test_walk
  cmake -S . -B build/walk -G Ninja -DCMAKE_BUILD_TYPE=Debug -DQRM_TESTS=OFF -DQRM_BENCH=OFF -DCMAKE_CXX_FLAGS_DEBUG= \
    -DCMAKE_CXX_FLAGS="-O0 -g1 -finstrument-functions -finstrument-functions-exclude-file-list=/usr/,generated/" >/dev/null
  cmake --build build/walk --target qrmd
  rm -rf build/walk/turns
  build/release/bin/test_walk build/walk/bin/qrmd build/walk/turns
  scripts/walk.py build/walk/bin/qrmd build/walk/turns
}

# What starts the machine itself first: it runs here, where the tests inside are skipped.
check_vm() {
  scripts/deps.sh --vm
  scripts/build.sh release vm_tests
  ctest --preset release -L vm
  scripts/vm.sh --machine 4n -- ctest -L vm --output-on-failure
  scripts/vm.sh --machine q35 -- ctest -R '^vm_devices$' --output-on-failure
  scripts/vm.sh --machine hmat -- ctest -R '^vm_kinds$' --output-on-failure
}

scripts/deps.sh --checks
if [ $# -eq 0 ]; then
  set -- format layering words shell headers unused walk rules alone tidy asan-ubsan tsan fuzz bench cluster packages vm
fi
for check in "$@"; do
  echo "== $check"
  case $check in
    format) check_format ;;
    layering) check_layering ;;
    words) scripts/words.py ;;
    shell) check_shell ;;
    headers) scripts/headers.sh ;;
    unused) scripts/unused.sh ;;
    walk) check_walk ;;
    rules) test/plugins/rules_taken_away.sh ;;
    alone) check_alone ;;
    tidy) check_tidy ;;
    tidy-recent) check_tidy_recent ;;
    asan-ubsan) check_sanitizer asan-ubsan ;;
    tsan) check_sanitizer tsan unit_tests ;;
    fuzz) scripts/fuzz.sh "${QRM_FUZZ_SECONDS:-10}" ;;
    bench) check_bench ;;
    cluster) check_cluster ;;
    packages) check_packages ;;
    vm) check_vm ;;
    *)
      echo "unknown check \"$check\"; use those that the head of scripts/check.sh names" >&2
      exit 2
      ;;
  esac
done
