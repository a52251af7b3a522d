#!/usr/bin/env bash
# Takes the rules of pools, owners and memory (P1 to P22, and what places promise) out of a copy of the sources, one at a
# time, and expects tests to fail then.
#   rules_taken_away.sh [RULE...]     such as P3, or place; default: all
set -euo pipefail

cd "$(dirname "$0")/../.."
readonly copy=$PWD/build/rules_taken_away
export QRM_POOL_HISTORIES=${QRM_POOL_HISTORIES:-600}
wanted=("$@")
missed=()

fail() {
  cat "$copy/build.log" >&2
  echo "$*; correct $0" >&2
  exit 1
}

# Existing files keep their time, so that nothing is compiled again.
copy_sources() {
  local file
  git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
    if ! cmp -s "$file" "$copy/$file"; then
      mkdir -p "$copy/$(dirname "$file")"
      cp "$file" "$copy/$file"
    fi
  done
}

build() {
  (cd "$copy" && scripts/build.sh release test_plugins_cpu_unit test_plugins_cpu_advisor_integration \
    test_plugins_memory_unit) >"$copy/build.log" 2>&1
}

first_failure() {
  sed -n 's/^\[  FAILED  \] \([^ ,]*\).*/\1/p' "$copy/test.log" | grep . | head -1 || echo "who ends early"
}

# run BINARY FILTER: whether its tests pass.
run() {
  GTEST_FAIL_FAST=1 "$copy/build/release/bin/$1" --gtest_filter="$2" >"$copy/test.log" 2>/dev/null
}

