#!/usr/bin/env bash
# The first process of the node of scripts/cluster.sh, in its new namespaces: mounts what the node has of its own, and then
# reaps processes until it is killed, which ends all of them.
#   node.sh DIRECTORY ADDRESS
set -euo pipefail

readonly dir=$1 address=$2

own() { # FILE OF THE NODE, FILE OF /proc/sys: what kubelet sets for the whole machine shall stay as it is there
  cat "$2" >"$1"
  mount --bind "$1" "$2"
}

mount --make-rprivate /
# The network namespace's own /sys/class/net, with the machine's cgroups.
mkdir -p "$dir/cgroup"
mount --rbind /sys/fs/cgroup "$dir/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$dir/cgroup" /sys/fs/cgroup
umount -l "$dir/cgroup"
for path in /run /var/lib /var/log; do
  mount -t tmpfs -o mode=0755 "node${path//\//-}" "$path"
done
mkdir -p /run/lock /var/lib/{containerd,kubelet,qrm,cni}
for name in containerd kubelet qrm; do
  mount --bind "$dir/var/$name" "/var/lib/$name"
done
mkdir -p "$dir/sysctl"
own "$dir/sysctl/overcommit_memory" /proc/sys/vm/overcommit_memory
own "$dir/sysctl/panic" /proc/sys/kernel/panic
own "$dir/sysctl/panic_on_oops" /proc/sys/kernel/panic_on_oops
# As on a node: pods may ask for mounts that follow the host's.
mount --make-rshared /

hostname node
ip link set lo up
# The API server's own service, for which no kube-proxy is needed so: it listens at the service's port.
ip address add 10.96.0.1/32 dev lo
ip link add node0 type bridge
ip address add "$address/24" dev node0
ip link set node0 up
# kubelet and kube-apiserver take the node's address from its default route; nothing goes out by it.
ip route add default via "${address%.*}.254" dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward
touch "$dir/ready"
while true; do
  sleep 3600 &
  wait $! || true
done
