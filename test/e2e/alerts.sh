#!/usr/bin/env bash
# Causes the condition of each alert of charts/qrm on running nodes, and ends it; plays qrmd's metrics of before,
# meanwhile and after to promtool with the unchanged rules. Ends with 77 (skipped) where there is no promtool, or the
# disk of a state cannot be filled.
#   test/e2e/alerts.sh BUILD_DIR
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
for program in promtool curl; do
  command -v "$program" >/dev/null || { echo "skipped: there is no $program; scripts/deps.sh --operator installs it"; exit 77; }
done
if [ "${QRM_ALERTS:-}" != inside ]; then
  unshare --mount true 2>/dev/null || { echo "skipped: this user may not make namespaces; run as root"; exit 77; }
  exec env QRM_ALERTS=inside unshare --mount --propagation private "$0" "$build"
fi
rules=$PWD/charts/qrm/files/alerts.yaml
top=$(mktemp -d /tmp/qrm-alerts.XXXXXX)
work=$top/main
frames=$top/frames
mkdir -p "$work" "$frames"
started=()
finish() {
  for pid in "${started[@]}"; do
    kill -CONT "$pid" 2>/dev/null || true
    kill "$pid" 2>/dev/null || true
  done
  umount -l "$top/main/state" 2>/dev/null || true
  rm -rf "$top"
}
trap finish EXIT
. test/e2e/played_node.sh

# What the qrmd in $work serves on the port that its log reported last.
scrape() {
  local port
  port=$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/log" | tail -1)
  exec 4<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&4
  sed '1,/^\r*$/d' <&4 | tr -d '\r'
  exec 4>&-
}
# Calls method $1 of the pod-resources socket with an empty request.
ask() {
  printf '\0\0\0\0\0' | curl --silent --output /dev/null --http2-prior-knowledge --unix-socket "$work/pod-resources.sock" \
    --header 'content-type: application/grpc' --header 'te: trailers' --data-binary @- \
    "http://localhost/v1.PodResourcesLister/$1"
}
# Until each of the arguments matches a line of the metrics, which are in $work/served then.
until_served() {
  local line
  for line in "$@"; do
    for _ in $(seq 600); do
      if scrape >"$work/served" 2>/dev/null && grep -qE "^$line\$" "$work/served"; then continue 2; fi
      sleep 0.05
    done
    fail "qrmd does not serve $line: $(cat "$work/served") $(tail -5 "$work/log")"
  done
}
# Keeps the present metrics as one more minute of the act $2 (1 before, 2 meanwhile, 3 after) of the alert $1.
keep() {
  local minute
  minute=$(find "$frames" -name "$1.$2.*" | wc -l)
  scrape >"$frames/$1.$2.$(printf %03d "$minute")"
}
start_qrmd() {
  : >"$work/log"
  "$build/bin/qrmd" --simulate --config="$work/qrmd.yaml" 2>"$work/log" &
  qrmd=$!
  started+=("$qrmd")
  await "cat $work/log" metrics_port=
}
stop_qrmd() {
  kill "$qrmd"
  wait "$qrmd" || true
}
# The nic plugin, with its NIC on NUMA node $1 of a machine with more nodes than this one.
start_nic() {
  cat >"$work/nic.yaml" <<END
machine: "synthetic:package:10 [numa] core:1 pu:1"
nics: [{interface: eth0, numa-node: $1, ipv4: 10.0.0.1}]
numa: required
END
  "$build/bin/qrm-plugin-nic" --config="$work/nic.yaml" --plugins-registry-dir="$work/plugins" \
    --state-dir="$work/nic" --control-socket="$work/control.sock" 2>>"$work/nic.log" &
  nic=$!
  started+=("$nic")
}
kill_nic() {
  kill -KILL "$nic"
  wait "$nic" || true
}
# A pod $1 of $2 thousandths of a CPU, with annotations $3; with $4 unseen, qrmd does not notice it.
run() {
  order "$(printf '{"command": "run%s", "pod": {"name": "%s", "namespace": "shop", "annotations": {%s}, "containers": [{"name": "main", "milli_cpus": %s, "memory_bytes": 1048576}]}}' "${4:+-$4}" "$1" "${3:-}" "$2")"
}
resize() {
  order "$(printf '{"command": "resize", "pod": {"name": "%s", "namespace": "shop", "containers": [{"name": "main", "milli_cpus": %s, "memory_bytes": 1048576}]}}' "$1" "$2")"
}
remove() { order "{\"command\": \"remove\", \"pod\": \"$1\"}"; }
with_nic='"nic": "yes"'