# without RULE WHAT FILE BINARY FILTER OLD NEW [OLD NEW...]: FILE implements WHAT of the rule by each OLD, which is
# there once and is replaced by NEW.
without() {
  local rule=$1 what=$2 file=$3 binary=$4 filter=$5 found
  shift 5
  if [ ${#wanted[@]} -gt 0 ] && ! printf '%s\n' "${wanted[@]}" | grep -qx "$rule"; then
    return
  fi
  while [ $# -gt 0 ]; do
    found=$(OLD=$1 perl -0777 -ne 'print scalar(() = /\Q$ENV{OLD}\E/g)' "$copy/$file")
    if [ "$found" != 1 ]; then
      fail "$rule: $file has $found times, not once, where \"$what\" stood: $1"
    fi
    OLD=$1 NEW=$2 perl -0777 -pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$copy/$file"
    shift 2
  done
  build || fail "$rule: without \"$what\" it does not compile"
  if run "$binary" "$filter"; then
    echo "$rule: no test checks that $what"
    missed+=("$rule")
  else
    echo "$rule: $(first_failure) misses that $what"
  fi
  cat "$file" >"$copy/$file"
}

readonly cpu=test_plugins_cpu_unit advisor=test_plugins_cpu_advisor_integration memory=test_plugins_memory_unit
readonly models='PoolModelTest.*:PlaceModelTest.*'

copy_sources
build || fail "the sources as they are do not compile"
for tests in "$cpu" "$advisor" "$memory"; do
  run "$tests" '*' || fail "$tests: $(first_failure) fails with all rules there"
done

without P1 'what one pool gets, the next does not' plugins/cpu/elastic.cc "$cpu" "$models" \
  $'    cpus |= more;\n    free_ -= more;' \
  $'    cpus |= more;'
without P2 'pools have nothing of what containers own' plugins/cpu/state.cc "$cpu" "$models" \
  $'view.config.isolated -\n         ExclusiveCpus(view.state);' \
  'view.config.isolated;'
without P3 'a lender keeps what it is to keep' plugins/cpu/pools.cc "$cpu" "$models" \
  'own.Count() - rule.keep' \
  'own.Count()'
without P3 'what is in a pool is not idle' plugins/cpu/pools.cc "$cpu" "$models" \
  $'    idle -= cpus;\n' \
  $'    (void)cpus;\n'
without P4 'a pool with containers has a CPU' plugins/cpu/pool_asks.cc "$cpu" "$models" \
  'ask.min = std::max(ask.min, std::min(ask.unit, ask.max));' \
  ''
without P5 'no pool is larger than its max' plugins/cpu/pool_asks.cc "$cpu" "$models" \
  'std::max(size.max * owned / threads, 1) * threads' \
  'CpuSet::kMaxIds / threads * threads'
without P5 'no pool is smaller than its min' plugins/cpu/pool_asks.cc "$cpu" 'ElasticTest.*:InstancesTest.*:PoolSizeTest.*' \
  'RoundUp(size.min * owned, threads)' \
  'RoundUp(0 * size.min * owned, threads)'
without P6 'reserved CPUs are in no pool' plugins/cpu/state.cc "$cpu" '*' \
  $'view.machine.cpu_set() - view.config.reserved - view.config.isolated -\n         ExclusiveCpus' \
  $'view.machine.cpu_set() - view.config.isolated -\n         ExclusiveCpus'
without P6 'isolated CPUs are in no pool' plugins/cpu/state.cc "$cpu" 'Isolated*' \
  $'view.config.reserved - view.config.isolated -\n         ExclusiveCpus' \
  $'view.config.reserved -\n         ExclusiveCpus'
without P7 'a plan of what was planned moves nothing' plugins/cpu/sizing/pool_size.cc "$cpu" "$models" \
  '    size += kept;' \
  '    size += std::max(kept - 1, 0);'
without P8 'who has more than it needs is known' plugins/cpu/elastic.cc "$cpu" "$models" \
  $'      pools.insert(name);\n' \
  $'      (void)name;\n'
without P9 'sizes follow from present containers, not from the past' plugins/cpu/sizing/pool_size.cc "$cpu" "$models" \
  'now->second.may_shrink ? surplus - step : surplus' \
  'now->second.may_shrink ? surplus - 0 * step : surplus'
without P10 'a rejected container keeps what it had' plugins/cpu/cpu_plugin.cc "$cpu" "$models" \
  'Own(request.key, *std::move(former_holding));' \
  'former_holding.reset();'
without P11 'who goes asks for nothing more' plugins/cpu/cpu_plugin.cc "$cpu" "$models" \
  $'      Disown(key);\n      Unshare(key);' \
  '      Disown(key);'
without P12 'a pool keeps the CPUs that it has' plugins/cpu/elastic.cc "$cpu" "$models" \
  'cpus &= regions.at(name);' \
  'cpus = CpuSet();'
without P12 'what is picked is beside what is held' plugins/cpu/place.cc "$cpu" 'Pick*:*PickTest*' \
  'std::tuple(part.free == 0, -part.own, !fits,' \
  'std::tuple(part.free == 0, !fits,'
without P13 'a reload leaves pools of the same keys their CPUs' plugins/cpu/pools.cc "$cpu" "$models" \
  'IsElastic(config, pool) ? "elastic"' \
  'IsElastic(config, pool) ? std::to_string(config.rules.size())'
without P14 'a restart knows what pools had' plugins/cpu/cpu_plugin.cc "$cpu" "$models" \
  'SetPoolSizes(std::move(loaded->pools));' \
  ''
without P14 'a restart knows what was advised' plugins/cpu/pools.cc "$advisor" '*' \
  'text["advised"] = saved.advised;' \
  ''
without P15 'who grows in place keeps its CPUs' plugins/cpu/own_cpus.cc "$cpu" "$models" \
  'held | PickCpus(machine, held, free, missing)' \
  'PickCpus(machine, {}, free | held, room.count)'
without P15 'who shrinks keeps the CPUs of its first start' plugins/cpu/own_cpus.cc "$cpu" 'GrowTest.*' \
  'DropCpus(machine, former.grown, former' \
  'DropCpus(machine, former.cpus, former'
without P16 'what pools gave up is not exclusive while other CPUs are idle' plugins/cpu/room.cc "$cpu" 'ElasticTest.*' \
  '- view.offline - view.retiring -' \
  '- view.offline -'
without P16 'pools yield what is beyond their requests' plugins/cpu/room.cc "$cpu" 'ElasticTest.*' \
  'if (!HasElasticPools(view.config)) {' \
  'if (true) {'
without P17 'advice is clipped by what can be had' plugins/cpu/sizing/advice.cc "$advisor" '*' \
  'WishOf({.milli_cpus = int64_t{wanted} * 1000}, 100, ask->second)' \
  'wanted' \
  'std::clamp(cpus, LeastByAdvice(ask->second), ask->second.max)' \
  'cpus'
without P17 'advice leaves pools what is requested of them' plugins/cpu/sizing/advice.cc "$advisor" '*' \
  'std::max(cpus, LeastByAdvice(ask->second))' \
  'cpus'
without P17 'advice that is not renewed is over' plugins/cpu/sizing/advice.cc "$advisor" '*' \
  'return now >= said.second.counts_until;' \
  'return now < SteadyPoint() && now >= said.second.counts_until;'
without P18 'a hint of an even split is of nodes that have their shares' plugins/cpu/policy.cc "$cpu" '*' \
  'if (even && !hint' \
  'if ((even || !even) && !hint'
without P18 'hints leave the default pool a CPU' plugins/cpu/policy.cc "$cpu" '*' \
  $'Room& room, const OwnRule& own) {\n  QRM_RETURN_IF_ERROR(CheckDefaultPoolStays(view, request, room));' \
  $'Room& room, const OwnRule& own) {'
without P19 'the reported reason is what decided' plugins/cpu/policy.cc "$cpu" "$models" \
  'decision->allocation.decided_by = placement.by;' \
  'decision->allocation.decided_by = placement.pool;'
without P19 'the first rule that fits decides' plugins/cpu/config/classify.cc "$cpu" 'CpuRulesTest.*' \
  'return Follow(config, *rule, request);' \
  'return Follow(config, config.rules.back(), request);'
without P20 'idle CPUs have the class of idle ones' plugins/cpu/classes.cc "$cpu" "$models" \
  'add(view.config.idle_class, IdleCpus(view));' \
  ''
without P20 'CPUs follow their owners' plugins/cpu/cpu_plugin.cc "$cpu" '*' \
  $'    if (ChangePools(SizedPools(ViewOf()))) {\n      NotifyChanged();\n    }\n    Tune();' \
  $'    if (ChangePools(SizedPools(ViewOf()))) {\n      NotifyChanged();\n    }'
without P21 'no union of NUMA nodes is promised more than it has' plugins/memory/books.cc "$memory" '*' \
  'flow->second.Fits(block.nodes, block.bytes)' \
  'flow->second.Room(table_.empty() ? NumaMask() : block.nodes) + block.bytes > 0'
without P22 'whole cores are put together from parts' plugins/cpu/elastic.cc "$cpu" '*' \
  $'      CompleteCores(name, size);\n' \
  $'      (void)0;\n'
without P22 'more CPUs cause no rejection' plugins/cpu/elastic.cc "$cpu" "$models" \
  'std::max(least, capacity)) {' \
  'std::max(least, capacity - capacity % 2)) {'

without place 'cores of pools stay whole while threads are offline' plugins/cpu/place.cc "$cpu" '*' \
  'return around.rule.OwnsWholeCores()
             ? taken &' \
  'return around.rule.OwnsWholeCores() && around.offline.Empty()
             ? taken &'
without place 'memory of a kind is beside the CPUs of its hint' plugins/memory/room.cc "$memory" '*' \
  'beside |= machine.FindNode(node)->homes;' \
  'beside.Add(machine.FindNode(node)->id);'

if [ ${#missed[@]} -gt 0 ]; then
  echo "not noticed: ${missed[*]}" >&2
  exit 1
fi
echo "each rule is missed by a test when it is gone"
