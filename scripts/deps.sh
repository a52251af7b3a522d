#!/usr/bin/env bash
# Installs the Debian 12 packages that building, testing and running qrm needs.
#   scripts/deps.sh [--checks | --operator | --vm]
#      --checks     also clang and ShellCheck for scripts/check.sh and scripts/fuzz.sh
#      --operator   also promtool, tmux, fish, zsh, Chromium, and tools that install packages into a root
#      --vm         also the emulator of scripts/vm.sh, and tools that create its disks
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates bzip2
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  libboost1.81-dev libfmt-dev libhwloc-dev hwloc-nox libsqlite3-dev libssl-dev libyaml-cpp-dev libjemalloc-dev libxxhash-dev
  nlohmann-json3-dev libpugixml-dev libcli11-dev prometheus-cpp-dev
  libgtest-dev libgmock-dev libfuse3-dev strace python3-grpcio python3-protobuf
)
case ${1:-} in
  "") ;;
  --checks) packages+=(shellcheck clang-format-19 clang-19 libclang-rt-19-dev python3-venv) ;;
  --operator) packages+=(prometheus curl mmdebstrap dpkg-dev tmux fish zsh chromium) ;;
  --vm) packages+=(qemu-system-x86 e2fsprogs cpio kmod xz-utils fakeroot procps) ;;
  *)
    echo "cannot install for \"$1\"; use --checks, --operator, --vm or nothing" >&2
    exit 2
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "cannot install ${missing[*]}: this needs root; run: sudo $0 $*" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
begin=$SECONDS
apt-get update -qq
apt-get install -y -qq --no-install-recommends --download-only "${missing[@]}"
echo "downloaded packages in $((SECONDS - begin)) s"
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/tmp/qrm-packages.$$ ||
  { cat /tmp/qrm-packages.$$; exit 1; }
rm -f /tmp/qrm-packages.$$
