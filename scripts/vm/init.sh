#!/bin/busybox sh
# shellcheck shell=dash
# The first process of the machine of scripts/vm.sh: finds the disks of the system and of the checkout, and goes over to systemd.
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
while read -r module; do
  /bin/busybox insmod "/modules/$module"
done </order
# The checkout lies where it lies on the host: ctest's files name it by that path.
for word in $(/bin/busybox cat /proc/cmdline); do
  case $word in
    qrm.checkout=*) checkout=${word#*=} ;;
  esac
done
/bin/busybox mount -t ext4 /dev/vda /new
/bin/busybox mkdir -p "/new$checkout"
/bin/busybox mount -t ext4 /dev/vdb "/new$checkout"
/bin/busybox rmdir /new/qrm
/bin/busybox ln -s "$checkout" /new/qrm
/bin/busybox umount /proc
exec /bin/busybox switch_root /new /lib/systemd/systemd
