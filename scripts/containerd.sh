#!/usr/bin/env bash
# Runs a command beside a private containerd with NRI, and leaves nothing behind.
#
#   scripts/containerd.sh fetch  [--cache DIR]                 get the packages, print where they are
#   scripts/containerd.sh check                                 print what this machine lacks, exit 77
#   scripts/containerd.sh run    [OPTION...] --probe FILE -- COMMAND [ARG...]
#   options: [--cache DIR] [--keep-alive] [--image ARCHIVE]... [--dir DIR] [--systemd] [--programs DIR]
#
# `run` starts containerd in its own process and mount namespaces, so that the end of the first
# process there is the end of every shim, container and mount, whatever happened in between. The
# command runs in the same namespaces and finds what it needs in its environment:
#   QRM_WORK_DIR  QRM_CRI_SOCKET  QRM_NRI_SOCKET  QRM_IMAGE  QRM_CGROUP_PARENT
# With --keep-alive, the command may end containerd, whose process id is in $QRM_WORK_DIR/containerd.pid:
# it is started again. Without it, the end of containerd is an error. With --image, containers can
# also be made of the images in these archives. With --dir, containerd's files are in DIR and stay there, so that the
# next run with it finds containers as a restart of the machine leaves them. With --systemd, containerd has the systemd
# cgroup driver and, as systemd must know its processes, no namespaces of its own: for machines that are thrown away.
# With --programs, containerd, its shim and ctr are those in DIR.
#
# containerd is Debian 13's, the first Debian one with a usable NRI; it runs on Debian 12's libc.
# Debian 13's runc does not, so runc comes from this machine's own release. Both are downloaded
# through this machine's package source into the cache and unpacked there; apt's own state and
# every installed package stay as they are.
set -euo pipefail

readonly suite=trixie
readonly image=localhost/qrm-probe:1
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root
readonly self="$root/scripts/containerd.sh"
. "$root/scripts/debian.sh"

fail() {
  echo "containerd.sh: $*" >&2
  exit 1
}

# Like fail, for what is missing on this machine and not wrong with it.
lacks() {
  echo "containerd.sh: $*" >&2
  exit 77
}

# --- what the machine must have -----------------------------------------------------------------

# Where the kernel manages cpusets: the hierarchy of cgroup v1 when there is one, else v2.
cpuset_root() {
  if [[ -e /sys/fs/cgroup/cpuset/cpuset.cpus ]]; then
    echo /sys/fs/cgroup/cpuset
  elif grep -qsw cpuset /sys/fs/cgroup/cgroup.controllers; then
    echo /sys/fs/cgroup
  fi
}

# `$1`: the cache, which has everything except at the first run.
check() {
  local cpusets
  [[ $EUID -eq 0 ]] || lacks "cannot start containers: needs root; run with sudo"
  cpusets=$(cpuset_root)
  [[ -n $cpusets ]] || lacks "cannot pin containers: no cgroup cpuset controller under" \
    "/sys/fs/cgroup; mount it (mount -t cgroup -o cpuset cpuset /sys/fs/cgroup/cpuset) or boot" \
    "without cgroup_disable=cpuset"
  mkdir "$cpusets/qrm-check-$$" 2>/dev/null && rmdir "$cpusets/qrm-check-$$" ||
    lacks "cannot create cgroups: $cpusets is read-only; run on the host or in a privileged" \
      "container with the host's cgroups"
  unshare --mount --pid --fork true 2>/dev/null ||
    lacks "cannot create namespaces: the kernel or a container engine forbids it; run on the host" \
      "or with CAP_SYS_ADMIN"
  [[ $(nproc) -ge 2 ]] || lacks "cannot show two CPU pools: one CPU only; give the machine two"
  [[ -x $1/containerd-$suite/usr/bin/containerd ]] || command -v apt-get dpkg >/dev/null ||
    lacks "cannot get containerd: no apt-get or dpkg; use a Debian or Ubuntu machine"
}

# --- the packages -------------------------------------------------------------------------------

download() {
  local apt=$1 own uri
  own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  uri=$(make_apt "$apt" "$suite" "$own")
  (cd "$apt" && private_apt "$apt" get download "containerd/$suite" "runc/$own") ||
    fail "cannot download containerd and runc from $uri: see above; check the network or the mirror"
}

