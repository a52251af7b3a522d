// Judges each update by the runtime's answer and the kernel's values.
#include "manager/reconcile/update_notes.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "manager/reconcile/plan.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;

void NoteTaken(const PlannedUpdate& update, Taken how, const checkpoint::NodeState& state,
               UpdateNotes& notes) {
  const ContainerRecord* record = state.Find(update.key);
  if (record != nullptr) {
    if (ContainerRecord now = AfterUpdate(*record, update, how); now != *record) {
      notes.change.put_containers.push_back(
          {state.FindPod(update.key.pod_uid)->meta, update.key.container, std::move(now)});
    }
  }
  if (record != nullptr && how == Taken::kYes) {
    log::Info("container updated",
              {{"pod", update.key.pod_uid},
               {"container", update.key.container},
               {"values", fmt::format("{}", fmt::join(update.properties, " "))}});
    notes.updated.push_back(update.key);
  }
}

}  // namespace

UpdateNotes NoteResults(const std::vector<UpdateResult>& results,
                        const checkpoint::NodeState& state, const DriftCheck& drift,
                        const LiveContainers& live, const CpuSet& offline) {
  UpdateNotes notes;
  for (const auto& [update, taken] : results) {
    notes.taken += taken.ok() ? 1 : 0;
    if (taken.code() == StatusCode::kNotFound) {
      continue;
    }
    if (taken.ok() && live.FindDeferred(update.key, update.container_id).has_value()) {
      NoteTaken(update, Taken::kUnknown, state, notes);
      continue;
    }
    std::string problem =
        taken.ok() ? drift.ReadBack(update.key, update.properties, offline) : MessageOf(taken);
    NoteTaken(update, problem.empty() ? Taken::kYes : Taken::kUnknown, state, notes);
    if (!problem.empty()) {
      notes.problems.push_back(std::move(problem));
    }
  }
  return notes;
}

}  // namespace qrm::manager
