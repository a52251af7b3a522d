#!/usr/bin/env bash
# Runs a command of the project in an emulated machine with NUMA nodes, cgroup v2 and systemd.
#   scripts/vm.sh [OPTION...] -- COMMAND [ARG...]
#
#   --machine 2n|4n|8n|q35|smt|hmat|hotplug   what it has (default 4n), see below
#   --kernel 12|13                        Debian 12's kernel (default) or Debian 13's; everything else is Debian 12's
#   --timeout SECONDS                     when it is killed (default 1800)
#   --results DIR                         where to lay the files that COMMAND leaves in $QRM_VM_RESULTS
#   --with PATH                           what of build/ it gets, too, with all that is below; may be given several times
#   --state FILE                          a disk that is kept from run to run, made where there is none; what is on it
#                                         is in $QRM_VM_STATE
#   --cut-at TEXT                         cut the power, as a failure would, when COMMAND prints TEXT
#
#   2n       8 CPUs on 2 NUMA nodes, 1 GiB each
#   4n       16 CPUs on 4 NUMA nodes, 2 cores of 2 threads and 1 GiB each
#   8n       16 CPUs on 8 NUMA nodes, 512 MiB each
#   q35      as 4n, with PCI Express: each node has a root bus with an NVMe disk and a NIC
#   smt      16 CPUs, which are 8 cores of 2 threads, on one NUMA node
#   hmat     8 CPUs on 2 NUMA nodes, and a node 2 of memory only that is farther away, as ACPI's HMAT says
#   hotplug  8 CPUs on 2 NUMA nodes, 1 GiB each, and room for 4 CPUs and 2 GiB more: what is written to the port
#            $QRM_VM_MONITOR goes to QEMU's monitor, as "device_add max-x86_64-cpu,id=new,socket-id=1,core-id=2,thread-id=0"
#
# COMMAND is run by root in build/release of the checkout, which is at the path that it has here, with build/release/bin
# first in its PATH; of the tests' programs, those of label vm are there, which this script builds. It sees copies: what
# it changes is gone at the end. Its output and exit status are this script's; 124 when the time was up, 137 when the
# power was cut.
#
# The machine is emulated by QEMU without KVM: it is 10 to 20 times slower than this one. Its disk is made of Debian's
# packages at first, in some twenty seconds, and kept in build/cache. scripts/deps.sh --vm installs what is needed; no
# step needs root.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root self="$root/scripts/vm.sh" cache="$root/build/cache"
PATH=$PATH:/usr/sbin:/sbin
machine=4n kernel=12 limit=1800 results= state= cut_at= keeper= with=()
readonly silence=180 # seconds without a word after which the emulator hangs; the machine speaks within 30

fail() {
  echo "vm.sh: $*" >&2
  exit 1
}

usage() {
  echo "vm.sh: $*; run $self --help" >&2
  exit 2
}

# --- what the machine has -------------------------------------------------------------------------

# nodes COUNT CPUS MEBIBYTES: NUMA nodes with as many CPUs and as much memory each.
nodes() {
  local node
  for ((node = 0; node < $1; ++node)); do
    echo -object "memory-backend-ram,id=memory$node,size=$3M"
    echo -numa "node,nodeid=$node,memdev=memory$node,cpus=$((node * $2))-$(((node + 1) * $2 - 1))"
  done
}

# latency FROM TO NANOSECONDS, and MEGABYTES per second
hmat() {
  local kind="initiator=$1,target=$2,hierarchy=memory"
  echo -numa "hmat-lb,$kind,data-type=access-latency,latency=$3"
  echo -numa "hmat-lb,$kind,data-type=access-bandwidth,bandwidth=$4M"
}

