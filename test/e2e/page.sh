#!/usr/bin/env bash
# Opens the live page of a running qrmd in headless Chromium, and checks that it follows: a pod that comes and goes, a
# pool that is resized, a plugin that dies, names with markup, and qrmd's end. Ends with 77 (skipped) where there is no
# Chromium.
#   test/e2e/page.sh BUILD_DIR [PICTURE]
#      with PICTURE writes there what the page looks like in the playground of scripts/try.sh: docs/page.png is made so
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
picture=${2:+$(realpath "$2")}
chromium=$(command -v chromium) || { echo "skipped: there is no chromium; scripts/deps.sh --operator installs it"; exit 77; }
work=$(mktemp -d /tmp/qrm-page.XXXXXX)
started=()
finish() {
  exec 5>&- # which ends the browser
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT
. test/e2e/played_node.sh

# The browser, on the page at port $1.
open_page() {
  mkfifo "$work/lines" "$work/replies"
  test/e2e/browser.py "$chromium" "http://localhost:$1/" "$work" 1100x800 <"$work/lines" >"$work/replies" &
  exec 5>"$work/lines" 6<"$work/replies"
}
reply=
browse() {
  echo "$*" >&5
  IFS= read -r reply <&6 || fail "the browser ended: $(tail -5 "$work/chromium.log")"
}
# Until the expression $1 is true in the page; $2 is the message otherwise.
shows() {
  browse "await $1"
  [ "$reply" = ok ] || fail "$2; it shows $reply"
}
row() { echo "[...document.querySelectorAll('#containers tbody tr')].find(row => row.innerText.includes('$1'))"; }
state_of() { echo "getComputedStyle(document.querySelector('[data-plugin=\"$1\"] .chip')).color"; }

if [ -n "$picture" ]; then
  scripts/try.sh --build "$build" --page-port 0 >"$work/try" 2>&1 &
  started+=($!)
  await "cat $work/try" "It stays until this is interrupted."
  open_page "$(sed -nE 's|^The page.*:([0-9]+)/$|\1|p' "$work/try")"
  shows "document.querySelector('#decisions').innerText.includes('default/big')" "a rejection is not shown"
  browse "picture $picture"
  [ "$reply" = ok ] || fail "no picture: $reply"
  exit 0
fi

export QRM_CONTROL_SOCKET=$work/node/control.sock

# A node whose memory plugin is a process.
mkdir "$work/node"
play_runtime "$work/node"
played_config "$work/node" >"$work/qrmd.yaml"
cat >>"$work/qrmd.yaml" <<END
machine: "synthetic:package:2 [numa(memory=16GiB)] l3:1 core:4 pu:2"
node-name: worker-7
page-address: 127.0.0.1:0
builtin-plugins: [cpu]
plugins:
  cpu: {static: true, pools: {online: {cpus: "8-11", roles: [web, "<b>web</b>"]}, batch: {cpus: "12-15"}}}
reconcile-period: 1s
control-socket: $work/node/control.sock
pod-resources-socket: $work/node/pod-resources.sock
registration-dir: $work/node/registration
plugins-registry-dir: $work/node/plugins
state-dir: $work/node/state
END
await "ls $work/node" cri.sock
"$build/bin/qrmd" --simulate --config="$work/qrmd.yaml" 2>"$work/qrmd.log" &
qrmd=$!
started+=("$qrmd")
await "$build/bin/qrmctl status" "connected, 1 connect"
echo "static: true" >"$work/memory.yaml"
start_plugin() {
  "$build/bin/qrm-plugin-memory" --registration-dir="$work/node/registration" --state-dir="$work/memory" \
    --control-socket="$QRM_CONTROL_SOCKET" --config="$work/memory.yaml" --machine="synthetic:package:2 [numa(memory=16GiB)] l3:1 core:4 pu:2" \
    2>>"$work/memory.log" &
  memory=$!
  started+=("$memory")
}
start_plugin
await "$build/bin/qrmctl plugins" "memory     live"
port=$(sed -n 's/.*page_port=\([0-9]*\).*/\1/p' "$work/qrmd.log")

# Sends the runtime a command; the result shows on the page.
run() { echo "{\"command\": \"run\", \"pod\": $1}" >&3; }
container() { printf '[{"name": "main", "milli_cpus": %s, "memory_bytes": %s}]' "$1" "$2"; }

open_page "$port"
shows "document.title === 'worker-7 – qrm' && document.querySelectorAll('.cpu').length === 16" \
  "the page does not show the node"
shows "document.querySelector('#state').innerText === 'ready'" "the page does not show that the node is ready"
browse traffic
bytes=$(sed 's/.*"bytes": \([0-9]*\).*/\1/' <<<"$reply")
[ "$bytes" -gt 10000 ] && [ "$bytes" -lt 100000 ] || fail "the page does not come with less than 100 KB: $reply"
browse "run window.opened = 'once'" # which a reload would remove

# A pod that is admitted appears, with its CPUs in the map.
run "{\"name\": \"db\", \"namespace\": \"shop\", \"containers\": $(container 4000 6442450944)}"
shows "$(row shop/db/main).innerText.includes('exclusive')" "a pod that was admitted does not appear"
browse "run $(row shop/db/main).children[3].innerText.split(' ')[0]"
"$build/bin/qrmctl" pods shop/db | grep -qF "CpusetCpus:   $(tr -d '"' <<<"$reply") (exclusive)" ||
  fail "the page shows CPUs $reply of shop/db, qrmctl $("$build/bin/qrmctl" pods shop/db)"
shows "document.querySelectorAll('.cpu.owner').length === 4" "its CPUs are not in the map"
shows "document.querySelector('.cpu.owner').title.includes('shop/db/main, exclusive')" "they do not name their owner"

# The page says why.
browse "run $(row shop/db/main).querySelector('button').click()"
shows "document.querySelector('#detail[open]').innerText.includes('Merged by policy best-effort')" "the page does not say why"
browse "run document.querySelector('#close').click()"

# A pool that is resized moves CPUs, those of its containers and the stripes of the map.
run "{\"name\": \"web\", \"namespace\": \"shop\", \"labels\": {\"katalyst.kubewharf.io/pod_role\": \"web\"}, \"containers\": $(container 500 1073741824)}"
shows "$(row shop/web/main).children[3].innerText === '8-11'" "a container of a pool does not show the pool's CPUs"
"$build/bin/qrmctl" pool set online=8-9 batch=10-15 >/dev/null
shows "$(row shop/web/main).children[3].innerText === '8-9'" "a container does not follow its pool"
shows "document.querySelector('[data-cpu=\"10\"]').title.includes('pool batch')" "the map does not follow the pool"
shows "document.querySelector('[data-pool=online]').innerText.includes('configured: 8-11')" \
  "a pool that was resized does not name what is configured"

# A rejection is shown with its reason.
run "{\"name\": \"huge\", \"namespace\": \"lab\", \"containers\": $(container 64000 1048576)}"
shows "document.querySelector('#decisions li.bad').innerText.includes('lab/huge/main')" "a rejection is not shown"

# A plugin that dies turns red, with its sentence, and green again when it is back.
browse "run $(state_of memory)"
green=$reply
kill -9 "$memory"
{ wait "$memory"; } 2>/dev/null || true
shows "document.querySelector('[data-plugin=memory].bad .chip').innerText === 'away'" "a dead plugin is not shown as away"
browse "run $(state_of memory).match(/\\d+/g).map(Number)"
read -r red other blue <<<"$(tr -d '[],' <<<"$reply")"
[ "$red" -gt $((2 * other)) ] && [ "$red" -gt $((2 * blue)) ] || fail "a dead plugin is not red: $reply"
browse "run document.querySelector('[data-plugin=memory]').innerText.split('\\n').slice(1).join(' ')"
sentence=$(tr -d '"' <<<"$reply")
[ ${#sentence} -gt 10 ] && "$build/bin/qrmctl" plugins | grep -qF "$sentence" ||
  fail "the page says \"$sentence\" of the dead plugin, qrmctl $("$build/bin/qrmctl" plugins)"
shows "document.querySelector('#state').innerText !== 'ready'" "the node is shown as ready without its plugin"
start_plugin
shows "$(state_of memory) === $green" "a plugin that is back is not shown as live"

# Texts of tenants are shown as text.
markup='<img src=x onerror=\"window.broken=1\"><script>window.broken=1</script>'
run "{\"name\": \"$markup\", \"namespace\": \"shop\", \"labels\": {\"katalyst.kubewharf.io/pod_role\": \"<b>web</b>\", \"app\": \"$markup\"}, \"annotations\": {\"note\": \"$markup\"}, \"containers\": $(container 100 1048576)}"
shows "$(row '<script>').innerText.includes('<b>web</b>')" "names with markup are not shown as they are"
browse "run document.querySelectorAll('img, b, main script').length - document.querySelectorAll('.cpu b').length"
[ "$reply" = 0 ] || fail "a name became markup"
browse "run window.broken === undefined"
[ "$reply" = true ] || fail "a name became a script"

# A pod that goes disappears. All of this came without a reload, from qrmd only.
echo '{"command": "remove", "pod": "db"}' >&3
shows "!$(row shop/db/main)" "a pod that is gone stays"
browse "run window.opened"
[ "$reply" = '"once"' ] || fail "the page was loaded again"
browse traffic
[[ $reply == *'"elsewhere": [], "errors": []'* ]] || fail "the page asks others, or complains: $reply"

# It says when qrmd is not running.
kill "$qrmd"
shows "!document.querySelector('#lost').hidden && document.querySelector('#lost').innerText.includes('does not answer')" \
  "the page does not say that qrmd is not running"
echo "the page, which came with $bytes bytes, follows the node"
