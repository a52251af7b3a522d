// Queries kubelet's pod-resources socket for pods that may have devices, and keeps the answers for
// each pod in the order of their questions.
#include "manager/kubelet/device_nodes_source.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/proto/podresources/v1/api.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"
#include "plugins/placement/device_hints.h"
#include "plugins/rules/device_nodes.h"

namespace qrm::manager {
namespace {

using rules::DeviceNodes;
using rules::kDeviceNodesAnnotation;
using rules::ToText;

using Lister = ::v1::PodResourcesLister;
using PodList = ::v1::ListPodResourcesResponse;

constexpr std::chrono::milliseconds kReconnect{1000};

std::unique_ptr<Lister::Stub> Connect(const std::string& path) {
  if (path.empty()) {
    return nullptr;
  }
  return Lister::NewStub(
      rpc::UnixChannel(path, {.first_backoff = kReconnect, .most_backoff = kReconnect}));
}

bool AsksToBeNear(const placement::ContainerDemand& demand) {
  const auto found = demand.pod.annotations.find(placement::kClaimAlignmentAnnotation);
  return found != demand.pod.annotations.end() && found->second == placement::kRequired;
}

/// What kubelet, or the runtime, gave the containers of a pod.
struct PodDevices {
  /// By container and resource, the NUMA nodes of each device. Units: the kernel's numbers.
  std::map<std::string, std::map<std::string, std::vector<NumaMask>>> allocated;
  /// Devices of claims, with the container of each.
  std::vector<std::pair<std::string, ClaimDevice>> claimed;

  bool Has(const std::string& container) const {
    return allocated.contains(container) ||
           std::any_of(claimed.begin(), claimed.end(),
                       [&](const auto& device) { return device.first == container; });
  }
};

void AddContainer(const ::v1::ContainerResources& container, PodDevices& devices) {
  for (const auto& device : container.devices()) {
    NumaMask nodes;
    for (const auto& node : device.topology().nodes()) {
      if (node.id() >= 0 && node.id() < NumaMask::kMaxIds) {
        nodes.Add(static_cast<int>(node.id()));
      }
    }
    devices.allocated[container.name()][device.resource_name()].push_back(nodes);
  }
  for (const auto& claim : container.dynamic_resources()) {
    for (const auto& device : claim.claim_resources()) {
      ClaimDevice claimed{.claim_namespace = claim.claim_namespace(),
                          .claim = claim.claim_name(),
                          .driver = device.driver_name(),
                          .pool = device.pool_name(),
                          .device = device.device_name(),
                          .cdi_ids = {}};
      for (const auto& id : device.cdi_devices()) {
        claimed.cdi_ids.push_back(id.name());
      }
      devices.claimed.emplace_back(container.name(), std::move(claimed));
    }
  }
}

PodDevices DevicesOf(const PodList& list, const checkpoint::PodMeta& pod) {
  PodDevices devices;
  for (const auto& listed : list.pod_resources()) {
    if (listed.name() == pod.name && listed.namespace_() == pod.pod_namespace) {
      for (const auto& container : listed.containers()) {
        AddContainer(container, devices);
      }
    }
  }
  return devices;
}

NumaMask NodesOf(const HintList& hints) {
  NumaMask nodes;
  for (const TopologyHint& hint : hints.hints()) {
    nodes |= hint.nodes;
  }
  return nodes;
}

using DevicesByContainer = std::map<std::string, std::map<std::string, placement::GivenDevice>>;

/// Sets devices and annotation of all containers of the pod.
void SetDevices(placement::ContainerDemand& demand, const DevicesByContainer& devices,
                const DeviceNodes& nodes) {
  const auto set = [&](placement::ContainerDemand& one) {
    const auto own = devices.find(one.container);
    one.devices = own == devices.end() ? decltype(one.devices)() : own->second;
    if (!nodes.empty()) {
      one.pod.annotations.Edit()[kDeviceNodesAnnotation] = ToText(nodes);
    } else if (one.pod.annotations.contains(kDeviceNodesAnnotation)) {
      one.pod.annotations.Edit().erase(kDeviceNodesAnnotation);
    }
  };
  set(demand);
  std::for_each(demand.others.begin(), demand.others.end(), set);
}

using Answer = StatusOr<placement::ContainerDemand>;

/// A question that has been passed on, and its answer if it has come.
struct Turn {
  DemandSource::Found found;
  std::optional<Answer> answer;
};
using TurnPtr = std::shared_ptr<Turn>;

/// The answer to a question.
struct Given {
  DemandSource::Found found;
  Answer answer;
};

/// The questions about one pod, in their order.
struct Line {
  std::deque<TurnPtr> turns;
  bool answering = false;  // a thread gives answers, also those that come meanwhile
};

}  // namespace

struct DeviceNodesSource::Impl : std::enable_shared_from_this<DeviceNodesSource::Impl> {
  Impl(boost::asio::io_context& loop, DemandSource& source, const Machine& of_node,
       ClaimDevices& of_claims, DeviceNodesOptions source_options)
      : io(loop),
        inner(source),
        machine(of_node),
        claims(of_claims),
        options(std::move(source_options)),
        stub(Connect(options.kubelet_socket)) {}