# QEMU's arguments for `machine`.
shape() {
  local from to node
  case $machine in
    2n) echo -machine pc -m 2048 -smp 8,sockets=2,cores=4 && nodes 2 4 1024 ;;
    4n) echo -machine pc -m 4096 -smp 16,sockets=4,cores=2,threads=2 && nodes 4 4 1024 ;;
    8n) echo -machine pc -m 4096 -smp 16,sockets=8,cores=2 && nodes 8 2 512 ;;
    q35)
      echo -machine q35 -m 4096 -smp 16,sockets=4,cores=2,threads=2 && nodes 4 4 1024
      for node in 0 1 2 3; do
        echo -device "pxb-pcie,id=root$node,bus=pcie.0,bus_nr=$((32 * (node + 2))),numa_node=$node"
        echo -device "pcie-root-port,id=disk$node,bus=root$node,chassis=$((node + 1))"
        echo -device "pcie-root-port,id=nic$node,bus=root$node,chassis=$((node + 11))"
        echo -drive "if=none,id=flash$node,file=${dir:-}/flash$node.img,format=raw"
        echo -device "nvme,serial=flash$node,drive=flash$node,bus=disk$node"
        echo -device "virtio-net-pci,bus=nic$node,romfile="
      done
      ;;
    smt) echo -machine pc -m 2048 -smp 16,sockets=1,cores=8,threads=2 && nodes 1 16 2048 ;;
    hotplug)
      echo -machine pc -m 2048,slots=2,maxmem=4096M -smp 8,maxcpus=12,sockets=2,cores=6
      nodes 2 6 1024
      ;;
    hmat)
      echo -machine pc,hmat=on -m 3072 -smp 8,sockets=2,cores=4
      for from in 0 1 2; do
        echo -object "memory-backend-ram,id=memory$from,size=1024M"
      done
      echo -numa node,nodeid=0,memdev=memory0,cpus=0-3,initiator=0
      echo -numa node,nodeid=1,memdev=memory1,cpus=4-7,initiator=1
      echo -numa node,nodeid=2,memdev=memory2,initiator=1
      echo -numa dist,src=0,dst=1,val=21 -numa dist,src=0,dst=2,val=40 -numa dist,src=1,dst=2,val=30
      for to in 0 1; do
        hmat "$to" "$to" 100 10000 && hmat "$to" $((1 - to)) 200 5000 && hmat "$to" 2 $((400 - 100 * to)) 2000
      done
      ;;
    *) usage "there is no machine \"$machine\"; take 2n, 4n, 8n, q35, smt, hmat or hotplug" ;;
  esac
}

# --- what goes in -----------------------------------------------------------------------------------

need() {
  local program
  for program in qemu-system-x86_64 mke2fs cpio depmod dpkg-deb fakeroot cmake; do
    command -v "$program" >/dev/null ||
      fail "cannot make the machine: there is no $program; run scripts/deps.sh --vm"
  done
}

# The files of the checkout that the machine gets, by their names below it: what git has, what the build made without
# objects and the tests' programs of other labels, containerd, and what --with names.
checkout_files() {
  git ls-files --cached --others --exclude-standard
  find build/release -type f \( -path '*/bin/*' ! -name 'test_*' -o -name 'test_vm*' ! -name '*.cmake' -o \
    -name CTestTestfile.cmake -o -name '*_include*.cmake' -o -name '*_labels.cmake' \) ! -path '*/CMakeFiles/*'
  find build/cache/containerd-* "${with[@]}" ! -type d
}

# make_checkout_disk DIR COMMAND...
make_checkout_disk() {
  local dir=$1 tree=$1/checkout
  shift
  mkdir -p "$tree"
  (cd "$root" && checkout_files | cpio --quiet -pdmL "$tree") || fail "cannot copy the checkout: see above; free some space"
  printf '%q ' "$@" >"$tree/build/vm-command"
  # With room to write in, which takes none here until it is used.
  mke2fs -q -F -t ext4 -O '^has_journal' -m 0 -d "$tree" "$dir/checkout.img" \
    "$(($(du -sm "$tree" | cut -f1) * 5 / 4 + 2048))M" >/dev/null || fail "cannot make the disk of the checkout: see above; free some space"
  rm -rf "$tree"
}

make_disks() {
  local dir=$1
  truncate -s 512M "$dir/results.img"
  truncate -s 64M "$dir/play1.img" "$dir/play2.img"
  [[ $machine != q35 ]] || truncate -s 16M "$dir"/flash{0,1,2,3}.img
  if [[ -z $state ]]; then
    truncate -s 2G "$dir/state.img"
  elif [[ ! -e $state ]]; then
    truncate -s 2G "$state"
  fi
}

# --- the run ----------------------------------------------------------------------------------------

# disk FILE [OPTION]: in the order in which the machine's scripts know them. "snapshot": changes are forgotten.
disk() {
  disks=$((disks + 1))
  printf '%s\n' -drive "file=$1,format=raw,if=none,id=drive$disks,${2:-cache=writeback}" \
    -device "virtio-blk-pci,drive=drive$disks,bus=$bus"
}

# Ends QEMU, whose parent `keeper` is, if it runs, and removes the run's files.
clean_up() {
  [[ -z $keeper ]] || pkill -KILL -P "$keeper" || true
  rm -rf "$1"
}

# watch_boot DIR: ends a QEMU that hangs before the kernel's first line, which it rarely does, and leaves a file `hung`.
watch_boot() {
  local waited
  for ((waited = 0; waited < silence; ++waited)); do
    sleep 1
    [[ -d $1 && ! -s $1/console ]] || return 0
  done
  touch "$1/hung"
  pkill -KILL -P "$keeper"
}