# A node in $work; $1: its own lines of the configuration.
configure() {
  mkdir -p "$work"/{kubelet,cgroup,state,nic,plugins,registration}
  echo cpuset io >"$work/cgroup/cgroup.controllers"
  echo "Classes: {slow: [{Devices: [/dev/qrm-no-such-disk*], ThrottleWriteBps: 4Mi}]}" >"$work/blockio.yaml"
  cat >"$work/qrmd.yaml" <<END
machine: "synthetic:package:2 [numa(memory=16GiB)] core:4 pu:1"
plugins: {cpu: {static: true, pools: {online: {cpus: 5-6}, offline: {cpus: "7"}}}}
builtin-plugins: [cpu, memory]
implicit-resources: [{resource: NIC, annotation: nic}]
qos-classes: true
class-types: {blockio: {config-file: $work/blockio.yaml, classes: {slow: {namespaces: ["*"]}}}}
state-dir: $work/state
registration-dir: $work/registration
plugins-registry-dir: $work/plugins
pod-resources-socket: $work/pod-resources.sock
control-socket: $work/control.sock
nri-socket: $work/nri.sock
cri-socket: $work/node/cri.sock
cgroup-root: $work/cgroup
kubelet-state-dir: $work/kubelet
kubelet-pods-socket: ""
kubelet-pod-resources-socket: ""
metrics-address: 127.0.0.1:0
probe-address: ""
observer-grace: 100ms
adoption-grace: 0s
$1
END
}

# The state loop waits for a plugin that hangs, and the reconcile loop for both: takes more than a minute, beside all
# the others.
stuck() (
  work=$top/stuck
  started=()
  trap 'for pid in "${started[@]}"; do kill -CONT "$pid" 2>/dev/null || true; kill "$pid" 2>/dev/null || true; done' EXIT
  mkdir -p "$work/node"
  configure "reconcile-period: 100ms
admission-deadline: 1m
plugin-call-deadline: 1m"
  play_runtime "$work/node"
  await "ls $work/node" nri.sock
  ln -s "$work/node/nri.sock" "$work/nri.sock"
  start_qrmd
  start_nic 0
  until_served 'qrm_plugin_live\{resource="NIC"\} 1' 'qrm_reconcile_age_seconds 0\..*'
  keep QrmReconcileStuck 1
  kill -STOP "$nic"
  until_served 'qrm_reconcile_age_seconds 2.(\..*)?' 'qrm_reconcile_age_seconds 4.(\..*)?'
  run late 500 "$with_nic"
  until_served 'qrm_reconcile_age_seconds (6[2-9]|[7-9].)(\..*)?'
  keep QrmReconcileStuck 2
  kill -CONT "$nic"
  until_served 'qrm_reconcile_age_seconds [01](\..*)?'
  keep QrmReconcileStuck 3
)
stuck >"$top/stuck.log" 2>&1 &
stuck=$!
started+=("$stuck")

# Without a runtime, qrmd is not ready; with one that it sees only over CRI, it observes.
configure "reconcile-period: 100ms
admission-deadline: 1s
plugin-call-deadline: 1s"
mount -t tmpfs -o size=2m,mode=755 tmpfs "$work/state"
mkdir "$work/node"
head -c 2048 /dev/urandom >"$work/state/checkpoint.db" # what runs is not known before the runtime has listed it
start_qrmd
until_served 'qrm_ready 0' 'qrm_cri_reachable 0'
keep QrmNotReady 2
keep QrmRuntimeUnreachable 2
for _ in $(seq 25); do
  ask List
  keep QrmPodResourcesFailing 2
done
play_runtime "$work/node"
until_served 'qrm_cri_reachable 1' 'qrm_runtime_mode\{mode="observer"\} 1'
keep QrmObserverMode 2
keep QrmRuntimeUnreachable 3
ln -s "$work/node/nri.sock" "$work/nri.sock"
until_served 'qrm_runtime_mode\{mode="nri"\} 1' 'qrm_ready 1'
keep QrmObserverMode 3
keep QrmNotReady 3
ask List
keep QrmPodResourcesFailing 3

