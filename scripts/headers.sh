#!/usr/bin/env bash
# Prints the lines of each public header after the preprocessor, the most first, and fails over a bound: what a header
# brings in, every source behind it compiles. A header over its bound is followed by the include that adds most.
#   scripts/headers.sh [HEADER...]     default: all outside test/
set -euo pipefail

cd "$(dirname "$0")/.."
generated=build/alone/generated
preprocess="g++ -std=c++20 -w -I. -I$generated -I$generated/api -E -x c++"
export preprocess

# weigh HEADER: its lines and its name, and behind them what is wrong with it. Abseil's Status alone is 114,000 lines.
weigh() {
  local lines bound with=()
  read -r lines bound < <($preprocess "$1" |
    awk '/^# 1 ".*\/absl\/status\/status[.]h"/ { status = 1 } END { print NR, status ? 125000 : 60000 }')
  if [ "$lines" -le "$bound" ]; then
    echo "$lines $1"
    return
  fi
  [ "$bound" = 60000 ] || with=(-include absl/status/statusor.h)
  $preprocess "${with[@]}" "$1" | awk -v header="$1" -v lines="$lines" -v bound="$bound" '
    $1 == "#" && $3 == "\"" header "\"" { depth = 0; include = ""; if (NF == 3) split("", added); next }
    /^# .*" 1/ && ++depth == 1 { split($0, part, "\""); include = part[2] }
    /^# .*" 2/ { --depth }
    include != "" { added[include]++ }
    END {
      for (include in added) if (added[include] > many) { most = include; many = added[include] }
      print lines, header, "over", bound ", of which", most, "adds", many
    }'
}
export -f weigh

scripts/build.sh alone generated >/dev/null
if [ $# -eq 0 ]; then
  mapfile -t headers < <(git ls-files -- '*.h' ':!test/')
  set -- "${headers[@]}"
fi
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'weigh {}' | sort -k1,1nr -k2 |
  awk '{ print } / over / { over++ } END { if (over) print over " headers over their bound"; exit over > 0 }'
