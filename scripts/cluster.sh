#!/usr/bin/env bash
# A real Kubernetes of one node, this machine: etcd, kube-apiserver with RBAC, kube-scheduler, kube-controller-manager,
# containerd and kubelet, on which qrm's chart is installed as docs/deploy.md says.
#   scripts/cluster.sh up [CONFIGURATION]             creates it; CONFIGURATION of qrmd: scripts/cluster/qrmd.yaml
#   scripts/cluster.sh test [-test.run=NAME...]       runs test/interop/cluster in the running cluster, or in a new one
#                                                     that it removes afterwards
#   scripts/cluster.sh --vm test [-test.run=NAME...]  the same in the emulated machine of scripts/vm.sh, which has 4 NUMA
#                                                     nodes and cgroup v2, and is 10 to 20 times slower
#   scripts/cluster.sh kubectl|helm|qrmctl ARG...     runs the command for it; paths are those of this machine
#   scripts/cluster.sh start|stop|kill PROGRAM...     of the node, one of etcd apiserver scheduler controller-manager
#                                                     containerd kubelet; kill is SIGKILL
#   scripts/cluster.sh import ARCHIVE                 imports an image into containerd, as docs/deploy.md says
#   scripts/cluster.sh on-node COMMAND...             runs a command in the node's namespaces
#   scripts/cluster.sh down                           ends it, and leaves nothing of it
#
# The node has namespaces of its own for mounts, processes, network and names, so that it uses the usual paths and ports;
# this machine has its cgroups below `kubepods` and, while it is up, its files in build/cluster. It needs root, Debian 12
# or newer, Go 1.26, two CPUs and cgroups of either version. Images for its pods: localhost/busybox:1, localhost/qrm and
# registry.k8s.io/kube-scheduler. What is written over the API server is in its audit log, build/cluster/logs/audit.log.
# Ends with 77 where the machine cannot run it.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root self="$root/scripts/cluster.sh" cache="$root/build/cache"
dir=$root/build/cluster
# How many times as long as on usual machines everything may take.
patience=1
if [[ -n ${QRM_VM:-} ]]; then
  patience=10
fi
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin
. "$root/scripts/debian.sh"
. "$root/scripts/cluster/make.sh"

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

# Like fail, for what is missing on this machine and not wrong with it.
lacks() {
  echo "cluster.sh: $*" >&2
  exit 77
}

# --- the node's programs ----------------------------------------------------------------------------

is_up() { [[ -s $dir/pid ]] && kill -0 "$(<"$dir/pid")" 2>/dev/null; }

must_be_up() { is_up || fail "there is no cluster: it is not up; run $self up"; }

on_node() { nsenter --target "$(<"$dir/pid")" --mount --pid --net --uts --wd="$PWD" -- "$@"; }

kubectl() { on_node "$programs/kubectl" --kubeconfig "$dir/etc/admin.conf" "$@"; }

helm() { on_node env HELM_CACHE_HOME="$dir/helm" HELM_CONFIG_HOME="$dir/helm" HELM_DATA_HOME="$dir/helm" \
  "$helm" --kubeconfig "$dir/etc/admin.conf" "$@"; }

