#!/usr/bin/env bash
# Makes the disk that the machine of scripts/vm.sh boots from, of Debian 12's packages and the kernel of a release.
#   scripts/vm/image.sh CACHE 12|13
#
# Prints the folder that has root.img, vmlinuz and initrd.gz, below CACHE and named after all that goes into them, so that
# it is made once. Remove the folder to have newer packages.
#
# Any user can make it: packages are unpacked and not installed, and mke2fs fills the disk without a mount. What their
# own scripts would do, and this machine needs, is in configure().
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
readonly root
. "$root/scripts/debian.sh"

# Debian 12's, as that is what the programs of the checkout are built on: a system with systemd, AppArmor's tools, ctest,
# and the libraries of the programs.
readonly packages=(
  apparmor base-files base-passwd bash coreutils dash diffutils findutils gawk grep gzip hostname sed tar
  busybox-static util-linux mount procps iproute2 kmod e2fsprogs systemd systemd-sysv dbus cmake
  libgrpc++1.51 libprotobuf32 libabsl20220623 libfmt9 libsqlite3-0 libssl3 libyaml-cpp0.7 libhwloc15 libxxhash0
  libprometheus-cpp-core1.0 libpugixml1v5 libfuse3-3
)
# What is loaded before the disk can be read.
readonly boot_modules=(virtio_pci virtio_blk)

fail() {
  echo "vm/image.sh: $*" >&2
  exit 1
}

# unpack DIR PACKAGE...: with the links of a merged /usr left as they are.
unpack() {
  local dir=$1 package
  shift
  for package; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$dir" ||
      fail "cannot unpack $package: see above; free some space, or remove the folder to download it again"
  done
}

download_packages() {
  local apt=$1
  make_apt "$apt" bookworm >/dev/null
  private_apt "$apt" get install --yes --download-only --no-install-recommends "${packages[@]}" >"$apt/log/install" ||
    fail "cannot download the machine's packages: $(tail -3 "$apt/log/install"); check the network or the mirror"
}

# The package that the release's linux-image-cloud-amd64 stands for, into `APT`.
download_kernel() {
  local apt=$1 suite=$2 name
  make_apt "$apt" "$suite" >/dev/null
  name=$(private_apt "$apt" cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
  [[ -n $name ]] || fail "cannot find the kernel of Debian $suite: it has no linux-image-cloud-amd64; use another mirror"
  (cd "$apt/cache/archives" && private_apt "$apt" get download "$name") ||
    fail "cannot download $name: see above; check the network or the mirror"
}

# What the packages' own scripts would do.
configure() {
  local system=$1
  mkdir -p "$system"/{dev,proc,sys,run,tmp,root,qrm,etc/systemd/system,var}
  chmod 1777 "$system/tmp"
  cp "$system/usr/share/base-passwd/passwd.master" "$system/etc/passwd"
  cp "$system/usr/share/base-passwd/group.master" "$system/etc/group"
  echo 'messagebus:x:100:100::/nonexistent:/usr/sbin/nologin' >>"$system/etc/passwd"
  echo 'messagebus:x:100:' >>"$system/etc/group"
  printf '%s: files\n' passwd group shadow hosts >"$system/etc/nsswitch.conf"
  rm -rf "$system/var/run"
  ln -s /run "$system/var/run"
  ln -sf gawk "$system/usr/bin/awk"
  echo qrm-vm >"$system/etc/hostname"
  echo '127.0.0.1 localhost qrm-vm' >"$system/etc/hosts"
  : >"$system/etc/resolv.conf"
  # One that is not new: a first boot would ask for presets, keys and more.
  echo 71726d71726d71726d71726d71726d71 >"$system/etc/machine-id"
  local unit
  for unit in getty.target systemd-logind.service systemd-udevd.service systemd-udev-trigger.service e2scrub_reap.service \
    e2scrub_all.timer systemd-hwdb-update.service systemd-networkd.service systemd-timesyncd.service fstrim.timer \
    dpkg-db-backup.timer systemd-journal-catalog-update.service ldconfig.service systemd-update-done.service; do
    ln -sf /dev/null "$system/etc/systemd/system/$unit"
  done
  cat >"$system/etc/systemd/system/qrm-vm.target" <<'UNIT'
[Unit]
Description=The command of scripts/vm.sh
Requires=basic.target dbus.service
Wants=qrm-vm.service
After=basic.target dbus.service
UNIT
  cat >"$system/etc/systemd/system/qrm-vm.service" <<'UNIT'
[Unit]
After=basic.target dbus.service
FailureAction=poweroff-immediate
[Service]
Type=oneshot
ExecStart=/qrm/scripts/vm/guest.sh
Delegate=yes
TasksMax=infinity
TimeoutStartSec=infinity
StandardOutput=journal+console
UNIT
}

# With the modules of `boot_modules` and what they need, in the order in which they can be loaded.
make_initrd() {
  local system=$1 release=$2 tree=$3 module
  mkdir -p "$tree"/{bin,dev,proc,new,modules}
  cp "$system/bin/busybox" "$tree/bin/busybox"
  # modprobe says what it would load.
  for module in "${boot_modules[@]}"; do
    modprobe --dirname "$system" --set-version "$release" --show-depends "$module"
  done | awk '$1 == "insmod" && !known[$2]++ { print $2 }' >"$tree/order"
  while read -r module; do
    case $module in
      *.xz) xz -dc "$module" >"$tree/modules/$(basename "${module%.xz}")" ;;
      *) cp "$module" "$tree/modules/" ;;
    esac
  done <"$tree/order"
  sed -i 's#.*/##; s#[.]xz$##' "$tree/order"
  install -m 0755 "$root/scripts/vm/init.sh" "$tree/init"
  (cd "$tree" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1)
}

