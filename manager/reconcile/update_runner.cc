// Runs a batch of updates with a bounded number in flight.
#include "manager/reconcile/update_runner.h"

#include <utility>

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

}  // namespace qrm::manager