# command_of NAME: sets `command`.
command_of() {
  local pki=$dir/pki etc=$dir/etc
  case $1 in
    etcd) command=(etcd --data-dir "$dir/etcd" --unsafe-no-fsync) ;;
    apiserver)
      command=(kube-apiserver --etcd-servers=http://127.0.0.1:2379 "--authorization-mode=Node,RBAC" --secure-port=443
        --advertise-address="$address" --client-ca-file="$pki/ca.crt" --tls-cert-file="$pki/apiserver.crt"
        --tls-private-key-file="$pki/apiserver.key" --kubelet-client-certificate="$pki/admin.crt"
        --kubelet-client-key="$pki/admin.key" --kubelet-preferred-address-types=InternalIP
        --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key"
        --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/24
        --endpoint-reconciler-type=none --allow-privileged=true
        --audit-policy-file="$etc/audit.yaml" --audit-log-path="$dir/logs/audit.log")
      ;;
    scheduler) command=(kube-scheduler --kubeconfig="$etc/scheduler.conf" --leader-elect=false) ;;
    controller-manager)
      command=(kube-controller-manager --kubeconfig="$etc/controller-manager.conf" --leader-elect=false
        --use-service-account-credentials --service-account-private-key-file="$pki/sa.key"
        --root-ca-file="$pki/ca.crt" --flex-volume-plugin-dir="$dir/volume-plugins")
      ;;
    containerd) command=(containerd --config "$etc/containerd.toml") ;;
    kubelet)
      command=(kubelet --config="$etc/kubelet.yaml" --kubeconfig="$etc/kubelet.conf" --hostname-override=node
        --node-ip="$address" --v=2)
      ;;
    *) fail "there is no program \"$1\"; take etcd, apiserver, scheduler, controller-manager, containerd or kubelet" ;;
  esac
}

runs() { [[ -s $dir/pids/$1 ]] && on_node kill -0 "$(<"$dir/pids/$1")" 2>/dev/null; }

start() {
  local command
  command_of "$1"
  ! runs "$1" || fail "cannot start $1: it runs"
  on_node env PATH="$programs:$packages/usr/bin:$packages/usr/sbin:$PATH" \
    setsid --fork bash -c 'echo $$ >"$1"; log=$2; shift 2; exec "$@" >>"$log" 2>&1 </dev/null' \
    - "$dir/pids/$1" "$dir/logs/$1.log" "${command[@]}" </dev/null >/dev/null 2>&1
  local deadline=$((SECONDS + 10 * patience))
  until [[ -s $dir/pids/$1 ]]; do
    ((SECONDS < deadline)) || fail "cannot start $1: its process does not begin within $((10 * patience)) s; free the machine's CPUs"
    sleep 0.05
  done
}

# stop SIGNAL NAME
stop() {
  local command pid deadline=$((SECONDS + 60 * patience))
  command_of "$2"
  runs "$2" || fail "cannot stop $2: it does not run; see $dir/logs/$2.log"
  pid=$(<"$dir/pids/$2")
  on_node kill "-$1" "$pid"
  while on_node kill -0 "$pid" 2>/dev/null; do
    ((SECONDS < deadline)) || fail "cannot stop $2: it runs $((60 * patience)) s after SIG$1; see $dir/logs/$2.log"
    sleep 0.05
  done
  rm -f "$dir/pids/$2"
}

# await PROGRAM SECONDS WHAT COMMAND...: waits until the command succeeds; WHAT is what the program is waited for to do.
# The seconds are those of a usual machine.
await() {
  local program=$1 seconds=$(($2 * patience)) what=$3
  local deadline=$((SECONDS + seconds))
  shift 3
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= deadline)) || ! runs "$program"; then
      tail -n 5 "$dir/logs/$program.log" >&2 || true
      fail "$program does not $what within $seconds s: its last lines are above"
    fi
    sleep 0.3
  done
}

# --- up and down ------------------------------------------------------------------------------------

our_cgroups() { find /sys/fs/cgroup -maxdepth 2 -type d -name kubepods 2>/dev/null || true; }