# Fills `$1`/containerd-$suite once; a second caller waits for the first.
fetch() {
  local cache=$1 dest="$1/containerd-$suite" work package
  mkdir -p "$cache"
  exec 9>"$cache/containerd.lock"
  flock 9
  if [[ ! -x $dest/usr/bin/containerd ]]; then
    work=$(mktemp -d "$cache/containerd.XXXXXX")
    download "$work/apt"
    for package in "$work"/apt/*.deb; do
      dpkg -x "$package" "$work/root"
    done
    "$work/root/usr/bin/containerd" --version >/dev/null && "$work/root/usr/sbin/runc" --version >/dev/null ||
      fail "cannot run Debian $suite's containerd here: see above; use Debian 12 or newer"
    rm -rf "$dest"
    mv "$work/root" "$dest"
    rm -rf "$work"
  fi
  exec 9>&-
  echo "$dest"
}

# --- the image: one static binary -----------------------------------------------------------------

build_image() {
  local probe=$1 tar=$2 rootfs=$3
  install -D -m 0755 "$probe" "$rootfs/probe"
  mkdir "$rootfs/tmp"
  "$root/scripts/oci.sh" "$rootfs" "$image" /probe "$tar"
}

# --- containerd -----------------------------------------------------------------------------------

write_config() {
  local dir=$1 packages=$2
  cat >"$dir/config.toml" <<TOML
version = 2
root = "$dir/root"
state = "$dir/state"
temp = "$dir/temp"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "$dir/cri.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$dir/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  disable_connections = false
  socket_path = "$dir/nri.sock"
  plugin_path = "$dir/nri-plugins"
  plugin_config_path = "$dir/nri-conf.d"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$image"
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  cdi_spec_dirs = ["$dir/cdi"]
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$dir/cni-bin"
  conf_dir = "$dir/cni-conf"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
  default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "$packages/usr/sbin/runc"
  Root = "$dir/runc"
  SystemdCgroup = ${QRM_SYSTEMD:-false}
TOML
}

wait_until_ready() {
  local dir=$1 ctr=$2 deadline=$((SECONDS + 30))
  until "$ctr" --address "$dir/cri.sock" version >/dev/null 2>&1 && [[ -S $dir/nri.sock ]]; do
    kill -0 "$keeper_pid" 2>/dev/null && ((SECONDS < deadline)) || {
      tail -5 "$dir/containerd.log" >&2
      fail "cannot start containerd: see the last lines of its log above"
    }
    sleep 0.1
  done
}

# Runs containerd to its end, and again if it is to be kept alive.
keep_containerd() {
  local dir=$1 packages=$2 pid
  export PATH="${QRM_PROGRAMS:+$QRM_PROGRAMS:}$packages/usr/bin:$packages/usr/sbin:$PATH"
  trap 'kill "$pid" 2>/dev/null; wait "$pid"; exit' TERM
  while true; do
    containerd --config "$dir/config.toml" >>"$dir/containerd.log" 2>&1 &
    pid=$!
    echo "$pid" >"$dir/containerd.pid"
    wait "$pid" || true
    [[ -n ${QRM_KEEP_ALIVE:-} ]] || exit 1
  done
}

# The first process of the namespaces: containerd, the command, and back out again.
inside() {
  local dir=$1 packages=$2 ctr=${QRM_PROGRAMS:-$2/usr/bin}/ctr status=0
  shift 2
  trap 'exit 130' INT TERM
  if [[ -z ${QRM_SYSTEMD:-} ]]; then
    # The runtime's shims insist on /run/containerd: give them a private one.
    mount -t tmpfs -o mode=0755 qrm-run /run
    # As on a node: pods may ask for mounts that follow the host's.
    mount --make-rshared /
  fi
  keep_containerd "$dir" "$packages" &
  keeper_pid=$!
  wait_until_ready "$dir" "$ctr"
  local archive archives ended
  mapfile -t archives <<<"$dir/image.tar${QRM_IMAGE_ARCHIVES:-}"
  for archive in "${archives[@]}"; do
    "$ctr" --address "$dir/cri.sock" --namespace k8s.io images import --local \
      --snapshotter native "$archive" >/dev/null || fail "cannot import the image $archive: see above"
  done
  "$@" &
  wait -n -p ended || status=$?
  [[ $ended != "$keeper_pid" ]] || fail "containerd ended before the command"
  kill "$keeper_pid" 2>/dev/null || true
  wait "$keeper_pid" 2>/dev/null || true
  exit "$status"
}

# --- after it ---------------------------------------------------------------------------------------

our_cgroups() {
  find /sys/fs/cgroup -depth -type d -path "*/$1*" 2>/dev/null || true
}

