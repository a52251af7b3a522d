// Every call goes to the plugin's thread, where the driver answers it.
#include "manager/registry/calls/local_plugin.h"

#include <atomic>
#include <utility>

#include "api/base/task_thread.h"
#include "manager/registry/calls/answer_check.h"
#include "manager/registry/calls/call_deadlines.h"
#include "plugins/sdk/allocations_answer.h"
#include "plugins/sdk/change_signal.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::manager {
namespace {

/// One call: who comes first answers it.
template <typename T>
class LocalCall {
 public:
  explicit LocalCall(PluginClient::Done<T> done) : done_(std::move(done)) {}

  bool answered() const { return answered_; }

  void Answer(CallResult<T> result) {
    if (!answered_.exchange(true)) {
      std::exchange(done_, {})(std::move(result));
    }
  }

 private:
  std::atomic<bool> answered_ = false;
  PluginClient::Done<T> done_;
};

template <typename T>
CallResult<T> ResultOf(StatusOr<T> value) {
  const Blame blame = value.ok() ? Blame::kNobody : Blame::kRefusal;
  return {std::move(value), blame};
}

CallResult<Acknowledged> ResultOf(const Status& status) {
  return status.ok() ? CallResult<Acknowledged>{Acknowledged{}}
                     : CallResult<Acknowledged>{status, Blame::kRefusal};
}

std::vector<PlacedQuantity> QuantitiesOf(const ResourceAllocation& allocation) {
  std::vector<PlacedQuantity> quantities;
  quantities.reserve(allocation.amount_by_node.size());
  for (const auto& [node, amount] : allocation.amount_by_node) {
    quantities.push_back({.amount = static_cast<double>(amount), .node = node});
  }
  return quantities;
}

/// What the container holds now, and what it held when it was admitted.
PlacedResource PlacementOf(const sdk::Grant& grant) {
  const ResourceAllocation& now = grant.allocation;
  const ResourceAllocation& admitted = grant.admitted != nullptr ? *grant.admitted : now;
  return {.is_node_resource = now.is_node_resource,
          .is_scalar_resource = now.is_scalar_resource,
          .amount = now.quantity,
          .admitted_amount = admitted.quantity,
          .by_place = QuantitiesOf(now),
          .admitted_by_place = QuantitiesOf(admitted)};
}

StatusOr<std::map<std::string, CpuSet>> ParsePools(const StringMap& cpus_by_pool) {
  std::map<std::string, CpuSet> parsed;
  for (const auto& [name, text] : cpus_by_pool) {
    StatusOr<CpuSet> cpus = CpuSet::Parse(text);
    if (!cpus.ok()) {
      return Annotate(cpus.status(), "cannot set pool " + name);
    }
    parsed.emplace(name, *std::move(cpus));
  }
  return parsed;
}

StatusOr<std::vector<PoolInfo>> PoolsOf(const sdk::PluginDriver& driver) {
  QRM_ASSIGN_OR_RETURN(const std::vector<sdk::Pool> pools, driver.Pools());
  std::vector<PoolInfo> infos;
  infos.reserve(pools.size());
  for (const sdk::Pool& pool : pools) {
    infos.push_back({.name = pool.name,
                     .cpus = ToString(pool.cpus),
                     .roles = pool.roles,
                     .containers = pool.containers});
  }
  return infos;
}

}  // namespace