# Metrics of the pod-resources API have kubelet's names, so that rules for kubelet apply to them; promtool objects to
# some.
grep -v pod_resources_endpoint_ "$work/served" | promtool check metrics

# kubelet's CPU manager.
keep QrmKubeletConflict 1
echo '{"policyName":"static","defaultCpuSet":"0-7","checksum":1}' >"$work/kubelet/cpu_manager_state"
until_served 'qrm_kubelet_conflicts [1-9]'
keep QrmKubeletConflict 2
rm "$work/kubelet/cpu_manager_state"
until_served 'qrm_kubelet_conflicts 0' 'qrm_ready 1'
keep QrmKubeletConflict 3

# A pod that is too large, tried again and again.
keep QrmRefusals 1
for _ in $(seq 25); do
  run big 64000
  keep QrmRefusals 2
done
keep QrmRefusals 3

# An operator sets a pool.
keep QrmPoolChanged 1
"$build/bin/qrmctl" pool set online=5 --control-socket "$work/control.sock" >/dev/null
until_served 'qrm_pool_changed\{resource="cpu",pool="online"\} 1'
keep QrmPoolChanged 2
"$build/bin/qrmctl" pool set online=5-6 --control-socket "$work/control.sock" >/dev/null
until_served 'qrm_pool_changed\{resource="cpu",pool="online"\} 0'
keep QrmPoolChanged 3

# The state's disk is full.
keep QrmDiskFailing 1
dd if=/dev/zero of="$work/state/filling" bs=4k status=none 2>/dev/null || true
for i in $(seq 200); do
  run "full$i" 500
  if scrape | grep -q '^qrm_disk_failing 1$'; then break; fi
done
until_served 'qrm_disk_failing 1'
keep QrmDiskFailing 2
rm "$work/state/filling"
run after 500
until_served 'qrm_disk_failing 0' 'qrm_ready 1'
keep QrmDiskFailing 3
for ((j = 1; j <= i; ++j)); do remove "full$j"; done

# A plugin that is killed, while a pod with its allocation ends.
start_nic 0
until_served 'qrm_plugin_live\{resource="NIC"\} 1'
keep QrmPluginAway 1
keep QrmPendingRemovals 1
run wired 500 "$with_nic"
kill_nic
until_served 'qrm_plugin_live\{resource="NIC"\} 0'
keep QrmPluginAway 2
remove wired
until_served 'qrm_pending_removals 1'
keep QrmPendingRemovals 2
start_nic 0
until_served 'qrm_plugin_live\{resource="NIC"\} 1' 'qrm_pending_removals 0'
keep QrmPluginAway 3
keep QrmPendingRemovals 3

# A plugin that hangs: nothing that needs it is decided in time.
run before 500 "$with_nic"
for alert in QrmAdmissionSlow QrmUndecided QrmReconcileFailing; do keep $alert 1; done
kill -STOP "$nic"
until_served 'qrm_reconcile_failing 1'
keep QrmReconcileFailing 2
for i in $(seq 12); do
  run "slow$i" 500 "$with_nic"
  keep QrmAdmissionSlow 2
  keep QrmUndecided 2
done
for errors in 1 2 3; do
  for _ in $(seq 100); do
    ask GetAllocatableResources # asks plugins again where their answers are old
    if scrape | grep -q "^qrm_allocatable_errors_total{resource=\"NIC\"} $errors$"; then break; fi
    sleep 0.2
  done
  for _ in $(seq 8); do keep QrmPluginReportsFailing 2; done
done
kill -CONT "$nic"
until_served 'qrm_reconcile_failing 0'
for _ in $(seq 50); do # until its answer is old again
  ask GetAllocatableResources
  if scrape | grep -q '^qrm_pod_resources_answer_age_seconds{source="NIC"} 0$'; then break; fi
  sleep 0.2
done
keep QrmPluginReportsFailing 3
for alert in QrmAdmissionSlow QrmUndecided QrmReconcileFailing; do keep $alert 3; done
run again 500 "$with_nic" # it shall no longer be suspect for being late
until_served 'qrm_plugin_suspect\{resource="NIC"\} 0'

# A plugin that reports a NUMA node that the machine does not have.
keep QrmPluginSuspect 1
keep QrmPluginFaults 1
kill_nic
until_served 'qrm_plugin_live\{resource="NIC"\} 0'
start_nic 9
until_served 'qrm_plugin_live\{resource="NIC"\} 1'
for i in $(seq 12); do
  run "wrong$i" 500 "$with_nic"
  keep QrmPluginFaults 2