# The command lines that name the private directory.
our_processes() {
  local file line
  for file in /proc/[0-9]*/cmdline; do
    line=$(tr '\0' ' ' 2>/dev/null <"$file") || continue
    [[ $line != *"$1/"* ]] || echo "$line"
  done
}

remove_cgroups() {
  local deadline=$((SECONDS + 10)) group
  while [[ -n $(our_cgroups "$1") ]]; do
    our_cgroups "$1" | while read -r group; do rmdir "$group" 2>/dev/null || true; done
    ((SECONDS < deadline)) || break
    sleep 0.05
  done
}

# Kills what is left, removes cgroups and the private directory, and reports what would not go.
# `dir`, `kept`, `cgroup` and `namespace_pid` are run's.
clean_up() {
  local status=$? left
  trap - EXIT
  if [[ -n $namespace_pid ]]; then
    kill -KILL "$namespace_pid" 2>/dev/null || true
    wait "$namespace_pid" 2>/dev/null || true
    namespace_pid=
  fi
  remove_cgroups "$cgroup"
  [[ -z $kept ]] || exit "$status"
  rm -rf --one-file-system "$dir"
  left="$(our_processes "$dir")$(grep -F "$dir" /proc/self/mounts || true)$(our_cgroups "$cgroup")"
  [[ -z $left ]] || fail "cannot clean up: left behind: $left; remove it by hand"
  [[ ! -e $dir ]] || fail "cannot clean up: $dir is still there; remove it by hand"
  echo "containerd.sh: stopped; no process, mount, cgroup or file is left"
  exit "$status"
}

run() {
  local cache=$1 probe=$2 packages status=0
  shift 2
  check "$cache"
  [[ -x $probe ]] || fail "cannot build the image: no binary at '$probe'; run scripts/build.sh"
  packages=$(fetch "$cache")
  kept=${QRM_KEPT_DIR:-}
  if [[ -n $kept ]]; then
    dir=$kept
    # What is in /run on a node, and so gone after a restart.
    rm -rf --one-file-system "$dir"/{state,runc,image,image.tar,cri.sock,nri.sock}
    mkdir -p "$dir"
  else
    dir=$(mktemp -d /tmp/qrm.XXXXXX)
  fi
  cgroup="qrm-${dir##*[./]}"
  namespace_pid=
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  build_image "$probe" "$dir/image.tar" "$dir/image"
  write_config "$dir" "$packages"
  local apart=(unshare --mount --pid --fork --kill-child --mount-proc --) parent=/$cgroup driver=cgroupfs
  if [[ -n ${QRM_SYSTEMD:-} ]]; then
    apart=() parent= driver=systemd
  fi
  QRM_WORK_DIR=$dir QRM_CRI_SOCKET=$dir/cri.sock QRM_NRI_SOCKET=$dir/nri.sock QRM_IMAGE=$image \
    QRM_CGROUP_PARENT=$parent QRM_CGROUP_DRIVER=$driver \
    "${apart[@]}" "$self" inside "$dir" "$packages" "$@" &
  namespace_pid=$!
  wait "$namespace_pid" || status=$?
  namespace_pid=
  exit "$status"
}

usage() {
  sed -n '3,7s/^# \{0,1\}//p' "$self" >&2
  exit 2
}

main() {
  local command=${1:-} cache="$root/build/cache" probe=
  shift || usage
  if [[ $command == inside ]]; then
    inside "$@"
  fi
  while (($#)); do
    case $1 in
      --cache) cache=$(realpath -m "${2:?}") && shift 2 ;;
      --probe) probe=${2:?} && shift 2 ;;
      --dir) QRM_KEPT_DIR=${2:?} && shift 2 ;;
      --systemd) export QRM_SYSTEMD=true && shift ;;
      --keep-alive) export QRM_KEEP_ALIVE=1 && shift ;;
      --programs) QRM_PROGRAMS=$(realpath "${2:?}") && export QRM_PROGRAMS && shift 2 ;;
      --image) QRM_IMAGE_ARCHIVES+=$'\n'$(realpath "${2:?}") && export QRM_IMAGE_ARCHIVES && shift 2 ;;
      --) shift && break ;;
      *) usage ;;
    esac
  done
  case $command in
    fetch) fetch "$cache" ;;
    check) check "$cache" ;;
    run) (($#)) || usage; run "$cache" "$probe" "$@" ;;
    *) usage ;;
  esac
}

main "$@"