// What is destroyed first uses what stands before it: the thread ends before all that it uses.
struct LocalPlugin::Impl {
  Impl(sdk::ResourcePlugin& served, const std::string& resource,
       std::unique_ptr<sdk::PluginState> state, Parts parts)
      : plugin(served),
        machine_nodes(std::move(parts.machine_nodes)),
        calls(std::move(parts.calls)),
        deadlines(parts.io),
        driver(served, resource, std::move(state)) {}
  ~Impl() { plugin.changes().Connect({}); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Answers a call with what `work` returns on the plugin's thread.
  template <typename T, typename Work>
  void Answer(Deadline deadline, Work work, Done<T> done);

  sdk::ResourcePlugin& plugin;
  const NumaMask machine_nodes;
  const std::shared_ptr<CallsInFlight> calls;
  CallDeadlines deadlines;
  sdk::PluginDriver driver;            // on the thread only, but for its options
  sdk::AllocationsAnswer allocations;  // on the thread only
  HeldAllocationsReader held;
  TaskThread thread;
};

template <typename T, typename Work>
void LocalPlugin::Impl::Answer(Deadline deadline, Work work, Done<T> done) {
  const auto call = std::make_shared<LocalCall<T>>(std::move(done));
  const auto stop = [call] {
    call->Answer({Status(StatusCode::kCancelled, "qrmd is stopping"), Blame::kStopping});
  };
  const auto id = calls->Enter(stop);
  if (!id.has_value()) {
    stop();
    return;
  }
  const CallDeadlines::Watch watch = deadlines.Begin(deadline, [call] {
    call->Answer(
        {Status(StatusCode::kDeadlineExceeded, "no answer before the deadline"), Blame::kTimeout});
  });
  thread.Post([this, call, id = *id, watch, work = std::move(work)] {
    if (!call->answered()) {
      call->Answer(work());
    }
    deadlines.End(watch);
    calls->Leave(id);
  });
}

StatusOr<std::unique_ptr<LocalPlugin>> LocalPlugin::Start(sdk::ResourcePlugin& plugin,
                                                          const std::string& resource,
                                                          std::unique_ptr<sdk::PluginState> state,
                                                          Parts parts) {
  auto impl = std::make_unique<Impl>(plugin, resource, std::move(state), std::move(parts));
  Status started;
  impl->thread.Run([&] { started = impl->driver.Start(); });
  QRM_RETURN_IF_ERROR(started);
  return std::unique_ptr<LocalPlugin>(new LocalPlugin(std::move(impl)));
}

LocalPlugin::LocalPlugin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LocalPlugin::~LocalPlugin() = default;

void LocalPlugin::OnChanged(std::function<void()> listener) {
  impl_->plugin.changes().Connect(std::move(listener));
}

void LocalPlugin::Post(std::function<void()> task) {
  impl_->thread.Post(std::move(task));
}

void LocalPlugin::GetOptions(Deadline /*deadline*/, Done<PluginOptions> done) {
  done({impl_->driver.options()});  // they do not change once the plugin has started
}

void LocalPlugin::GetTopologyHints(const ContainerRequest& request, Deadline deadline,
                                   Done<HintList> done) {
  const auto work = [impl = impl_.get(), request]() -> CallResult<HintList> {
    StatusOr<HintList> hints = impl->driver.Hints(request);
    if (hints.ok()) {
      if (const Status fit = CheckHints(hints->hints(), impl->machine_nodes); !fit.ok()) {
        return {fit, Blame::kProtocol};
      }
    }
    return ResultOf(std::move(hints));
  };
  impl_->Answer(deadline, work, std::move(done));
}

void LocalPlugin::Allocate(const ContainerRequest& request, Deadline deadline,
                           Done<AllocationByResource> done) {
  const auto work = [impl = impl_.get(), request]() -> CallResult<AllocationByResource> {
    StatusOr<ResourceAllocation> allocation = impl->driver.Allocate(request);
    if (!allocation.ok()) {
      return {allocation.status(), Blame::kRefusal};
    }
    AllocationByResource allocations = {{request.resource, *std::move(allocation)}};
    if (const Status fit = CheckAllocations(allocations, impl->machine_nodes); !fit.ok()) {
      return {fit, Blame::kProtocol};
    }
    return {std::move(allocations)};
  };
  impl_->Answer(deadline, work, std::move(done));
}

void LocalPlugin::RemovePod(const std::string& pod_uid, Deadline deadline,
                            Done<Acknowledged> done) {
  impl_->Answer(
      deadline, [impl = impl_.get(), pod_uid] { return ResultOf(impl->driver.RemovePod(pod_uid)); },
      std::move(done));
}

void LocalPlugin::GetResourcesAllocation(Deadline deadline, Done<HeldAllocations> done) {
  const auto work = [impl = impl_.get()]() -> CallResult<HeldAllocations> {
    if (const Status reconciled = impl->driver.Reconcile(); !reconciled.ok()) {
      return {reconciled, Blame::kRefusal};
    }
    StatusOr<HeldAllocations> held = impl->held.ReadShared(impl->allocations.For(impl->driver));
    const Blame blame = held.ok() ? Blame::kNobody : Blame::kProtocol;
    return {std::move(held), blame};
  };
  impl_->Answer(deadline, work, std::move(done));
}

void LocalPlugin::GetAllocatable(Deadline deadline, Done<AllocatableByResource> done) {
  const auto work = [impl = impl_.get()]() -> CallResult<AllocatableByResource> {
    StatusOr<AllocatableResource> allocatable = impl->driver.Allocatable();
    if (!allocatable.ok()) {
      return {allocatable.status(), Blame::kRefusal};
    }
    return {AllocatableByResource{{impl->driver.resource(), *std::move(allocatable)}}};
  };
  impl_->Answer(deadline, work, std::move(done));
}

void LocalPlugin::GetPlacement(const ContainerKey& key, Deadline deadline,
                               Done<PlacedByResource> done) {
  const auto work = [impl = impl_.get(), key]() -> CallResult<PlacedByResource> {
    PlacedByResource placed;
    const sdk::Grants& grants = impl->driver.grants();
    if (const auto known = grants.find(key); known != grants.end()) {
      placed.emplace(impl->driver.resource(), PlacementOf(known->second));
    }
    return {std::move(placed)};
  };
  impl_->Answer(deadline, work, std::move(done));
}

void LocalPlugin::ReleaseContainer(const ContainerKey& key, Deadline deadline,
                                   Done<Acknowledged> done) {
  impl_->Answer(
      deadline, [impl = impl_.get(), key] { return ResultOf(impl->driver.ReleaseContainer(key)); },
      std::move(done));
}

void LocalPlugin::GetPools(const std::string& /*resource*/, Deadline deadline,
                           Done<std::vector<PoolInfo>> done) {
  impl_->Answer(
      deadline, [impl = impl_.get()] { return ResultOf(PoolsOf(impl->driver)); }, std::move(done));
}

void LocalPlugin::SetPools(const std::string& /*resource*/, const StringMap& cpus_by_pool,
                           Deadline deadline, Done<std::vector<PoolInfo>> done) {
  const auto set = [](sdk::PluginDriver& driver,
                      const StringMap& texts) -> StatusOr<std::vector<PoolInfo>> {
    QRM_ASSIGN_OR_RETURN(const auto pools, ParsePools(texts));
    QRM_RETURN_IF_ERROR(driver.SetPools(pools));
    return PoolsOf(driver);
  };
  impl_->Answer(
      deadline,
      [impl = impl_.get(), set, cpus_by_pool] { return ResultOf(set(impl->driver, cpus_by_pool)); },
      std::move(done));
}

}  // namespace qrm::manager