done
until_served 'qrm_plugin_suspect\{resource="NIC"\} 1'
keep QrmPluginSuspect 2
kill_nic
start_nic 0
until_served 'qrm_plugin_live\{resource="NIC"\} 1' 'qrm_plugin_suspect\{resource="NIC"\} 0'
keep QrmPluginSuspect 3
keep QrmPluginFaults 3

# Another process writes to a container's cgroup.
keep QrmDrift 1
cgroup=$work/cgroup/qrm-test/container-uid-placed-main
mkdir -p "$cgroup"
run placed 500
cpus=$("$build/bin/qrmctl" pods shop/placed -o jsonpath='{.pods[0].containers[0].applied.CpusetCpus}' --control-socket "$work/control.sock")
echo 0-1 >"$cgroup/cpuset.mems"
repairs=0
for _ in $(seq 25); do
  for _ in $(seq 600); do
    # Again where qrmd wrote its CPUs in the same instant: it did not see this write.
    [ "$(cat "$cgroup/cpuset.cpus" 2>/dev/null)" = 0 ] || echo 0 >"$cgroup/cpuset.cpus"
    now=$(scrape | sed -n 's/^qrm_drift_repairs_total //p')
    [ "$now" -le "$repairs" ] || break
    sleep 0.02
  done
  [ "$now" -gt "$repairs" ] || fail "the cpuset is not repaired: $(tail -5 "$work/log")"
  repairs=$now
  await "cat $cgroup/cpuset.cpus" "$cpus"
  until_served 'qrm_reconcile_failing 0'
  keep QrmDrift 2
done
keep QrmDrift 3

# A class whose definition cannot be taken over.
keep QrmClassUnmet 1
cp "$work/blockio.yaml" "$work/blockio.good"
echo "Classes: {slow: [{Devices: [/dev/qrm-no-such-disk*], ThrottleWriteBps: x}]}" >"$work/blockio.yaml"
until_served 'qrm_class_unmet\{type="blockio"\} 1'
keep QrmClassUnmet 2
cp "$work/blockio.good" "$work/blockio.yaml"
until_served 'qrm_class_unmet\{type="blockio"\} 0'
keep QrmClassUnmet 3

# Containers that came while qrmd was not running: one that fits nowhere, and one without its NIC's variables.
keep QrmUnplacedContainers 1
keep QrmIncompleteContainers 1
stop_qrmd
run huge 64000 "" unseen
run bare 500 "$with_nic" unseen
start_qrmd
until_served 'qrm_unplaced_containers 1' 'qrm_incomplete_containers 1'
keep QrmUnplacedContainers 2
keep QrmIncompleteContainers 2
remove huge
remove bare
until_served 'qrm_unplaced_containers 0' 'qrm_incomplete_containers 0'
keep QrmUnplacedContainers 3
keep QrmIncompleteContainers 3

# A container that grows where there is no room.
keep QrmPendingResizes 1
run grows 500
resize grows 64000
until_served 'qrm_pending_resizes 1'
keep QrmPendingResizes 2
resize grows 500
until_served 'qrm_pending_resizes 0'
keep QrmPendingResizes 3
remove grows

# A damaged state.
keep QrmCheckpointRepaired 1
stop_qrmd
dd if=/dev/urandom of="$work/state/checkpoint.db" bs=512 count=4 conv=notrunc status=none
start_qrmd
until_served 'qrm_checkpoint_repairs_total [1-9]'
keep QrmCheckpointRepaired 2
keep QrmCheckpointRepaired 2
keep QrmCheckpointRepaired 3

# Restarts.
keep QrmRestarts 1
for _ in $(seq 4); do
  until_served 'qrm_uptime_seconds ([1-9]|0\.[5-9]).*'
  keep QrmRestarts 2
  stop_qrmd
  start_qrmd
  until_served 'qrm_uptime_seconds 0\.[0-4].*'
  cp "$work/served" "$frames/QrmRestarts.2.$(printf %03d "$(find "$frames" -name 'QrmRestarts.2.*' | wc -l)")"
done
keep QrmRestarts 3

wait "$stuck" || fail "the node that stands still: $(cat "$top/stuck.log")"

