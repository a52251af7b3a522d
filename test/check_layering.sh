#!/usr/bin/env bash
# Fails on an include that points upward, between the folders and between the rooms of manager/.
#   test/check_layering.sh [tree]
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"

# From the lowest to the highest: each includes itself and the folders before it. Only tools, test and bench see all.
folders=(api topology checkpoint plugins cluster manager scheduler tools)
rooms=(rpc runtime state registry demand kubelet classes drivers admission reconcile pods observability podresources publish control daemon)
scheduler_rooms=(cache extender topology examples simulate)
failed=0

# forbid FOLDERS PATTERN WHY
forbid() {
  local found
  # shellcheck disable=SC2086
  if found=$(grep -rnE "$2" --include='*.h' --include='*.cc' $1); then
    printf '%s:\n%s\n' "$3" "$found"
    failed=1
  fi
}

# climbs PREFIX NAME...: no folder PREFIX/NAME includes a later one.
climbs() {
  local prefix=$1 name above
  shift
  while [ $# -gt 1 ]; do
    name=$1
    shift
    above=$(IFS='|'; echo "$*")
    forbid "$prefix$name" "#include \"$prefix($above)/" "$prefix$name/ includes a higher folder"
  done
}

climbs "" "${folders[@]}" test bench
climbs manager/ "${rooms[@]}"
climbs scheduler/ "${scheduler_rooms[@]}"
forbid "scheduler" '#include "manager/' "scheduler/ includes the daemon of a node"
forbid "api/base" '#include "api/(base/)?(hint|id_set|resource|wire|proto)' "api/base/ includes values or wire formats"
forbid "cluster" '#include "(topology|checkpoint|plugins)/' "cluster/ includes more than api/"
forbid "checkpoint/sqlite" '#include "checkpoint/[a-z_]*\.h' "checkpoint/sqlite/ includes the checkpoint"
forbid "plugins/cpu/config" '#include "plugins/cpu/[a-z_]*\.h' "plugins/cpu/config/ includes what decides by it"
forbid "plugins/cpu/sizing plugins/cpu/advisor" '#include "plugins/cpu/[a-z_]*\.h' "what sizes and advises pools includes what places containers"
forbid "topology checkpoint" '#include <(grpc|grpcpp)/' "topology/ and checkpoint/ compile gRPC"
forbid "topology" '(std::thread|std::jthread|std::async)' "topology/ starts a thread"

# The longest chain of rooms of manager/ that include each other, from the top: each room's is one more than the longest
# of those below it.
declare -A depth
for room in "${rooms[@]}"; do
  longest=0
  for below in $(grep -rhoE '#include "manager/[a-z]+/' --include='*.h' --include='*.cc' "manager/$room" 2>/dev/null |
    sed 's|.*manager/||; s|/$||' | sort -u); do
    [ "${depth[$below]:-0}" -le "$longest" ] || longest=${depth[$below]}
  done
  depth[$room]=$((longest + 1))
  [ "${depth[$room]}" -le 9 ] || { echo "manager/$room ends a chain of ${depth[$room]} rooms: 9 are the most"; failed=1; }
done

for room in manager/*/ scheduler/*/; do
  case " ${rooms[*]} ${scheduler_rooms[*]} " in
    *" $(basename "$room") "*) ;;
    *) echo "${room} is not a room that this check knows: add it to the order"; failed=1 ;;
  esac
done
while IFS= read -r room; do
  pairs=$(find "$room" -maxdepth 1 \( -name '*.h' -o -name '*.cc' \) | sed 's/\.[a-z]*$//' | sort -u | wc -l)
  [ "$pairs" -le 20 ] || { echo "$room has $pairs source pairs: divide it, 20 are the most"; failed=1; }
done < <(find cluster manager scheduler -type d)
while IFS= read -r header; do
  forbid "$header" '#include <(grpcpp/|grpc/|hwloc)' "a header drags gRPC or hwloc in"
done < <(find api topology checkpoint plugins cluster manager scheduler tools -name '*.h')
exit $failed
