#!/usr/bin/env bash
# Fails on an include that points upward: api <- topology <- checkpoint <- plugins <- manager; only test and bench see all.
#   test/check_layering.sh [tree]
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
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

forbid "api" '#include "(topology|checkpoint|plugins|manager|test|bench)/' "api/ includes a higher folder"
forbid "topology" '#include "(checkpoint|plugins|manager|test|bench)/' "topology/ includes a higher folder"
forbid "checkpoint" '#include "(plugins|manager|test|bench)/' "checkpoint/ includes a higher folder"
forbid "plugins" '#include "(manager|test|bench)/' "plugins/ includes a higher folder"
forbid "manager" '#include "(test|bench)/' "manager/ includes a test"
forbid "topology checkpoint" '#include <(grpc|grpcpp)/' "topology/ and checkpoint/ compile gRPC"
forbid "topology" '(std::thread|std::jthread|std::async)' "topology/ starts a thread"
while IFS= read -r header; do
  forbid "$header" '#include <(grpcpp/|grpc/|hwloc)' "a header drags gRPC or hwloc in"
done < <(find api topology checkpoint plugins manager -name '*.h')
exit $failed