# mke2fs takes the owners of files from the files: as another user than root, those that fakeroot makes up.
make_disk() {
  local system=$1 disk=$2 as_root=()
  [[ $EUID -eq 0 ]] || as_root=(fakeroot)
  "${as_root[@]}" mke2fs -q -F -t ext4 -O '^has_journal' -m 0 -d "$system" "$disk" 2G >/dev/null ||
    fail "cannot make the disk $disk: see above; free some space"
}

make_image() {
  local dir=$1 suite=$2 system=$1/system release
  mkdir -p "$system"/usr/{bin,sbin,lib,lib64}
  ln -s usr/bin usr/sbin usr/lib usr/lib64 "$system"
  download_packages "$dir/apt"
  download_kernel "$dir/apt-kernel" "$suite"
  unpack "$system" "$dir"/apt/cache/archives/*.deb "$dir"/apt-kernel/cache/archives/*.deb
  configure "$system"
  release=$(ls "$system/lib/modules")
  depmod --basedir "$system" "$release"
  make_initrd "$system" "$release" "$dir/initrd" >"$dir/initrd.gz"
  mv "$system/boot/vmlinuz-$release" "$dir/vmlinuz"
  make_disk "$system" "$dir/root.img"
  rm -rf "$dir/apt" "$dir/apt-kernel" "$dir/initrd" "$system"
}

main() {
  local cache=$1 suite key dir work
  case ${2:-} in
    12) suite=bookworm ;;
    13) suite=trixie ;;
    *) fail "cannot take the kernel of Debian \"${2:-}\"; use 12 or 13" ;;
  esac
  key=$(cat "$root"/scripts/vm/{image,init}.sh "$root/scripts/debian.sh" | sha256sum | cut -c 1-16)
  dir=$cache/vm-$2-$key
  mkdir -p "$cache"
  exec 9>"$cache/vm.lock"
  flock 9
  if [[ ! -d $dir ]]; then
    work=$(mktemp -d "$cache/vm.XXXXXX")
    # shellcheck disable=SC2064  # the variable is another one by then
    trap "rm -rf '$work'" EXIT
    make_image "$work" "$suite"
    rm -rf "$cache/vm-$2-"*
    mv "$work" "$dir"
  fi
  echo "$dir"
}

main "$@"