# boot DIR IMAGE: starts the machine, and passes its output on until it ends. 137 when the power was cut.
boot() {
  local dir=$1 image=$2 line arguments cut=0 bus=pci.0 disks=0
  [[ $machine != q35 ]] || bus=pcie.0
  mapfile -t arguments < <(
    shape | tr ' ' '\n'
    disk "$image/root.img" snapshot=on
    disk "$dir/checkout.img" snapshot=on
    disk "$dir/results.img"
    disk "${state:-$dir/state.img}"
    disk "$dir/play1.img"
    disk "$dir/play2.img"
  )
  if [[ $machine == hotplug ]]; then
    arguments+=(-chardev "socket,id=monitor,path=$dir/monitor,server=on,wait=off" -mon "chardev=monitor,mode=readline"
      -chardev "socket,id=switch,path=$dir/monitor" -device "virtserialport,chardev=switch,name=qrm.monitor")
  fi
  rm -f "$dir/output" "$dir/hung"
  mkfifo "$dir/output"
  # Each disk has one interrupt, which the kernel manages, so that some CPUs have none; the network ends at its gateway.
  # Without cx16: QEMU 7.2 emulates cmpxchg16b wrongly, by which Debian 13's kernel allocates memory. As Intel's, since
  # Linux reads of no threads from the processor that QEMU makes up for AMD.
  TMPDIR=$dir timeout --foreground --signal=KILL "$limit" qemu-system-x86_64 -nodefaults -display none -no-reboot \
    -accel tcg,thread=multi,tb-size=1024 -cpu max,vendor=GenuineIntel,cx16=off -device virtio-serial-pci "${arguments[@]}" \
    -global virtio-blk-pci.num-queues=1 -netdev user,id=net,restrict=on -device "virtio-net-pci,netdev=net,romfile=,bus=$bus" \
    -kernel "$image/vmlinuz" -initrd "$image/initrd.gz" \
    -append "console=ttyS0 root=/dev/vda rw quiet panic=-1 systemd.journald.forward_to_console=1 systemd.unit=qrm-vm.target qrm.checkout=$root" \
    -serial "file:$dir/console" \
    -chardev "file,id=output,path=$dir/output" -device virtserialport,chardev=output,name=qrm.output \
    -chardev "file,id=status,path=$dir/status" -device virtserialport,chardev=status,name=qrm.status \
    2>"$dir/qemu" </dev/null &
  keeper=$!
  watch_boot "$dir" &
  while IFS= read -r line || [[ -n $line ]]; do
    printf '%s\n' "$line"
    if [[ -n $cut_at && $line == *"$cut_at"* && $cut == 0 ]]; then
      cut=1
      pkill -KILL -P "$keeper"
    fi
  done <"$dir/output"
  wait "$keeper" 2>/dev/null || true
  keeper=
  return $((cut * 137))
}

# Why there is no status, with what the machine said last.
no_answer() {
  local dir=$1 took=$2
  if ((took >= limit)); then
    echo "vm.sh: the machine was killed after $limit s; allow more with --timeout. Its console:" >&2
    tail -n 30 "$dir/console" >&2
    exit 124
  fi
  tail -n 60 "$dir/console" "$dir/qemu" >&2
  fail "the machine ended without an exit status: see its console and QEMU's output above"
}

run() {
  local dir image cut=0
  need
  "$root/scripts/build.sh" release vm_tests
  "$root/scripts/containerd.sh" fetch >/dev/null
  image=$("$root/scripts/vm/image.sh" "$cache" "$kernel")
  mkdir -p "$root/build/vm"
  dir=$(mktemp -d "$root/build/vm/run.XXXXXX")
  # shellcheck disable=SC2064  # the variable is local
  trap "clean_up '$dir'" EXIT
  trap 'exit 143' INT TERM HUP
  make_checkout_disk "$dir" "$@"
  make_disks "$dir"
  SECONDS=0
  boot "$dir" "$image" || cut=$?
  if [[ -e $dir/hung ]]; then
    echo "vm.sh: QEMU printed nothing in $silence s; starting it once more" >&2
    boot "$dir" "$image" || cut=$?
  fi
  ((cut == 0)) || exit "$cut"
  [[ -s $dir/status ]] || no_answer "$dir" "$SECONDS"
  if [[ -n $results ]]; then
    mkdir -p "$results"
    tar -xf "$dir/results.img" -C "$results"
  fi
  exit "$(<"$dir/status")"
}

while (($#)); do
  case $1 in
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$self" && exit 0 ;;
    --) shift && break ;;
    --machine | --kernel | --timeout | --results | --with | --state | --cut-at) (($# > 1)) || usage "$1 needs a value" ;;&
    --machine) machine=$2 && shift 2 ;;
    --kernel) kernel=$2 && shift 2 ;;
    --timeout) limit=$2 && shift 2 ;;
    --results) results=$(realpath -m "$2") && shift 2 ;;
    --with) with+=("$(realpath --relative-to="$root" "$2")") && shift 2 ;;
    --state) state=$(realpath -m "$2") && shift 2 ;;
    --cut-at) cut_at=$2 && shift 2 ;;
    *) usage "there is no option \"$1\"" ;;
  esac
done
(($#)) || usage "there is no command; write it behind --"
[[ $limit =~ ^[1-9][0-9]*$ ]] || usage "--timeout is \"$limit\"; write seconds"
shape >/dev/null
run "$@"
