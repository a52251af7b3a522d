#!/usr/bin/env bash
# clang-tidy by .clang-tidy over the sources that standard input names, a path a line. A source that passed before is not
# looked at again while all that the compiler reads for it, the checks and the arguments are the same. Needs the
# generated headers: scripts/build.sh release qrm_messages qrm_services.
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
for entry in json.load(open("build/release/compile_commands.json")):
    command = re.sub(r" -o \S+ -c ", " -E -fdirectives-only ", entry["command"])
    print(os.path.relpath(entry["file"], sys.argv[1]), command, sep="\t")
PYTHON

# What the compiler reads: macros are not expanded, but for a condition that wants it.
read_by() { (cd build/release && { eval "$1" 2>/dev/null || eval "${1/ -fdirectives-only / -C }"; }); }

# pass FILE: clang-tidy's own status; what it says is printed where it fails.
pass() {
  local file=$1 command sum said
  command=$(awk -F'\t' -v file="$file" '$1 == file { print $2; exit }' "$commands")
  if [ -z "$command" ]; then
    echo "cannot check $file: no target of build/release compiles it; add it to its folder's CMakeLists.txt" >&2
    return 1
  fi
  sum=$({ cat .clang-tidy; echo "$tidy $arguments"; read_by "$command"; } | sha256sum)
  if [ -e "$passed/${sum%% *}" ]; then
    return
  fi
  # shellcheck disable=SC2086  # the arguments are words
  if ! said=$("$tidy" -p build/release --quiet $arguments "$file" 2>&1); then
    echo "$said"
    return 1
  fi
  touch "$passed/${sum%% *}"
}
export -f read_by pass
xargs -r -P "$(nproc)" -n 1 bash -euo pipefail -c 'pass "$1"' pass
