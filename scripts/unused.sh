#!/usr/bin/env bash
# Lists the functions and variables of topology/ that no program of the product uses; fails unless there are none.
#   scripts/unused.sh [BUILD DIRECTORY]     default: build/release, which must hold the built programs
#
# Code that only tests and benchmarks use does not belong into topology/. So:
#   1. topology/ is compiled once more without inlining and with a section for each function and variable, so that every
#      use of one by another is a relocation from one section to another.
#   2. From the objects of the programs (qrmd, qrmctl, qrm-plugin-*), other than those of topology/ itself, come the
#      symbols that they leave undefined: what they use of topology/, also through inline functions of its headers.
#   3. A section is used when it defines one of these symbols, or when a used section refers to it.
# An external symbol whose section is not used is listed. Templates and inline functions are not: they are compiled where
# they are used.
set -euo pipefail

cd "$(dirname "$0")/.."
build=${1:-build/release}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

programs=()
for program in "$build"/bin/qrmd "$build"/bin/qrmctl "$build"/bin/qrm-plugin-{check,cpu,memory,nic}; do
  if [[ ! -x $program ]]; then
    echo "cannot find unused symbols: $program is not built; run scripts/build.sh" >&2
    exit 1
  fi
  programs+=("${program#"$build"/}")
done

cmake -S . -B build/unused -G Ninja -DQRM_TESTS=OFF -DQRM_BENCH=OFF -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS="-O0 -ffunction-sections -fdata-sections" >/dev/null
cmake --build build/unused --target qrm_topology >/dev/null

# What the programs leave undefined.
ninja -C "$build" -t inputs "${programs[@]}" | grep '\.o$' | grep -v '^topology/' | sort -u |
  (cd "$build" && xargs nm --undefined-only --format=posix) | awk 'NF > 1 { print $1 }' | sort -u >"$scratch/roots"

# "symbol OBJECT SECTION NAME SCOPE" and "use OBJECT SECTION NAME", NAME being a symbol or a section of the object.
for object in build/unused/topology/CMakeFiles/qrm_topology.dir/*.o; do
  objdump --syms --wide "$object" | awk -v object="$object" '
    / \.[a-z]/ && NF >= 5 { print "symbol", object, $(NF - 2), $NF, substr($0, 18, 1) }'
  objdump --reloc --wide "$object" | awk -v object="$object" '
    /^RELOCATION RECORDS FOR/ { section = substr($4, 2, length($4) - 3) }
    /^[0-9a-f]+ / { sub(/[-+]0x[0-9a-f]+$/, "", $3); print "use", object, section, $3 }'
done >"$scratch/graph"

unused=$(awk -v roots="$scratch/roots" '
  function reach(section) {
    if (!(section in reached)) {
      reached[section] = 1
      queue[last++] = section
    }
  }
  function reach_name(object, name,    i, places, count) {
    if ((object, name) in place) {
      reach(place[object, name])
    } else if (name ~ /^\./) {
      reach(object " " name)
    }
    count = split(defined[name], places, "\n")
    for (i = 2; i <= count; ++i) {
      reach(places[i])
    }
  }
  $1 == "symbol" {
    place[$2, $4] = $2 " " $3
    if ($5 != "l") {
      defined[$4] = defined[$4] "\n" $2 " " $3
      if ($5 == "g") {
        external[$2 " " $3] = $4
      }
    }
  }
  $1 == "use" && $3 !~ /^\.(eh_frame|debug)/ { uses[$2 " " $3] = uses[$2 " " $3] "\n" $4 }
  $1 == "use" && $3 ~ /^\.init_array/ { started[$2 " " $3] = 1 }
  END {
    while ((getline name < roots) > 0) {
      reach_name("", name)
    }
    for (section in started) {
      reach(section)
    }
    for (first = 0; first < last; ++first) {
      section = queue[first]
      object = substr(section, 1, index(section, " ") - 1)
      count = split(uses[section], names, "\n")
      for (i = 2; i <= count; ++i) {
        reach_name(object, names[i])
      }
    }
    for (section in external) {
      if (!(section in reached)) {
        print external[section]
      }
    }
  }' "$scratch/graph" | sort | c++filt)

if [[ -n $unused ]]; then
  echo "No program uses these symbols of topology/; use them or remove them:" >&2
  echo "$unused"
  exit 1
fi
echo "every external symbol of topology/ is used by a program"
