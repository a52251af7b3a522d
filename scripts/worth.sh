#!/usr/bin/env bash
# What a node gains: the latency of a real service and the work of a batch beside it, with Kubernetes' defaults, with
# kubelet's static policy and with qrmd's ways, on real containers. Takes about a quarter of an hour on two cores, and
# needs root and a quiet machine. docs/worth.md has the method.
#   scripts/worth.sh [--service redis|nginx|memcached] [--batch compiler|zstd|memory] [--ways LIST] [--rounds N] ...
#   scripts/worth.sh --help        all options
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
build=
for ((i = 1; i <= $#; ++i)); do
  case ${!i} in
    -h | --help) exec python3 scripts/worth/worth.py --help ;;
    --build) ((++i)) && build=${!i:?} ;;
    --build=*) build=${!i#*=} ;;
  esac
done
needs=$(python3 scripts/worth/worth.py --needs "$@")
read -r program batch image <<<"$needs"

fail() {
  echo "worth.sh: $*" >&2
  exit 1
}
# shellcheck source=scripts/debian.sh
. scripts/debian.sh

# --- what is left when this ends, however it ends ------------------------------------------------------------------------

# Undoes all that is in the directory $1: settings of the kernel, processes that name it, cgroups of containerd.sh.
clean_up() {
  local work=$1 line file group
  if [ -e "$work/restore" ]; then
    unshare --mount bash -c 'mount -t debugfs none /sys/kernel/debug; while read -r value file; do echo "$value" >"$file"; done' \
      <"$work/restore" 2>/dev/null || true
  fi
  for file in /proc/[0-9]*; do
    line=$(tr '\0' ' ' 2>/dev/null <"$file/cmdline") || continue
    if [[ $line == *"$work"* && ${file#/proc/} != "$$" && ${file#/proc/} != "$BASHPID" && $line != *guard* ]]; then
      kill -KILL "${file#/proc/}" 2>/dev/null || true
    fi
  done
  for _ in $(seq 100); do
    group=$(find /sys/fs/cgroup -depth -type d -path "*/qrm-${work##*.}*" 2>/dev/null) || true
    [ -n "$group" ] || break
    while read -r file; do rmdir "$file" 2>/dev/null || true; done <<<"$group"
    sleep 0.05
  done
  rm -rf --one-file-system "$work"
}
# shellcheck disable=SC2317  # called by name
guard() {
  tail --pid="$1" -f /dev/null
  [ ! -d "$2" ] || clean_up "$2"
}

# --- images of Debian's programs -----------------------------------------------------------------------------------------

# Unpacks the packages below build/cache, once.
fetch_programs() {
  local dest=$root/build/cache/worth suite package own
  mkdir -p "$root/build/cache"
  exec 9>"$root/build/cache/worth.lock"
  flock 9
  if [ ! -e "$dest" ]; then
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    own=$(mktemp -d "$root/build/cache/worth.XXXXXX")
    make_apt "$own/apt" "$suite" >/dev/null
    private_apt "$own/apt" get install --download-only --no-install-recommends -y redis-server nginx-light memcached zstd ||
      fail "cannot download redis-server, nginx-light, memcached and zstd: see above; check the network or the mirror"
    for package in "$own"/apt/cache/archives/*.deb; do dpkg -x "$package" "$own/root"; done
    mv "$own/root" "$dest"
    rm -rf "$own"
  fi
  exec 9>&-
  echo "$dest"
}

# add_program ROOTFS PROGRAM [PACKAGES]: copies an executable file, of PACKAGES or of this machine, and its libraries.
add_program() {
  local rootfs=$1 program=$2 packages=${3:-} interpreter library
  interpreter=$(ldd /bin/sh | grep -o '/lib[^ ]*/ld-[^ ]*')
  install -D "$program" "$rootfs/bin/$(basename "$program")"
  install -D "$packages$interpreter" "$rootfs$interpreter"
  "$packages$interpreter" ${packages:+--library-path "$packages/usr/lib/$(uname -m)-linux-gnu:$packages/lib/$(uname -m)-linux-gnu"} \
    --list "$program" | grep -o '/[^ ]* (' | while read -r library _; do
    [[ $library == *"$interpreter" ]] || install -D "$library" "$rootfs/usr/lib/$(basename "$library")"
  done
}

make_service_image() {
  local rootfs=$work/service packages=$1
  add_program "$rootfs" "$(find "$packages"/usr/{bin,sbin} -name "$program")" "$packages"
  mkdir -p "$rootfs"/{data,tmp,etc}
  echo 'root:x:0:0:root:/:/bin/false' >"$rootfs/etc/passwd"
  echo 'root:x:0:' >"$rootfs/etc/group"
  seq 1 3000 >"$rootfs/data/page"
  cat >"$rootfs/data/nginx.conf" <<'END'
daemon off; master_process off; user root; pid /tmp/nginx.pid; error_log stderr;
events { worker_connections 512; }
http {
  access_log off; keepalive_requests 100000000; default_type text/plain; gzip on; gzip_types text/plain; gzip_comp_level 1;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 127.0.0.1:47811; root /data; }
}
END
  scripts/oci.sh "$rootfs" localhost/worth-service:1 "/bin/$program" "$work/service.tar"
}

make_batch_image() {
  local rootfs=$work/batch packages=$1 i
  add_program "$rootfs" /bin/sh
  mkdir -p "$rootfs"/{data,tmp,dev}
  case $batch in
    compiler)
      add_program "$rootfs" "$(gcc -print-prog-name=cc1)"
      for i in $(seq 40); do
        echo "int f$i(int *a, int n) { int s = $i; for (int i = 0; i < n; ++i) { s += a[i] * $i; if (s % $((i + 2)) == 1) a[i] = s; } return s; }"
      done >"$rootfs/data/job.c"
      ;;
    zstd)
      add_program "$rootfs" "$packages/usr/bin/zstd" "$packages"
      head -c 1M "$(gcc -print-prog-name=cc1)" >"$rootfs/data/job.bin"
      ;;
    memory) add_program "$rootfs" /bin/dd ;;
  esac
  scripts/oci.sh "$rootfs" localhost/worth-batch:1 /bin/sh "$work/batch.tar"
}

# --- the run ---------------------------------------------------------------------------------------------------------------

scripts/containerd.sh check
if [ -z "$build" ]; then
  scripts/deps.sh
  scripts/build.sh release qrmd qrmctl qrm-probe open_loop
  build=build/release
fi
for file in bin/qrmd bin/qrmctl bin/qrm-probe bench/open_loop; do
  [ -x "$build/$file" ] || fail "there is no $build/$file; leave --build out, and it is built"
done
work=$(mktemp -d /tmp/qrm-worth.XXXXXX)
export -f clean_up guard
setsid bash -c 'guard "$@"' guard $$ "$work" >/dev/null 2>&1 </dev/null &
trap 'clean_up "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
packages=$(fetch_programs)
images=(${image:+--image "$image"})
if [ "$program" != none ]; then
  make_service_image "$packages"
  images+=(--image "$work/service.tar")
fi
make_batch_image "$packages"
scripts/containerd.sh run --dir "$work" --probe "$build/bin/qrm-probe" "${images[@]}" --image "$work/batch.tar" -- \
  python3 "$root/scripts/worth/worth.py" "$@" &
wait $!  # so that signals end this at once
