// Decorates a store with metrics.
#include "manager/daemon/metered_store.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

namespace qrm::manager {
namespace {

class MeteredStore final : public checkpoint::Store {
 public:
  MeteredStore(std::unique_ptr<checkpoint::Store> store, StoreMetrics& metrics)
      : store_(std::move(store)), metrics_(metrics) {
    CountRepairs();
  }

  Status Commit(const checkpoint::Change& change) override {
    return Measure([&] { return store_->Commit(change); });
  }

  Status Remember(const checkpoint::Change& change) override {
    return Measure([&] { return store_->Remember(change); });
  }

  Status Try() override { return store_->Try(); }
  Status Recall() override { return store_->Recall(); }

  const checkpoint::NodeState& state() const override { return store_->state(); }
  std::size_t repairs() const override { return store_->repairs(); }

 private:
  void CountRepairs() {
    metrics_.repairs_total.Increment(static_cast<double>(store_->repairs() - counted_repairs_));
    counted_repairs_ = store_->repairs();
  }

  template <typename Write>
  Status Measure(const Write& write) {
    const auto begin = std::chrono::steady_clock::now();
    Status committed = write();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    metrics_.commit_seconds.Observe(took.count());
    if (!committed.ok()) {
      metrics_.commit_errors_total.Increment();
    }
    CountRepairs();
    return committed;
  }

  const std::unique_ptr<checkpoint::Store> store_;
  StoreMetrics& metrics_;
  std::size_t counted_repairs_ = 0;
};

}  // namespace

checkpoint::OpenedStore MeterStore(checkpoint::OpenedStore opened, StoreMetrics& metrics) {
  opened.store = std::make_unique<MeteredStore>(std::move(opened.store), metrics);
  return opened;
}

}  // namespace qrm::manager