# The series of the alert $1 that the rules ask for, a value a minute: five minutes before, then 70 of one act or one for
# each that was kept, then 140 after.
asked=$(grep -ohE '\b(qrm|process|pod_resources)_[a-z_]+' "$rules" | sort -u | paste -sd'|')
series() {
  local act kept
  for act in 1 2 3; do
    mapfile -t kept < <(find "$frames" -name "$1.$act.*" | sort)
    [ "$act" -eq 1 ] || [ ${#kept[@]} -gt 0 ] || fail "nothing was kept of $1 in act $act"
    for frame in "${kept[@]}"; do
      echo "$(minutes "$act" "${#kept[@]}") $frame"
    done
  done | while read -r times frame; do
    echo "# $times"
    grep -E "^($asked)[{ ]" "$frame"
  done | awk '
    /^# / { for (name in last) add(name); for (name in now) delete now[name]; before += times; times = $2; next }
    { value = $NF; sub(/ [^ ]*$/, ""); if (!($0 in last)) { values[$0] = before > 0 ? "_x" before : ""; last[$0] = 1 } now[$0] = value }
    function add(name) { values[name] = values[name] " " (name in now ? now[name] "+0x" (times - 1) : "_x" times) }
    END { for (name in last) add(name); for (name in values) printf "      - {series: \x27%s\x27, values: \x27%s\x27}\n", name, values[name] }'
}
# How long one of the $2 samples of act $1 lasts.
minutes() {
  case $1 in
    1) echo 5 ;;
    2) [ "$2" -gt 1 ] && echo 1 || echo 70 ;;
    3) echo 140 ;;
  esac
}
# When act 1, 2 and 3 of the alert $1 end.
ends() {
  local act kept end=-1
  for act in 1 2 3; do
    kept=$(find "$frames" -name "$1.$act.*" | wc -l)
    end=$((end + kept * $(minutes "$act" "$kept")))
    echo "$end"
  done
}

# promtool's input series.
scenes() {
  echo "rule_files: [$rules]"
  echo "evaluation_interval: 1m"
  echo "tests:"
  local alert acts
  for alert in "${alerts[@]}"; do
    mapfile -t acts < <(ends "$alert")
    echo "  - interval: 1m"
    echo "    input_series:"
    series "$alert"
    echo "    promql_expr_test:"
    [ "${acts[0]}" -lt 0 ] ||
      echo "      - {expr: 'count(ALERTS{alertname=\"$alert\"})', eval_time: ${acts[0]}m, exp_samples: []}"
    echo "      - {expr: 'clamp_max(count(ALERTS{alertname=\"$alert\",alertstate=\"firing\"}), 1)', eval_time: ${acts[1]}m, exp_samples: [{labels: '{}', value: 1}]}"
    echo "      - {expr: 'count(ALERTS{alertname=\"$alert\"})', eval_time: ${acts[2]}m, exp_samples: []}"
  done
  # A loop that is to run every ten minutes, and does.
  cat <<'END'
  - interval: 1m
    input_series:
      - {series: 'qrm_reconcile_age_seconds', values: '0+60x9'}
      - {series: 'qrm_reconcile_period_seconds', values: '600x9'}
    promql_expr_test:
      - {expr: 'count(ALERTS{alertname="QrmReconcileStuck"})', eval_time: 9m, exp_samples: []}
END
}

promtool check rules "$rules"
mapfile -t alerts < <(sed -n 's/^ *- alert: //p' "$rules")
for alert in "${alerts[@]}"; do
  grep -q "^| \`$alert\` " docs/metrics.md || fail "docs/metrics.md does not mention $alert"
done
diff <(printf '%s\n' "${alerts[@]}" | sort) <(find "$frames" -name '*.2.*' -printf '%f\n' | cut -d. -f1 | sort -u) ||
  fail "alerts that nothing here causes, or causes without an alert"
scenes >"$top/scenes.yaml"
promtool test rules "$top/scenes.yaml"

# A metric that a rule or the dashboard asks for exists.
for metric in $(grep -ohE '\b(qrm|process|pod_resources)_[a-z_]+' "$rules" charts/qrm/files/dashboard.json | sed 's/_bucket$//' | sort -u); do
  grep -q "$metric" docs/metrics.md || fail "there is no metric $metric"
done
echo "all ${#alerts[@]} alerts fire and end"
