#!/usr/bin/env bash
# scripts/worth.sh, short: plays and reports all ways, and leaves nothing behind, also when it is killed.
#   short.sh BUILD_DIRECTORY
set -euo pipefail

build=$(realpath "$1")
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() {
  echo "$1" >&2
  exit 1
}
# What the run with this suffix has.
left() { ls -d "/tmp/qrm-worth.$1" "/sys/fs/cgroup/qrm-$1" /sys/fs/cgroup/*/"qrm-$1" 2>/dev/null || true; }

status=0
scripts/worth.sh --build "$build" --rounds 1 --seconds 1 --seed 1 --out "$out" || status=$?
[ $status -eq 0 ] || exit $status
python3 - "$out" <<'END'
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
told = json.loads((out / "worth.json").read_text())
plays = {play["way"]: play for play in told["plays"]}
assert list(told["ways"]) == ["a", "a2", "b", "be", "c", "d", "e", "f", "g", "h"], list(told["ways"])
assert plays.keys() == told["ways"].keys()
for way, play in plays.items():
    assert play["p50"] > 0 and (play["work"] is None) == (way in ("a", "a2")), play
    shares_cpus = bool(set(play["service_cpuset"]) & set(play["batch_cpuset"]))
    assert shares_cpus == (way in ("b", "be", "f", "g", "h")), play
    assert play["batch_idle"] == (way in ("g", "h")), play
report = (out / "worth.md").read_text()
assert report.startswith("Worse than (b) Kubernetes' defaults, batch Burstable: "), report
assert "The machine itself: in " in report and all(f"\n| ({way}) " in report for way in plays), report
assert (out / "worth.svg").read_text().startswith("<svg ")
END

scripts/worth.sh --build "$build" --ways d --rounds 9 --out "$out" >"$out/log" 2>&1 &
killed=$!
for _ in $(seq 600); do
  ! grep -q 'round 1' "$out/log" || break
  sleep 0.1
done
work=$(find /tmp -maxdepth 1 -name 'qrm-worth.*')
[[ $(left "${work##*.}") == *cgroup* ]] || fail "worth.sh does not run: $(cat "$out/log")"
kill -KILL "$killed"
for _ in $(seq 300); do
  [ -n "$(left "${work##*.}")" ] || exit 0
  sleep 0.1
done
fail "30 s after worth.sh was killed, there are still: $(left "${work##*.}")"
