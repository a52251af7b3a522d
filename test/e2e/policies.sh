#!/usr/bin/env bash
# The pages of docs/policies and the quickstart: their files are written, their commands typed, and the output compared
# with the page.
#   policies.sh BUILD_DIR [PAGE...]     default: all
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
shift
work=$(mktemp -d)
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
# shellcheck source=played_node.sh
. test/e2e/played_node.sh
export PATH=$build/bin:$PATH

# Writes the page's blocks: those of yaml as the files that their first lines name, the commands as `commands`.
write_blocks() {
  awk -v directory="$work" '
    /^```yaml$/ { getline; file = directory "/" $2; inside = 1; next }
    /^```[a-z]+$/ { file = "/dev/null"; inside = 1; next }
    /^```$/ && !inside { file = directory "/commands"; inside = 1; next }
    /^```$/ { inside = 0; close(file); next }
    inside { print >>file }' "$1"
}

# Types what the page says into a shell with running jobs, and keeps the output as a terminal would show it.
type_commands() {
  local line pod
  while IFS= read -r line; do
    [[ $line == '$ '* ]] || continue
    echo "$line"
    eval "${line#\$ }" || true
    if [[ $line == *'&' ]]; then
      started+=($!)
      pod=${line##*>}
      await "cat ${pod%% *}" "It runs until this is interrupted."
    fi
  done <commands
}

follow_page() {
  local page=$1 root=$PWD
  mkdir "$work/node"
  play_runtime "$work/node"
  write_blocks "$page"
  {
    cat "$work/qrmd.yaml"
    played_config "$work/node"
    echo "control-socket: $work/node/control.sock"
    echo "pod-resources-socket: $work/node/pod-resources.sock"
    echo "registration-dir: $work/node/registration"
    echo "plugins-registry-dir: $work/node/plugins"
    echo "state-dir: $work/node/state"
    echo "builtin-plugins: [cpu, memory]"
  } >"$work/whole.yaml"
  qrmd --simulate --config="$work/whole.yaml" 2>"$work/qrmd.log" &
  started+=($!)
  export QRM_CONTROL_SOCKET=$work/node/control.sock CONTAINER_RUNTIME_ENDPOINT=unix://$work/node/cri.sock
  await "qrmctl status; cat $work/qrmd.log" "Ready:       yes"
  cd "$work"
  type_commands >shown 2>&1
  cd "$root"
  diff -u "$work/commands" <(sed 's/ *$//' "$work/shown") || fail "$page shows otherwise than a node: $(tail -5 "$work/qrmd.log")"
}

# A node for each page.
if [ -z "${QRM_POLICY_PAGE:-}" ]; then
  mapfile -t pages < <(grep -l '^# qrmd.yaml$' docs/quickstart.md docs/policies/*.md)
  for page in "${@:-${pages[@]}}"; do
    QRM_POLICY_PAGE=$page "test/e2e/$(basename "$0")" "$build"
  done
else
  follow_page "$QRM_POLICY_PAGE"
fi
