#!/usr/bin/env bash
# README command two: installs packages, builds, and runs every test except three labels: cluster, which builds Kubernetes
# first; packages, which installs what is built; and vm, which emulates a machine. scripts/check.sh cluster packages vm
# runs those. As root, the tests on a real containerd run, too; without root, they report that they were skipped. The times
# are those of two cores.
#   scripts/test.sh [ctest arguments...]      for example: scripts/test.sh -L unit
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

step "install Debian packages, about 15 s beside the download" scripts/deps.sh
step "build programs and tests, about 18 min, 10 after scripts/run.sh" scripts/build.sh release
if ! PATH=$PATH:/usr/local/go/bin command -v go >/dev/null; then
  echo "test.sh: there is no Go toolchain, so that the interop test is skipped; install Go 1.26 to run it"
fi
echo "test.sh: left out are the tests of labels cluster, packages and vm; run scripts/check.sh cluster packages vm"
step "run tests, about 14 min" ctest --preset release -LE 'cluster|packages|vm' -j "$(nproc)" "$@"
