// Checks a slice of the live containers for drift in each run.
#include "manager/reconcile/drift.h"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace qrm::manager {
namespace {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

/// The text of `actual` when `applied` has a list under `property` that differs from it in more
/// than `ignored`.
template <typename Set>
void AddIfDifferent(const StringMap& applied, std::string_view property, const Set& actual,
                    StringMap& drift, const Set& ignored = {}) {
  const auto ours = applied.find(std::string(property));
  if (ours == applied.end()) {
    return;
  }
  const StatusOr<Set> wanted = Set::Parse(ours->second);
  if (wanted.ok() && *wanted - ignored != actual - ignored) {
    drift.emplace(property, ToString(actual));
  }
}

}  // namespace

StringMap DriftOf(const StringMap& applied, const CgroupCpuset& actual, const CpuSet& offline) {
  StringMap drift;
  AddIfDifferent(applied, kCpusetCpus, actual.cpus, drift, offline);
  AddIfDifferent(applied, kCpusetMems, actual.mems, drift);
  return drift;
}

DriftCheck::DriftCheck(Parts parts, std::size_t per_run)
    : parts_(std::move(parts)), per_run_(per_run) {}

Change DriftCheck::Find(const NodeState& state, const CpuSet& offline) {
  Change change;
  if (parts_.read == nullptr) {
    return change;
  }
  for (auto& [key, container] : parts_.live.After(last_, per_run_)) {
    const ContainerRecord* record = container.started ? state.Find(key) : nullptr;
    if (record != nullptr && !container.cgroups_path.empty()) {
      const StatusOr<CgroupCpuset> actual = parts_.read(container.cgroups_path);
      StringMap drift =
          actual.ok() ? DriftOf(record->AppliedTo(container.id), *actual, offline) : StringMap();
      if (parts_.live.IsTrimmed(key, container.id)) {
        drift.erase(std::string(kCpusetCpus));
      }
      if (!drift.empty()) {
        Change::PutContainer put{state.FindPod(key.pod_uid)->meta, key.container, *record};
        for (const auto& [property, theirs] : drift) {
          parts_.writes.Note({key, property, theirs, put.record.applied.at(property)});
          put.record.applied.Edit().erase(property);
        }
        change.put_containers.push_back(std::move(put));
      }
    }
    last_ = std::move(key);
  }
  return change;
}

std::string DriftCheck::ReadBack(const ContainerKey& key, const StringMap& properties,
                                 const CpuSet& offline) const {
  const std::optional<LiveContainer> container = parts_.live.Find(key);
  if (parts_.read == nullptr || !container.has_value() || container->cgroups_path.empty()) {
    return {};
  }
  const StatusOr<CgroupCpuset> actual = parts_.read(container->cgroups_path);
  const StringMap drift = actual.ok() ? DriftOf(properties, *actual, offline) : StringMap();
  if (drift.empty()) {
    return {};
  }
  return fmt::format(
      "cannot change container {} of pod {}: the runtime took {} and the kernel has {}; stop the "
      "NRI plugin, or whatever else, that also sets it",
      key.container, key.pod_uid, fmt::join(properties, " "), fmt::join(drift, " "));
}

}  // namespace qrm::manager
