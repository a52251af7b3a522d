#!/usr/bin/env bash
# Types the commands of docs/qrmctl.md into a terminal, beside a running qrmd, and compares what they show there with the
# samples of the page: the columns of tables, the names in sheets, and sentences except for their numbers. Checks the
# messages of the page for troubleshooting, too. Ends with 77 (skipped) where there is no tmux.
#   test/e2e/terminal.sh BUILD_DIR
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
page=$PWD/docs/qrmctl.md
command -v tmux >/dev/null || { echo "skipped: there is no tmux; scripts/deps.sh --operator installs it"; exit 77; }
work=$(mktemp -d /tmp/qrm-terminal.XXXXXX)
started=()
finish() {
  tmux -S "$work/tmux" kill-server 2>/dev/null || true
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
. test/e2e/played_node.sh

# A node with the page's pods.
mkdir "$work/node"
play_runtime "$work/node"
sed -e "s|/tmp/node|$work/node|" -e '/^machine:/d' -e '/^plugins:/,/static/d' -e 's/single-numa-node/best-effort/' \
  -e 's/log-level: debug/log-level: info/' test/interop/runtime/node.yaml >"$work/qrmd.yaml"
cat >>"$work/qrmd.yaml" <<'END'
machine: "synthetic:package:2 [numa(memory=16GiB)] l3:1 core:4 pu:1"
plugins:
  cpu:
    static: true
    pools: {online: {cpus: 3-6, roles: [web, api]}, offline: {cpus: "7"}, batch: {size: {max: 1, per: advice}}}
    advisor: {socket: $work/node/advisor.sock}
permissions: [{namespaces: ["db-*"], allow: [own-cpus], roles: [database]}]
builtin-plugins: [cpu, memory]
qos-classes: true
class-types: {blockio: {config-file: $work/blockio.yaml, classes: {slow: {namespaces: ["*"]}}}}
implicit-resources: [{resource: NIC, annotation: nic}]
END
sed -i "s|\$work|$work|" "$work/qrmd.yaml"
echo "Classes: {slow: [{Devices: [/dev/qrm-no-such-disk*], ThrottleWriteBps: 4Mi}]}" >"$work/blockio.yaml"
echo "{nics: [{interface: eth0, numa-node: 0, ipv4: 10.0.0.1}], follow: none}" >"$work/nic.yaml"
echo io >"$work/node/cgroup.controllers"
"$build/bin/qrmd" --simulate --config="$work/qrmd.yaml" 2>"$work/qrmd.log" &
started+=($!)
export QRM_CONTROL_SOCKET=$work/node/control.sock
for _ in $(seq 600); do
  if "$build/bin/qrmctl" status 2>/dev/null | grep -q '^Ready: *yes$'; then break; fi
  sleep 0.1
done
run() {
  order "$(printf '{"command": "run", "pod": {"name": "%s", "namespace": "shop", "containers": [{"name": "main", "milli_cpus": %s, "memory_bytes": 2147483648}]}}' "$1" "$2")"
}
run db 2000
run web 500
run big 64000
cat >"$work/pod1.yaml" <<'END'
apiVersion: v1
kind: Pod
metadata: {name: pod1}
spec: {containers: [{name: container0, resources: {limits: {cpu: 500m, memory: 1Gi}}}]}
END
sed -i 's/container0,/container0, image: busybox,/' "$work/pod1.yaml"
sed 's/pod1/pod3/; s/500m/200/' "$work/pod1.yaml" >"$work/pod3.yaml"
export CONTAINER_RUNTIME_ENDPOINT=unix://$work/node/cri.sock

# The terminal.
export PS1='$ ' PATH=$build/bin:$PATH
tmux -S "$work/tmux" -f /dev/null new-session -d -x 230 -y 200 -c "$work" bash --norc --noprofile
tmux -S "$work/tmux" set-option -g history-limit 5000
type_in() { tmux -S "$work/tmux" send-keys -t :0 "$@"; }
screen() { tmux -S "$work/tmux" capture-pane -t :0 -p -J "$@"; }
# Until the screen has a line that matches $1.
await_screen() {
  for _ in $(seq 300); do
    if screen | grep -qE "$1"; then return; fi
    sleep 0.1
  done
  fail "the terminal does not show \"$1\": $(screen)"
}
# Types the command and prints what it shows; $2 is the exit code that it has.
shown() {
  type_in -R "clear; $1; echo \"ended: \$?\"" Enter
  await_screen '^ended: [0-9]+$' >&2
  screen | grep -qx "ended: $2" || fail "qrmctl did not end with $2: $(screen)"
  screen | sed -n '/^\$ clear; /d; /^ended: /q; p'
}

# Columns, names and parts of what comes in; of texts that have none, the words without numbers and paths.
shape() {
  awk '
    /^ *[A-Z][A-Z0-9]*( [A-Z]+)?( +[A-Z][A-Z ]*)*$/ { gsub(/  +/, " "); print "columns:" ($0 ~ /^ / ? "" : " ") $0; found = 1; next }
    match($0, /^ *[A-Z][A-Za-z -]*: /) { name = substr($0, 1, RLENGTH); gsub(/^ +/, "", name); print "name: " name; found = 1; next }
    /^ +[A-Z][a-z]+( [a-z-]+)*$/ { gsub(/^ +/, ""); print "part: " $0; found = 1; next }
    { rest = rest $0 "\n" }
    END { if (!found) { gsub(/[0-9]+/, "N", rest); gsub(/\/[^ ]*/, "PATH", rest); printf "%s", rest } }' | sort -u
}
# The sample of the page below its line "$ qrmctl $1".
sample() {
  awk -v command="\$ qrmctl $1" '
    $0 == command { inside = 1; next }
    /^```/ || /^\$ / { inside = 0 }
    inside' "$page"
}
declare -A compared
compare() {
  compared[$1]=yes
  local command=$1 code=$2 typed=${3:-$1}
  [ -n "$(sample "$command")" ] || fail "docs/qrmctl.md has no sample of qrmctl $command"
  shown "qrmctl $typed" "$code" >"$work/shown"
  diff <(sample "$command" | shape) <(shape <"$work/shown") >"$work/difference" ||
    fail "docs/qrmctl.md shows qrmctl $command otherwise than a terminal: $(cat "$work/difference" "$work/shown")"
}

compare status 0
mkdir -p "$work/root/proc/sys/kernel"
echo 4.19 >"$work/root/proc/sys/kernel/osrelease"
compare doctor 1 "doctor --fsroot $work/root"
compare bundle 0
compare plugins 0
screen -e | grep -q $'\e\\[32mlive' || fail "live is not green: $(screen -e)"
compare pods 0
compare top 0
compare topology 0
compare "cpus 0-3" 0
compare "explain shop/db" 0
compare events 0
compare "refusals --since 1h" 0
compare "pool get" 0
sed 's/cpus: 3-6,/cpus: 4-6,/' "$work/qrmd.yaml" >"$work/next.yaml"
compare "policy show" 0
compare "policy check next.yaml" 0
compare "policy diff next.yaml" 0
compare permissions 0
compare "checkpoint verify" 0 "checkpoint verify --state-dir $work/node/state"
compare "checkpoint export /tmp/kubelet_qrm_checkpoint" 0 \
  "checkpoint export $work/exported --state-dir $work/node/state"
mkdir "$work/other"
compare "checkpoint dump" 0 "checkpoint dump --state-dir $work/node/state"
compare "checkpoint import /tmp/kubelet_qrm_checkpoint" 0 "checkpoint import $work/exported --state-dir $work/other"
python3 - "$work/other/checkpoint.db" <<'END'
import sqlite3, sys
sqlite3.connect(sys.argv[1]).executescript("UPDATE schema_version SET version = 99; PRAGMA user_version = 99")
END
compare "checkpoint downgrade" 0 "checkpoint downgrade --state-dir $work/other"
compare log-level 0
compare "pool set online=0-1 offline=2-7" 0 "pool set online=3-5 offline=6-7"
compare "pool advise --socket /run/qrm/advisor.sock" 0 "pool advise --socket $work/node/advisor.sock"
compare "pool advise --socket /run/qrm/advisor.sock reclaim=30" 0 \
  "pool advise --socket $work/node/advisor.sock batch=1 --lease 1s"
compare classes 0
compare "class set shop/web main blockio=slow" 0
compare "completion bash | head -2" 0
compare "man pool set | head -2" 0
compare "admit --dry-run -f pod3.yaml" 1
compare "play -f pod1.yaml" 0

# A plugin that is not running.
"$build/bin/qrm-plugin-nic" --config="$work/nic.yaml" --plugins-registry-dir="$work/node/plugins" \
  --state-dir="$work/other" --control-socket="$QRM_CONTROL_SOCKET" 2>"$work/nic.log" &
nic=$!
started+=("$nic")
await "qrmctl plugins" "NIC        live"
for pod in wired gone; do
  order "$(printf '{"command": "run", "pod": {"name": "%s", "namespace": "shop", "annotations": {"nic": "yes"}, "containers": [{"name": "main", "milli_cpus": 100, "memory_bytes": 1048576}]}}' "$pod")"
done
kill -KILL "$nic"
await "qrmctl plugins" "NIC        away"
order '{"command": "remove", "pod": "gone"}'
await "qrmctl plugins forget NIC" "Not yet notified of"
compare "plugins forget example.com/nic" 0 "plugins forget NIC"

# What qrm-scheduler would answer.
mkdir "$work/scheduler"
echo '{"namespace": "shop", "pod": "db", "uid": "u", "state": "waits", "nodes": {"node-1": "", "node-2": "not enough cpu on one NUMA node"}}' \
  >"$work/scheduler/why"
python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$work/scheduler" >"$work/scheduler.log" 2>&1 &
started+=($!)
await "cat $work/scheduler.log" "port "
compare "--cluster why shop/db" 0 \
  "--cluster why shop/db --url http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/scheduler.log" | head -1)"
shown "qrmctl admit --dry-run -f pod1.yaml" 0 | grep -qx "default/pod1 would be admitted" || fail "$(screen)"

# Whether the shell offers the option $2 after the command $1.
qrmctl completion bash >"$work/complete.bash"
qrmctl completion fish >"$work/complete.fish"
for program in fish zsh; do
  command -v "$program" >/dev/null || echo "not tried with $program: it is not there; scripts/deps.sh --operator installs it"
done
bash_completes() {
  bash -c '
    . "$1"
    read -ra COMP_WORDS <<<"$2 $3"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _qrmctl
    printf "%s\n" "${COMPREPLY[@]}"' - "$work/complete.bash" "$1" "$2" | grep -qxF -- "$2"
}
fish_completes() {
  fish -c 'source $argv[1]; complete -C $argv[2]' "$work/complete.fish" "$1 ${2%%[a-zA-Z]*}" | cut -f1 | grep -qxF -- "$2"
}

# Each command and verb of the manual pages was compared and has help; unknown words get an answer.
qrmctl man --directory "$work/man"
mapfile -t commands < <(sed -n '/^\.SH SYNOPSIS/{n;s/\\-/-/g;s/^\.B \(qrmctl .*\) \[OPTIONS\].*/\1/p}' "$work"/man/*.1)
[ ${#commands[@]} -ge 20 ] || fail "the manual has ${#commands[@]} commands only"
for command in "${commands[@]}"; do
  printf '%s\n' "${!compared[@]}" | grep -qE "^${command#qrmctl }( |\$)" ||
    fail "$command is compared with no sample of docs/qrmctl.md"
  shown "$command --help" 0 | grep -q "$command" || fail "$command has no help: $(screen)"
  # Each option in the help is on the man page and is completed.
  page_of=$work/man/$(sed 's/--//; s/ /-/g' <<<"$command").1
  options=$(screen | sed -nE '/^Options:/,/^$/s/^ +(-[^ ]+).*/\1/p' | tr ',' ' ')
  for option in $options; do
    sed 's/\\-/-/g' "$page_of" | grep -qE "^\.B (.*, )?$option(,| |$)" || fail "$page_of has no $option"
    bash_completes "$command" "$option" || fail "bash does not complete $option of $command"
    if command -v fish >/dev/null; then
      fish_completes "$command" "$option" || fail "fish does not complete $option of $command"
    fi
  done
done
# Each message of the troubleshooting page is one of the programs': its parts between values are in them.
while read -r message; do
  while read -r part; do
    [ ${#part} -lt 4 ] || grep -aqF -- "$part" "$build/bin/qrmd" "$build/bin/qrmctl" ||
      fail "docs/troubleshooting.md has the message \"$message\", of which no program has \"$part\""
  done < <(sed 's/…/\n/g' <<<"$message")
done < <(sed -nE '/^\| `/s/^\| (`[^|]*`)[^`|]*\|.*/\1/p' docs/troubleshooting.md | grep -oE '`[^`]+`' | tr -d '\`')

shown "qrmctl stauts" 2 | grep -q "did you mean status" || fail "$(screen)"

# Completion, and a view that changes in place.
type_in "clear; source <(qrmctl completion bash)" Enter "qrmctl po" Tab Tab
await_screen '^pods +policy +pool *$'
type_in C-u "clear; qrmctl explain d" Tab
await_screen 'qrmctl explain db *$'
type_in C-u "clear; qrmctl pods -w" Enter
await_screen 'shop +db '
order '{"command": "remove", "pod": "db"}'
for _ in $(seq 300); do
  if ! screen | grep -q 'shop  *db '; then break; fi
  sleep 0.1
done
[ "$(screen | grep -c NAMESPACE)" -eq 1 ] && ! screen | grep -q 'shop  *db ' || fail "pods -w does not follow: $(screen)"
type_in C-c

# zsh, from the first completion on.
if command -v zsh >/dev/null; then
  mkdir "$work/site"
  qrmctl completion zsh >"$work/site/_qrmctl"
  type_in C-u "zsh -f" Enter "fpath=($work/site \$fpath); autoload -U compinit; compinit -u -d $work/dump; clear" Enter
  type_in "qrmctl pool set --res" Tab
  await_screen 'qrmctl pool set --resource *$'
fi

echo "the terminal shows what the page shows, ${#commands[@]} commands"