check() {
  local program
  [[ $EUID -eq 0 ]] || lacks "cannot make a cluster: needs root; run with sudo"
  for program in ip nsenter unshare hostname; do
    command -v "$program" >/dev/null ||
      lacks "cannot make a cluster: there is no $program; install Debian's iproute2, util-linux and hostname"
  done
  case $root/ in
    /run/* | /var/lib/* | /var/log/* | /var/run/*)
      lacks "cannot make a cluster: the node has a /run, /var/lib and /var/log of its own, and would not see $root;" \
        "move the checkout"
      ;;
  esac
  "$root/scripts/containerd.sh" check || exit
}

boot() {
  local keeper
  setsid unshare --mount --pid --net --uts --fork --kill-child --mount-proc -- \
    "$root/scripts/cluster/node.sh" "$dir" "$address" >"$dir/logs/node.log" 2>&1 </dev/null &
  keeper=$!
  disown
  local deadline=$((SECONDS + 20 * patience))
  until [[ -e $dir/ready ]]; do
    ((SECONDS < deadline)) && kill -0 "$keeper" 2>/dev/null || {
      cat "$dir/logs/node.log" >&2
      fail "cannot make the node's namespaces: see above"
    }
    sleep 0.1
  done
  # As this machine numbers it.
  pgrep -P "$keeper" >"$dir/pid"
}

import_image() {
  on_node "$packages/usr/bin/ctr" --namespace k8s.io images import "$1" >"$dir/logs/import.log" 2>&1 || {
    cat "$dir/logs/import.log" >&2
    fail "containerd cannot import $1: see above"
  }
}

start_all() {
  local archive
  boot
  start etcd
  start containerd
  await containerd 30 answer on_node "$packages/usr/bin/ctr" version
  for archive in "$dir"/images/*.tar; do
    import_image "$archive"
  done
  start apiserver
  await apiserver 180 "get ready" kubectl get --raw /readyz
  start scheduler
  start controller-manager
  start kubelet
  await kubelet 120 "get its node ready" kubectl wait --for=condition=Ready node/node --timeout=1s
  await controller-manager 60 "make the default service account" kubectl get serviceaccount default
}

install_chart() {
  helm install qrm "$root/charts/qrm" --namespace kube-system --set-file "config=$1" >"$dir/logs/helm.log" 2>&1 || {
    cat "$dir/logs/helm.log" >&2
    fail "helm cannot install the chart: see above"
  }
  await kubelet 120 "get qrmd ready" kubectl --namespace kube-system rollout status daemonset/qrm --timeout=1s
}

# Takes down what did not get up, but keeps what was logged.
give_up() {
  local status=$?
  trap - EXIT
  ((status == 0 || status == 77)) || { keep_logs; down; }
  exit "$status"
}

# The emulated machine has its own place for what it hands out.
keep_logs() {
  local kept=${QRM_VM_RESULTS:-$root/build/cluster-logs}
  rm -rf "${kept:?}"/*
  mkdir -p "$kept"
  cp -r "$dir"/logs/* "$kept" 2>/dev/null || return 0
  echo "cluster.sh: the logs are in $root/build/cluster-logs" >&2
}

# Makes all that the node runs of, with which it starts here or elsewhere.
make_node() {
  command -v openssl >/dev/null || lacks "cannot make a cluster: there is no openssl; install Debian's openssl"
  programs=$("$root/scripts/kubernetes.sh")
  helm=$("$root/scripts/kubernetes.sh" helm)/helm
  packages=$("$root/scripts/containerd.sh" fetch --cache "$cache")
  fetch_node_packages
  "$root/scripts/build.sh" release programs
  rm -rf --one-file-system "$dir"
  mkdir -p "$dir"/{etc,images,logs,pki}
  printf 'programs=%q\nhelm=%q\npackages=%q\n' "$programs" "$helm" "$packages" >"$dir/env"
  make_certificates
  write_configurations
  make_images
}

up() {
  local config=${1:-$root/scripts/cluster/qrmd.yaml}
  check
  [[ -r $config ]] || fail "cannot install the chart: cannot read $config; name a configuration of qrmd"
  ! is_up || fail "there is a cluster already; run $self down first"
  [[ -z $(our_cgroups) ]] ||
    fail "cannot make a cluster: another kubelet uses $(our_cgroups | head -1); end it, or run down where it was this script's"
  config=$(realpath "$config")
  trap give_up EXIT
  if [[ -z ${QRM_VM:-} ]]; then
    make_node
  fi
  . "$dir/env"
  mkdir -p "$dir"/{etcd,logs,pids,static-pods,var/{containerd,kubelet,qrm}}
  start_all
  install_chart "$config"
  kubectl get nodes -o wide
  echo "cluster.sh: the cluster is up; ask it by $self kubectl, helm and qrmctl"
}

down() {
  local deadline=$((SECONDS + 20 * patience)) pid= left
  if is_up; then
    pid=$(<"$dir/pid")
    kill -KILL "$pid"
  fi
  while { [[ -n $pid ]] && kill -0 "$pid" 2>/dev/null; } || [[ -n $(our_cgroups) ]]; do
    ((SECONDS < deadline)) || break
    our_cgroups | while read -r left; do
      find "$left" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    sleep 0.1
  done
  rm -rf --one-file-system "$dir"
  left="$(our_cgroups)$(grep -F "$dir" /proc/self/mounts || true)"
  [[ -z $pid ]] || ! kill -0 "$pid" 2>/dev/null || left+=" process $pid"
  [[ -z $left && ! -e $dir ]] || fail "cannot clean up: left behind: ${left:-$dir}; remove it by hand"
  echo "cluster.sh: down; no process, mount, cgroup or file of it is left"
}

make_tests() { CGO_ENABLED=0 go -C "$root/test/interop" test -c -o "$dir/cluster.test" ./cluster; }

test_in_it() {
  local status=0 ours=
  if ! is_up; then
    (up)
    ours=yes
  fi
  . "$dir/env"
  if [[ -z ${QRM_VM:-} ]]; then
    make_tests
  fi
  (cd "$root/test/interop/cluster" && QRM_CLUSTER=$self QRM_CLUSTER_DIR=$dir "$dir/cluster.test" -test.timeout $((50 * patience))m -test.v "$@") || status=$?
  ((status == 0)) || keep_logs
  [[ -z $ours ]] || down
  exit "$status"
}

# What is made here is started there. All tests take hours, one takes ten minutes beside five for the start.
test_in_machine() {
  local status=0
  command -v qemu-system-x86_64 >/dev/null ||
    lacks "cannot emulate a machine: there is no qemu-system-x86_64; run scripts/deps.sh --vm"
  trap 'rm -rf --one-file-system "$dir"' EXIT
  make_node
  make_tests
  rm -rf "$root/build/cluster-logs"
  "$root/scripts/vm.sh" --machine 4n --timeout "$machine_seconds" --results "$root/build/cluster-logs" \
    --with "$dir" --with "$programs" --with "$helm" --with "$node_packages/usr/lib/cni" \
    -- "$self" test "$@" || status=$?
  exit "$status"
}

# --- the command line -------------------------------------------------------------------------------

readonly address=10.77.0.1 machine_seconds=36000
emulated=
if [[ ${1:-} == --vm ]]; then
  emulated=yes
  shift
fi
# Made outside of the emulated machine, and used inside.
[[ -z $emulated${QRM_VM:-} ]] || dir=$root/build/cluster-vm
action=${1:-}
shift || true
if is_up; then
  . "$dir/env"
fi
case $action in
  up | test | down) ;;
  kubectl | helm | qrmctl | start | stop | kill | import | on-node) must_be_up ;;
  *)
    sed -n '4,14s/^# \{0,1\}//p' "$self" >&2
    exit 2
    ;;
esac
if [[ -n $emulated ]]; then
  [[ $action == test ]] || fail "cannot run \"$action\" in an emulated machine, which ends with its command; run test there"
  test_in_machine "$@"
fi
case $action in
  up) up "$@" ;;
  test) test_in_it "$@" ;;
  down) down ;;
  kubectl) kubectl "$@" ;;
  helm) helm "$@" ;;
  qrmctl) on_node "$root/build/release/bin/qrmctl" "$@" ;;
  import) import_image "$(realpath "${1:?}")" ;;
  on-node) on_node "$@" ;;
  start) for name; do start "$name"; done ;;
  stop) for name; do stop TERM "$name"; done ;;
  kill) for name; do stop KILL "$name"; done ;;
esac
