#!/usr/bin/env bash
# Packs the built programs, and the libraries that they load, as container image localhost/qrm:VERSION.
#   scripts/image.sh [ARCHIVE [BUILD DIRECTORY]]     default: build/qrm-image.tar build/release
# An SPDX document beside ARCHIVE (.spdx.json) and in the image lists the contents.
#
# Needs no container engine: the libraries are those of this machine's Debian packages. Their licences and versions are in
# the image, where scanners look for them. The image has no shell and nothing else.
set -euo pipefail

cd "$(dirname "$0")/.."
archive=${1:-build/qrm-image.tar}
build=${2:-build/release}
rootfs=$(mktemp -d)
trap 'rm -rf "$rootfs"' EXIT

# The files that the dynamic linker loads for the programs, itself among them.
libraries() {
  local program
  for program in "$rootfs"/usr/local/sbin/*; do
    ldd "$program"
  done | grep -o '/[^ ]*' | sort -u
}

# The package of a file, which dpkg may know by its path from before /lib became a link to /usr/lib.
package_of() {
  local found
  found=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}") || {
    echo "cannot find the package of $1: dpkg does not know it; build on a Debian 12 as scripts/deps.sh makes it" >&2
    return 1
  }
  echo "${found%%:*}"
}

add_library() {
  local path real
  path="$(realpath "$(dirname "$1")")/$(basename "$1")"
  real=$(realpath "$1")
  install -D -m 0755 "$real" "$rootfs$path"
  add_package_of "$real"
}

# The licence and the version of the package of a file.
add_package_of() {
  local package
  package=$(package_of "$1")
  if [[ ! -e $rootfs/var/lib/dpkg/status.d/$package ]]; then
    dpkg-query -s "$package" >"$rootfs/var/lib/dpkg/status.d/$package"
    install -D -m 0644 "/usr/share/doc/$package/copyright" "$rootfs/usr/share/doc/$package/copyright"
  fi
}

if [[ ! -x $build/bin/qrmd ]]; then
  echo "cannot pack the programs: $build/bin/qrmd is not there; run scripts/build.sh" >&2
  exit 1
fi
cmake --install "$build" --component programs --strip --prefix "$rootfs/usr/local" >/dev/null
mkdir -p "$rootfs"/{etc,tmp,usr/lib,usr/lib64,var/lib/dpkg/status.d}
chmod 0755 "$rootfs"
chmod 1777 "$rootfs/tmp"
ln -s usr/lib "$rootfs/lib"
ln -s usr/lib64 "$rootfs/lib64"
echo 'root:x:0:0:root:/:/sbin/nologin' >"$rootfs/etc/passwd"
install -m 0644 /etc/os-release "$rootfs/etc/os-release"
needed=$(libraries)
for library in $needed; do
  add_library "$library"
done
while read -r linked; do
  add_package_of "$linked"
done <"$build/linked_in_archives.txt"
version=$("$rootfs/usr/local/sbin/qrmd" --version)
version=${version#qrmd }
mkdir -p "$rootfs/usr/share/doc/qrm"
install -m 0644 LICENSE "$rootfs/usr/share/doc/qrm/copyright"
scripts/sbom.sh "$rootfs" "$version" | tee "${archive%.tar}.spdx.json" >"$rootfs/usr/share/doc/qrm/qrm.spdx.json"
scripts/oci.sh "$rootfs" "localhost/qrm:$version" /usr/local/sbin/qrmd "$archive" \
  org.opencontainers.image.title=qrm \
  "org.opencontainers.image.description=Gives containers of a Kubernetes node their CPUs, memory nodes and NICs" \
  "org.opencontainers.image.version=$version" \
  "org.opencontainers.image.revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
  org.opencontainers.image.licenses=Apache-2.0
echo "localhost/qrm:$version is in $archive ($(du -h "$archive" | cut -f1)), its contents in ${archive%.tar}.spdx.json"
