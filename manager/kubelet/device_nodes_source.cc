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
#include <grpcpp/grpcpp.h>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/proto/podresources/v1/api.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"
#include "plugins/placement/device_nodes.h"

namespace qrm::manager {
namespace {

using placement::DeviceNodes;
using placement::kDeviceNodesAnnotation;
using placement::ToText;

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

/// The devices of `pod` with known NUMA nodes.
DeviceNodes NodesOf(const ::v1::PodResources& pod) {
  DeviceNodes devices;
  for (const auto& container : pod.containers()) {
    for (const auto& device : container.devices()) {
      for (const auto& node : device.topology().nodes()) {
        if (node.id() >= 0 && node.id() < NumaMask::kMaxIds) {
          devices[container.name()][device.resource_name()].Add(static_cast<int>(node.id()));
        }
      }
    }
  }
  return devices;
}

DeviceNodes NodesOf(const PodList& list, const checkpoint::PodMeta& pod) {
  for (const auto& listed : list.pod_resources()) {
    if (listed.name() == pod.name && listed.namespace_() == pod.pod_namespace) {
      return NodesOf(listed);
    }
  }
  return {};
}

/// Sets the annotation of all containers of the pod, or removes it if there are no devices.
void SetNodes(ContainerDemand& demand, const DeviceNodes& devices) {
  const auto set = [&](ContainerDemand& one) {
    if (devices.empty()) {
      one.pod.annotations.Edit().erase(kDeviceNodesAnnotation);
    } else {
      one.pod.annotations.Edit()[kDeviceNodesAnnotation] = ToText(devices);
    }
  };
  set(demand);
  std::for_each(demand.others.begin(), demand.others.end(), set);
}

using Answer = StatusOr<ContainerDemand>;

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
  Impl(boost::asio::io_context& loop, DemandSource& source, DeviceNodesOptions source_options)
      : io(loop),
        inner(source),
        options(std::move(source_options)),
        stub(Connect(options.kubelet_socket)) {}

  bool MayHaveDevices(const ContainerDemand& demand) const {
    const auto asks = [this](const ContainerDemand& one) {
      return std::any_of(one.requests.begin(), one.requests.end(), [&](const auto& request) {
        return request.first.find('/') != std::string::npos && !options.is_served(request.first);
      });
    };
    return asks(demand) || std::any_of(demand.others.begin(), demand.others.end(), asks);
  }

  /// Takes the inner source's answer.
  void Take(const TurnPtr& turn, Answer answer, const std::string& uid, Deadline deadline) {
    if (!answer.ok()) {
      Settle(turn, std::move(answer), uid);
      return;
    }
    SetNodes(*answer, {});
    if (stub == nullptr || !MayHaveDevices(*answer)) {
      Settle(turn, std::move(answer), uid);
      return;
    }
    Ask(turn, *std::move(answer), uid, std::min(deadline, DeadlineAfter(options.timeout)));
  }

  void Ask(const TurnPtr& turn, ContainerDemand demand, const std::string& uid, Deadline deadline) {
    using Async = Lister::StubInterface::async_interface;
    const auto asked = std::make_shared<ContainerDemand>(std::move(demand));
    const auto listed = [self = shared_from_this(), turn, asked,
                         uid](const StatusOr<PodList>& list) {
      self->Note(list.status(), asked->pod);
      if (list.ok()) {
        SetNodes(*asked, NodesOf(*list, asked->pod));
      }
      boost::asio::post(self->io,
                        [self, turn, asked, uid] { self->Settle(turn, std::move(*asked), uid); });
    };
    // If it is not sent, the source has stopped, and no question gets an answer.
    (void)rpc::StartUnary(rpc::CallEnd{calls, deadline}, stub->async(), &Async::List, {}, listed);
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
  const DeviceNodesOptions options;
  const std::unique_ptr<Lister::Stub> stub;  // null: kubelet is not queried
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  Mutex mutex;
  std::map<std::string, Line> lines QRM_GUARDED_BY(mutex);  // by pod UID
  bool failing QRM_GUARDED_BY(mutex) = false;
  bool stopped QRM_GUARDED_BY(mutex) = false;
};

DeviceNodesSource::DeviceNodesSource(boost::asio::io_context& io, DemandSource& inner,
                                     DeviceNodesOptions options)
    : impl_(std::make_shared<Impl>(io, inner, std::move(options))) {}

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
                    [weak = impl_->weak_from_this(), turn, uid = pod.uid, deadline](Answer answer) {
                      if (const std::shared_ptr<Impl> self = weak.lock(); self != nullptr) {
                        self->Take(turn, std::move(answer), uid, deadline);
                      }
                    });
}

void DeviceNodesSource::Prefetch(const RuntimePod& pod) {
  impl_->inner.Prefetch(pod);
}

std::optional<ContainerDemand> DeviceNodesSource::FindNow(const ContainerDemand& recorded) const {
  return impl_->inner.FindNow(recorded);
}

uint64_t DeviceNodesSource::revision() const {
  return impl_->inner.revision();
}

void DeviceNodesSource::LookAgain(const std::string& pod_uid) {
  impl_->inner.LookAgain(pod_uid);
}

}  // namespace qrm::manager
