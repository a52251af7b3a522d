# For the tests in shell, which source it: failing, waiting, and a node with a simulated runtime. They have `build`, a
# directory `work`, and the array `started` of processes that they end themselves.
# shellcheck shell=bash disable=SC2154

fail() {
  echo "$1" >&2
  exit 1
}

# Until the command $1 prints $2.
await() {
  for _ in $(seq 100); do
    if [[ $(eval "$1" 2>&1) == *"$2"* ]]; then return; fi
    sleep 0.1
  done
  fail "$1 does not print \"$2\": $(eval "$1" 2>&1)"
}

# The runtime, with its sockets in the directory $1, which exist when it returns: reads commands from descriptor 3 and
# answers in $work/answers.
play_runtime() {
  mkfifo "$work/orders"
  : >"$work/answers"
  "$build/bin/interop_runtime" "$1" <"$work/orders" >"$work/answers" &
  started+=($!)
  exec 3>"$work/orders"
  await "cat $work/answers" "{}"
}

# The configuration of a qrmd that sees that directory as $1 and asks no other process.
played_config() {
  cat <<END
nri-socket: $1/nri.sock
cri-socket: $1/cri.sock
cgroup-root: $1
kubelet-state-dir: ""
kubelet-pods-socket: ""
kubelet-pod-resources-socket: ""
metrics-address: ""
probe-address: ""
END
}

# Sends the runtime the command $1, and waits for its answer.
order() {
  local before
  before=$(wc -l <"$work/answers")
  echo "$1" >&3
  for _ in $(seq 600); do
    [ "$(wc -l <"$work/answers")" -eq "$before" ] || return 0
    sleep 0.1
  done
  fail "the runtime does not answer $1"
}