  static bool IsAny(const placement::ContainerDemand& demand,
                    const std::function<bool(const placement::ContainerDemand&)>& of_container) {
    return of_container(demand) ||
           std::any_of(demand.others.begin(), demand.others.end(), of_container);
  }

  bool MayHaveDevices(const placement::ContainerDemand& demand) const {
    return IsAny(demand, [this](const placement::ContainerDemand& one) {
      return std::any_of(one.requests->begin(), one.requests->end(), [&](const auto& request) {
        return request.first.find('/') != std::string::npos && !options.is_served(request.first);
      });
    });
  }

  /// Takes the inner source's answer. `cdi_ids` are those that the runtime names.
  void Take(const TurnPtr& turn, Answer answer, const std::vector<std::string>& cdi_ids,
            const std::string& uid, Deadline deadline) {
    if (!answer.ok()) {
      Settle(turn, std::move(answer), uid);
      return;
    }
    SetDevices(*answer, {}, {});
    const bool has_devices = stub != nullptr && MayHaveDevices(*answer);
    const bool uses_claims =
        !cdi_ids.empty() || IsAny(*answer, [](const auto& one) { return one.uses_claims; });
    if (!has_devices && !uses_claims) {
      Settle(turn, std::move(answer), uid);
      return;
    }
    const Deadline claims_until = std::min(deadline, DeadlineAfter(options.claims_wait));
    const auto search = std::make_shared<Search>(io, turn, *std::move(answer), uid);
    search->cdi_ids = cdi_ids;
    search->has_others = has_devices;
    search->until = has_devices ? std::min(deadline, DeadlineAfter(options.timeout)) : claims_until;
    if (stub != nullptr) {
      Ask(search);
      return;
    }
    boost::asio::post(io,
                      [self = shared_from_this(), search] { self->Locate(search, PodDevices()); });
  }

  /// The question of one container about its devices. Threads: the I/O loop, once it is asked.
  struct Search {
    Search(boost::asio::io_context& loop, TurnPtr turn_of, placement::ContainerDemand demand_of,
           std::string pod_uid)
        : turn(std::move(turn_of)),
          demand(std::move(demand_of)),
          uid(std::move(pod_uid)),
          timer(loop) {}

    TurnPtr turn;
    placement::ContainerDemand demand;
    std::string uid;
    boost::asio::steady_timer timer;
    std::vector<std::string> cdi_ids;
    Deadline until;           ///< of kubelet's answer, and of claims unless it has other devices
    bool has_others = false;  ///< devices that no claim gave
    bool is_over = false;
  };
  using SearchPtr = std::shared_ptr<Search>;

