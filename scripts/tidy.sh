#!/usr/bin/env bash
# clang-tidy by .clang-tidy, and that of its folder, over the sources that standard input names, a path a line. A source
# that passed before is not looked at again while all that the compiler reads for it, the checks and the arguments are
# the same. Reads how each source is compiled by itself, from: scripts/build.sh alone generated.
#   scripts/tidy.sh [clang-tidy arguments...] <FILE
#
# The clang-tidy is a package of PyPI: those of Debian 12 also match the checks against every header of the system, which
# takes three times as long for the same answers.
set -euo pipefail

cd "$(dirname "$0")/.."
version=22.1.8
home=build/clang-tidy
export tidy=$home/$version/bin/clang-tidy passed=$home/passed commands=$home/commands arguments="$*"

if [ ! -x "$tidy" ]; then
  python3 -m venv "$home/$version"
  "$home/$version/bin/pip" install -q --disable-pip-version-check "clang-tidy==$version"
fi
mkdir -p "$passed"

# "FILE<tab>what prints all that the compiler reads for it", comments included, since NOLINT is one.
python3 - "$PWD" >"$commands" <<'PYTHON'
import json, os, re, sys
for entry in json.load(open("build/alone/compile_commands.json")):
    command = re.sub(r" -o \S+ -c ", " -E -fdirectives-only ", entry["command"])
    print(os.path.relpath(entry["file"], sys.argv[1]), command, sep="\t")
PYTHON

# What the compiler reads. Macros are expanded only where a condition needs it.
read_by() { (cd build/alone && { eval "$1" 2>/dev/null || eval "${1/ -fdirectives-only / -C }"; }); }

# configurations FILE: those of the file's folders, except the root's.
configurations() {
  local folder
  folder=$(dirname "$1")
  while [ "$folder" != . ]; do
    [ ! -e "$folder/.clang-tidy" ] || cat "$folder/.clang-tidy"
    folder=$(dirname "$folder")
  done
}

# A fault behind an expectation must be found, by the analyzer as it looks at tests.
find_fault() {
  cat >"$home/fault.cc" <<'FAULT'
#include <gtest/gtest.h>
#include <string>
std::string Text();
TEST(Fault, StandsBehindAnExpectation) {
  EXPECT_EQ(Text(), "text");
  int* null = nullptr;
  *null = 1;
}
FAULT
  local said
  said=$("$tidy" --quiet --config="$(<test/.clang-tidy)" --checks='-*,clang-analyzer-core.NullDereference' \
    "$home/fault.cc" -- -std=c++20 2>&1) || true  # the fault is an error
  if [[ $said != *"Dereference of null pointer"* ]]; then
    echo "the analyzer finds no fault behind an expectation; see test/.clang-tidy" >&2
    return 1
  fi
}

# pass FILE: clang-tidy's own status; what it says is printed where it fails.
pass() {
  local file=$1 command sum said
  command=$(awk -F'\t' -v file="$file" '$1 == file { print $2; exit }' "$commands")
  if [ -z "$command" ]; then
    echo "cannot check $file: no target of build/alone compiles it; add it to its folder's CMakeLists.txt" >&2
    return 1
  fi
  sum=$({ cat .clang-tidy; echo "$tidy $arguments"; read_by "$command"; configurations "$file"; } | sha256sum)
  if [ -e "$passed/${sum%% *}" ]; then
    return
  fi
  # shellcheck disable=SC2086  # the arguments are words
  if ! said=$("$tidy" -p build/alone --quiet $arguments "$file" 2>&1); then
    echo "$said"
    return 1
  fi
  touch "$passed/${sum%% *}"
}
find_fault
export -f configurations read_by pass
xargs -r -P "$(nproc)" -n 1 bash -euo pipefail -c 'pass "$1"' pass
