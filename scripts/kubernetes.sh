#!/usr/bin/env bash
# Builds programs of Go modules, unmodified, keeps them in build/cache, and prints their directory. Ends with 77 (skipped)
# where there is no Go or no module proxy.
#   scripts/kubernetes.sh              etcd and Kubernetes, of the versions in test/interop/apiserver/go.mod
#   scripts/kubernetes.sh helm         Helm, of the version in test/interop/chart/go.mod
#   scripts/kubernetes.sh containerd   containerd 2, its shim and ctr, of the version in test/interop/containerd/go.mod
set -euo pipefail

cd "$(dirname "$0")/.."
case ${1:-} in
  "") name=kubernetes module=test/interop/apiserver ;;
  helm) name=helm module=test/interop/chart ;;
  containerd) name=containerd2 module=test/interop/containerd ;;
  *)
    echo "cannot build \"$1\"; use helm, containerd or nothing" >&2
    exit 2
    ;;
esac
export PATH=$PATH:/usr/local/go/bin CGO_ENABLED=0

skip() {
  echo "skipped: $*" >&2
  exit 77
}

command -v go >/dev/null || skip "there is no Go toolchain to build $name; install Go 1.26"
go -C "$module" mod download >&2 || skip "Go's module proxy does not give the modules of $module, nor are they in its cache"

# Who asks a program of Kubernetes for its version gets the one that it is of: charts and clients do as it says.
flags="-s -w"
if [[ $name == kubernetes ]]; then
  version=$(go -C "$module" list -m -f '{{.Version}}' k8s.io/kubernetes)
  for field in gitVersion="$version" gitMajor=1 gitMinor="$(cut -d. -f2 <<<"$version")" gitTreeState=clean; do
    flags+=" -X k8s.io/component-base/version.$field"
  done
fi

mkdir -p build/cache
exec 9>"build/cache/$name.lock"
flock 9
# Named by what they are built of, and how.
programs=$PWD/build/cache/$name-$({ cat "$module"/go.{mod,sum}; echo "$flags"; } | sha256sum | cut -c1-12)
if [[ ! -d $programs ]]; then
  echo "kubernetes.sh: building $name${version:+ $version}; a first time takes minutes" >&2
  work=$(mktemp -d "$PWD/build/cache/$name.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  GOBIN=$work nice go -C "$module" install -ldflags "$flags" tool >&2
  [[ ! -e $work/server ]] || mv "$work/server" "$work/etcd"
  mv "$work" "$programs"
fi
echo "$programs"