  void Ask(const SearchPtr& search) {
    using Async = Lister::StubInterface::async_interface;
    const auto listed = [self = shared_from_this(), search](const StatusOr<PodList>& list) {
      self->Note(list.status(), search->demand.pod);
      PodDevices devices = list.ok() ? DevicesOf(*list, search->demand.pod) : PodDevices();
      boost::asio::post(self->io, [self, search, devices = std::move(devices)]() mutable {
        self->Locate(search, std::move(devices));
      });
    };
    // If it is not sent, the source has stopped, and no question gets an answer.
    (void)rpc::StartUnary(rpc::CallEnd{calls, search->until}, stub->async(), &Async::List, {},
                          listed);
  }

  /// Looks for the devices of claims, and waits for no later answer than `claims_wait`.
  void Locate(const SearchPtr& search, PodDevices devices) {
    if (!search->cdi_ids.empty() && !devices.Has(search->demand.container)) {
      for (const std::string& id : search->cdi_ids) {
        devices.claimed.emplace_back(search->demand.container, ClaimDevice{.claim_namespace = {},
                                                                           .claim = {},
                                                                           .driver = {},
                                                                           .pool = {},
                                                                           .device = {},
                                                                           .cdi_ids = {id}});
      }
    }
    const auto found = std::make_shared<PodDevices>(std::move(devices));
    if (found->claimed.empty()) {
      Finish(search, *found, {});
      return;
    }
    search->timer.expires_at(search->has_others ? DeadlineAfter(options.claims_wait)
                                                : search->until);
    search->timer.async_wait([self = shared_from_this(), search, found](const auto& error) {
      if (!error) {
        self->NoteLate(search->demand.pod);
        self->Finish(search, *found, {});
      }
    });
    std::vector<ClaimDevice> asked;
    for (const auto& [container, device] : found->claimed) {
      asked.push_back(device);
    }
    claims.Locate(std::move(asked),
                  [weak = weak_from_this(), search, found](std::vector<NearNodes> nodes) {
                    if (const auto self = weak.lock(); self != nullptr) {
                      boost::asio::post(self->io, [self, search, found, nodes = std::move(nodes)] {
                        self->Finish(search, *found, nodes);
                      });
                    }
                  });
  }

  /// `located` are the nodes of the claimed devices, in their order; or nothing.
  void Finish(const SearchPtr& search, const PodDevices& devices,
              const std::vector<NearNodes>& located) {
    if (std::exchange(search->is_over, true)) {
      return;
    }
    search->timer.cancel();
    DevicesByContainer given;
    DeviceNodes nodes;
    for (const auto& [container, resources] : devices.allocated) {
      for (const auto& [resource, each] : resources) {
        given[container][resource] = {.hints = placement::HintsOfDevices(machine, each),
                                      .binding = true};
        for (const NumaMask& device : each) {
          nodes[container][resource] |= device;
        }
      }
    }
    for (std::size_t i = 0; i < devices.claimed.size(); ++i) {
      const auto& [container, device] = devices.claimed[i];
      const HintList hints =
          placement::HintsOfDevice(machine, i < located.size() ? located[i] : NearNodes());
      given[container][device.Name()] = {.hints = hints, .binding = AsksToBeNear(search->demand)};
      nodes[container][device.driver] |= NodesOf(hints);
    }
    for (auto& [container, resources] : nodes) {
      std::erase_if(resources, [](const auto& resource) { return resource.second.Empty(); });
    }
    std::erase_if(nodes, [](const auto& container) { return container.second.empty(); });
    SetDevices(search->demand, given, nodes);
    Settle(search->turn, std::move(search->demand), search->uid);
  }

  void NoteLate(const checkpoint::PodMeta& pod) const {
    log::Warning("the NUMA nodes of a pod's claimed devices were not found in time",
                 {{"pod", pod.pod_namespace + "/" + pod.name},
                  {"error", fmt::format("nothing was found within {} ms; the pod is placed as if "
                                        "they were unknown: see whether the API server answers, "
                                        "or raise claims-wait",
                                        options.claims_wait.count())}});
  }

