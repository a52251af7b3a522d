# Sourced: builds the programs of test/interop/apiserver, unmodified, of Go modules and keeps them in build/cache; sets
# `programs` to their directory. Ends with 77 (skipped) where there is no Go or no module proxy. The working directory is
# the root of the tree.
export PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
  echo "skipped: there is no Go toolchain to build a kube-apiserver; install Go 1.26"
  exit 77
fi
for module in test/interop/apiserver test/interop/chart; do
  if ! go -C "$module" mod download; then
    echo "skipped: Go's module proxy does not give the modules of $module, nor are they in its cache"
    exit 77
  fi
done

# Named by what they are built of.
programs=$PWD/build/cache/apiserver-$(cat test/interop/apiserver/go.{mod,sum} | sha256sum | cut -c1-12)
if [[ ! -x $programs/kube-apiserver ]]; then
  mkdir -p build/cache
  work=$(mktemp -d build/cache/apiserver.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  CGO_ENABLED=0 GOBIN=$(realpath "$work") nice go -C test/interop/apiserver install -ldflags '-s -w' tool
  rm -rf "$programs"
  mv "$work" "$programs"
fi
