// Runs a batch of updates with a bounded number in flight.
#include "manager/reconcile/update_runner.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "manager/reconcile/plan.h"
#include "manager/runtime/run_options.h"

namespace qrm::manager {
namespace {

class Batch : public std::enable_shared_from_this<Batch> {
 public:
  Batch(ContainerRuntime& runtime, std::vector<PlannedUpdate> updates, std::size_t concurrency,
        std::function<void(std::vector<UpdateResult>)> done)
      : runtime_(runtime), concurrency_(concurrency), done_(std::move(done)) {
    for (PlannedUpdate& update : updates) {
      results_.push_back({std::move(update), OkStatus()});
    }
  }

  // Answers may come within the call: the outer loop then continues.
  void SendMore() {
    if (sending_) {
      return;
    }
    sending_ = true;
    while (next_ < results_.size() && in_flight_ < concurrency_ && MayStart(results_[next_])) {
      ++in_flight_;
      Send(next_++);
    }
    sending_ = false;
    if (next_ == results_.size() && in_flight_ == 0 && done_) {
      std::exchange(done_, nullptr)(std::move(results_));
    }
  }

 private:
  bool MayStart(const UpdateResult& next) const {
    return !next.update.grows || next_ == 0 || results_[next_ - 1].update.grows || in_flight_ == 0;
  }

  void Send(std::size_t index) {
    const PlannedUpdate& update = results_[index].update;
    runtime_.UpdateResources({update.container_id, ToLinuxResources(update.properties)},
                             [self = shared_from_this(), index](Status status) {
                               self->results_[index].status = std::move(status);
                               --self->in_flight_;
                               self->SendMore();
                             });
  }

  ContainerRuntime& runtime_;
  const std::size_t concurrency_;
  std::function<void(std::vector<UpdateResult>)> done_;
  std::vector<UpdateResult> results_;
  std::size_t next_ = 0;
  std::size_t in_flight_ = 0;
  bool sending_ = false;
};

}  // namespace

void RunUpdates(ContainerRuntime& runtime, std::vector<PlannedUpdate> updates,
                std::size_t concurrency, std::function<void(std::vector<UpdateResult>)> done) {
  std::make_shared<Batch>(runtime, std::move(updates), concurrency, std::move(done))->SendMore();
}

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