  /// Logs the first of several failures.
  void Note(const Status& status, const checkpoint::PodMeta& pod) {
    bool is_first = false;
    {
      const MutexLock lock(mutex);
      is_first = !std::exchange(failing, !status.ok()) && !status.ok() && !stopped;
    }
    if (is_first) {
      log::Warning(
          "cannot get the NUMA nodes of a pod's devices from kubelet",
          {{"pod", pod.pod_namespace + "/" + pod.name},
           {"socket", options.kubelet_socket},
           {"error", MessageOf(status) + "; it is placed like a pod without devices: recreate it "
                                         "when kubelet answers, or set "
                                         "kubelet-pod-resources-socket"}});
    }
  }

  /// Gives the answer, after those to earlier questions.
  void Settle(const TurnPtr& turn, Answer answer, const std::string& uid) {
    {
      const MutexLock lock(mutex);
      turn->answer = std::move(answer);
      if (stopped || std::exchange(lines[uid].answering, true)) {
        return;
      }
    }
    while (std::optional<Given> next = Next(uid)) {
      next->found(std::move(next->answer));
    }
  }

  /// The first question about the pod, if it has its answer; else ends the answering.
  std::optional<Given> Next(const std::string& uid) {
    const MutexLock lock(mutex);
    const auto line = lines.find(uid);
    if (stopped || line == lines.end()) {
      return std::nullopt;
    }
    std::deque<TurnPtr>& turns = line->second.turns;
    if (turns.empty()) {
      lines.erase(line);
      return std::nullopt;
    }
    Turn& first = *turns.front();
    if (!first.answer.has_value()) {
      line->second.answering = false;
      return std::nullopt;
    }
    Given next{.found = std::move(first.found), .answer = *std::move(first.answer)};
    turns.pop_front();
    return next;
  }

  boost::asio::io_context& io;
  DemandSource& inner;
  const Machine& machine;
  ClaimDevices& claims;
  const DeviceNodesOptions options;
  const std::unique_ptr<Lister::Stub> stub;  // null: kubelet is not queried
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  Mutex mutex;
  std::map<std::string, Line> lines QRM_GUARDED_BY(mutex);  // by pod UID
  bool failing QRM_GUARDED_BY(mutex) = false;
  bool stopped QRM_GUARDED_BY(mutex) = false;
};

DeviceNodesSource::DeviceNodesSource(boost::asio::io_context& io, DemandSource& inner,
                                     const Machine& machine, ClaimDevices& claims,
                                     DeviceNodesOptions options)
    : impl_(std::make_shared<Impl>(io, inner, machine, claims, std::move(options))) {}

DeviceNodesSource::~DeviceNodesSource() {
  Stop();
}

void DeviceNodesSource::Stop() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->stopped = true;
    impl_->lines.clear();
  }
  impl_->calls->StopAndWait();
}

void DeviceNodesSource::Find(const RuntimePod& pod, const RuntimeContainer& container,
                             Deadline deadline, Found found) {
  const auto turn = std::make_shared<Turn>(Turn{.found = std::move(found), .answer = {}});
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->stopped) {
      return;
    }
    impl_->lines[pod.uid].turns.push_back(turn);
  }
  impl_->inner.Find(pod, container, deadline,
                    [weak = impl_->weak_from_this(), turn, cdi_ids = container.cdi_devices,
                     uid = pod.uid, deadline](Answer answer) {
                      if (const std::shared_ptr<Impl> self = weak.lock(); self != nullptr) {
                        self->Take(turn, std::move(answer), cdi_ids, uid, deadline);
                      }
                    });
}

void DeviceNodesSource::Prefetch(const RuntimePod& pod) {
  impl_->inner.Prefetch(pod);
}

std::optional<placement::ContainerDemand> DeviceNodesSource::FindNow(
    const placement::ContainerDemand& recorded) const {
  return impl_->inner.FindNow(recorded);
}

uint64_t DeviceNodesSource::revision() const {
  return impl_->inner.revision();
}

void DeviceNodesSource::LookAgain(const std::string& pod_uid) {
  impl_->inner.LookAgain(pod_uid);
}

}  // namespace qrm::manager
