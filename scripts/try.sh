#!/usr/bin/env bash
# A playground without a cluster, which stays until it is interrupted: qrmd on a simulated machine of 16 CPUs and four
# NUMA nodes, with a few pods and the live page. It uses the programs that scripts/run.sh builds, and is up in seconds.
#   scripts/try.sh [--build DIR] [--page-port PORT] [PAGE]
#      PAGE: its machine, configuration and files, and no pods: a page of docs/policies, or docs/quickstart.md
set -euo pipefail

cd "$(dirname "$0")/.."
build=build/release
port=9757
page=docs/questions.md
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --page-port) port=$2; shift 2 ;;
    -*) sed -n '/^#  /s/^# *//p' "$0" >&2; exit 2 ;;
    *) page=$1; shift ;;
  esac
done
build=$(realpath "$build")
grep -q '^# qrmd.yaml$' "$page" || { echo "$page has no qrmd.yaml; give a page of docs/policies" >&2; exit 2; }
for program in qrmd qrmctl interop_runtime; do
  [ -x "$build/bin/$program" ] || { echo "there is no $build/bin/$program; scripts/run.sh builds it" >&2; exit 1; }
done
work=$(mktemp -d /tmp/qrm-try.XXXXXX)
started=()
finish() {
  for ((i = ${#started[@]} - 1; i >= 0; --i)); do kill "${started[i]}" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 0' INT TERM
# shellcheck source=test/e2e/played_node.sh
. test/e2e/played_node.sh

# The page's blocks: those of yaml as the files that their first lines name, the commands as `commands`.
awk -v directory="$work" '
  /^```yaml$/ { getline; file = directory "/" $2; inside = 1; next }
  /^```[a-z]+$/ { file = "/dev/null"; inside = 1; next }
  /^```$/ && !inside { file = directory "/commands"; inside = 1; next }
  /^```$/ { inside = 0; close(file); next }
  inside { print >>file }' "$page"
cat >"$work/env" <<END
export PATH=$build/bin:\$PATH QRM_CONTROL_SOCKET=$work/node/control.sock CONTAINER_RUNTIME_ENDPOINT=unix://$work/node/cri.sock
cd $work
END
mkdir "$work/node"
play_runtime "$work/node"
mapfile -t flags < <(
  played_config "$work/node" | sed 's/: /=/; s/""$//; s/^/--/'
  printf -- '--%s\n' page-address="127.0.0.1:$port" node-name=playground builtin-plugins=cpu,memory \
    control-socket="$work/node/control.sock" pod-resources-socket="$work/node/pod-resources.sock" \
    registration-dir="$work/node/registration" plugins-registry-dir="$work/node/plugins" state-dir="$work/node/state"
)
"$build/bin/qrmd" --simulate --config="$work/qrmd.yaml" "${flags[@]}" 2>"$work/node/qrmd.log" &
started+=($!)
# shellcheck disable=SC1091
. "$work/env"
await "qrmctl status; tail -5 node/qrmd.log" "Ready:       yes"
if [ "$page" = docs/questions.md ]; then
  for pod in db web job log big; do
    qrmctl play -f "$pod.yaml" --wait >"node/$pod.txt" 2>&1 &
    started+=($!)
    await "cat node/$pod.txt" " container main"
  done
  printf '%s\n' 'qrmctl topology' 'qrmctl explain big' 'qrmctl pool set batch=11-15' >node/first
else
  sed -n 's/^\$ //p' commands >node/first
fi

cat <<END
The page of this node:     http://127.0.0.1:$(sed -n 's/.*page_port=\([0-9]*\).*/\1/p' node/qrmd.log)/
Type in another terminal:
  source $work/env
$(sed 's/^/  /' node/first)
It stays until this is interrupted.
END
wait "${started[0]}"
