#!/usr/bin/env bash
# README command one: installs packages, builds, and runs the main job: real containers get their CPUs, and other CPUs
# while they run. Then runs the three examples of the QoS Resource Manager proposal on a simulated 80-CPU machine. The
# times are those of two cores; scripts/test.sh uses the same packages and the same build.
#
# Exits with 0 if everything ran and was correct. If this machine lacks something for containers (root, cgroups), one
# sentence says so; the examples run all the same, and the exit code is 1.
set -euo pipefail

cd "$(dirname "$0")/.."
bin=build/release/bin
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

step "1. install Debian packages, about 15 s beside the download" scripts/deps.sh
step "2. build the programs, about 8 min, and 15 s to 6 min after an edit" \
  scripts/build.sh release qrmd qrmctl qrm-plugin-cpu qrm-plugin-memory qrm-plugin-nic qrm-probe qrm-main-job interop_runtime

containers=0
step "3. the main job on real containers (containerd with NRI, in a private directory), about 6 s" \
  scripts/containerd.sh run --probe "$bin/qrm-probe" -- "$PWD/$bin/qrm-main-job" containers || containers=$?
if ((containers != 0 && containers != 77)); then
  exit "$containers"
fi

step "4. the proposal's examples (simulated runtime), about 1 s" "$bin/qrm-main-job" examples

if ((containers == 77)); then
  echo "run.sh: the main job was not played on real containers; see step 3 for what is missing" >&2
  exit 1
fi
printf '\n######## done: everything was as it must be; scripts/try.sh starts a node to play with\n'
