#!/usr/bin/env bash
# Lets promtool check the rules of charts/qrm and what a running qrmd serves, and makes each alert fire and end; ends with
# 77 (skipped) where there is no promtool.
#   test/e2e/alerts.sh BUILD_DIR
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$1
rules=$PWD/charts/qrm/files/alerts.yaml
command -v promtool >/dev/null || { echo "skipped: there is no promtool; scripts/deps.sh --operator installs it"; exit 77; }
work=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon" || true; rm -rf "$work"' EXIT

fail() {
  echo "$1" >&2
  exit 1
}

# Each alert with the series that cause it: 70 minutes bad, then good.
causes() {
  local up='0+5x70 350x140'
  cat <<END
QrmNotReady|qrm_ready|0x70 1x140
QrmDiskFailing|qrm_disk_failing|1x70 0x140
QrmKubeletConflict|qrm_kubelet_conflicts|2x70 0x140
QrmRuntimeUnreachable|qrm_cri_reachable|0x70 1x140
QrmPluginAway|qrm_plugin_live{resource="cpu"}|0x70 1x140
QrmPluginSuspect|qrm_plugin_suspect{resource="cpu"}|1x70 0x140
QrmObserverMode|qrm_runtime_mode{mode="observer"}|1x70 0x140
QrmRefusals|qrm_admission_rejections_total{resource="cpu",reason="no_room"}|$up
QrmPluginFaults|qrm_admission_rejections_total{resource="cpu",reason="plugin_fault"}|$up
QrmUnplacedContainers|qrm_unplaced_containers|1x70 0x140
QrmIncompleteContainers|qrm_incomplete_containers|1x70 0x140
QrmReconcileStuck|qrm_reconcile_age_seconds;qrm_reconcile_period_seconds|100x70 1x140;3x210
QrmReconcileFailing|qrm_reconcile_failing|1x70 0x140
QrmAdmissionSlow|qrm_admission_duration_seconds_bucket{le="0.5"};qrm_admission_duration_seconds_bucket{le="1"};qrm_admission_duration_seconds_bucket{le="+Inf"}|0x210;$up;$up
QrmUndecided|qrm_nri_undecided_total{call="CreateContainer"}|$up
QrmDrift|qrm_drift_repairs_total|$up
QrmPendingRemovals|qrm_pending_removals|1x70 0x140
QrmCheckpointRepaired|qrm_checkpoint_repairs_total|$up
QrmPoolChanged|qrm_pool_changed{resource="cpu",pool="online"}|1x70 0x140
QrmClassUnmet|qrm_class_unmet{type="rdt"}|1x70 0x140
QrmRestarts|qrm_uptime_seconds|$(for _ in $(seq 35); do printf '90 30 '; done)1+60x140
END
}

# What promtool plays.
scenes() {
  echo "rule_files: [$rules]"
  echo "evaluation_interval: 1m"
  echo "tests:"
  local alert series values i
  while IFS='|' read -r alert series values; do
    echo "  - interval: 1m"
    echo "    input_series:"
    IFS=';' read -ra names <<<"$series"
    IFS=';' read -ra courses <<<"$values"
    for i in "${!names[@]}"; do
      printf "      - {series: '%s', values: '%s'}\n" "${names[$i]}" "${courses[$i]}"
    done
    echo "    promql_expr_test:"
    echo "      - {expr: 'count(ALERTS{alertname=\"$alert\",alertstate=\"firing\"})', eval_time: 65m, exp_samples: [{labels: '{}', value: 1}]}"
    echo "      - {expr: 'count(ALERTS{alertname=\"$alert\"})', eval_time: 205m, exp_samples: []}"
  done < <(causes)
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
diff <(sed -n 's/^ *- alert: //p' "$rules" | sort) <(causes | cut -d'|' -f1 | sort) ||
  fail "alerts without a cause in this test, or causes without an alert"
for alert in $(causes | cut -d'|' -f1); do
  grep -q "^| \`$alert\` " docs/metrics.md || fail "docs/metrics.md does not tell of $alert"
done
scenes >"$work/scenes.yaml"
promtool test rules "$work/scenes.yaml"

# qrmd without a runtime is not ready, and serves its metrics all the same.
"$build/bin/qrmd" --machine="synthetic:package:2 [numa] core:4 pu:1" --state-dir="$work/state" \
  --registration-dir="$work/registration" --plugins-registry-dir="$work/plugins" \
  --pod-resources-socket="$work/pod-resources.sock" --control-socket="$work/control.sock" \
  --nri-socket="$work/nri.sock" --cri-socket="$work/cri.sock" --metrics-address=127.0.0.1:0 --probe-address= \
  --kubelet-state-dir= --kubelet-pods-socket= --kubelet-pod-resources-socket= >"$work/log" 2>&1 &
daemon=$!
port=
for _ in $(seq 100); do
  port=$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/log")
  [ -z "$port" ] || break
  kill -0 "$daemon" 2>/dev/null || fail "qrmd did not start: $(cat "$work/log")"
  sleep 0.1
done
[ -n "$port" ] || fail "qrmd serves no metrics: $(cat "$work/log")"
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
sed '1,/^\r*$/d' <&3 | tr -d '\r' >"$work/metrics"
grep -q '^qrm_ready 0$' "$work/metrics" || fail "qrmd served: $(head -5 "$work/metrics")"
# Those of the pod-resources API have kubelet's names, so that its rules hold for them; promtool objects to some.
grep -v pod_resources_endpoint_ "$work/metrics" | promtool check metrics

# A metric that a rule or the dashboard asks for exists.
for metric in $(grep -ohE '\b(qrm|process)_[a-z_]+' "$rules" charts/qrm/files/dashboard.json | sed 's/_bucket$//' | sort -u); do
  grep -q "$metric" docs/metrics.md || fail "there is no metric $metric"
done
echo "all alerts fire and end"
