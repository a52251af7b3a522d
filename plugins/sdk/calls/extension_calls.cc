// Defines qrm's extensions: their messages, service and checks.
#include "plugins/sdk/calls/extension_calls.h"

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/message_fields.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/proto/qrm/v1/plugin_changes.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"
#include "plugins/sdk/calls/answer_check.h"
#include "plugins/sdk/calls/call_codec.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::calls {
namespace {

using sdk::PluginDriver;
using sdk::Pool;

/// Limits a plugin's text, which may list CPUs.
constexpr std::size_t kMostProblemBytes = 1000;

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

template <typename Message>
StatusOr<Message> ParseMessage(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Unreadable(message.GetTypeName());
  }
  return message;
}

StatusOr<ResourceAllocation> ParseAllocation(const std::string& bytes) {
  QRM_ASSIGN_OR_RETURN(const auto message, ParseMessage<wire::pb::ResourceAllocationInfo>(bytes));
  return wire::FromWire(message);
}

StatusOr<sdk::Grant> ParseHolding(const v1::Holding& message) {
  sdk::Grant grant;
  QRM_ASSIGN_OR_RETURN(const auto request,
                       ParseMessage<wire::pb::ResourceRequest>(message.request()));
  QRM_ASSIGN_OR_RETURN(grant.request, wire::FromWire(request));
  QRM_ASSIGN_OR_RETURN(grant.allocation, ParseAllocation(message.allocation()));
  if (!message.admitted().empty()) {
    QRM_ASSIGN_OR_RETURN(ResourceAllocation admitted, ParseAllocation(message.admitted()));
    grant.admitted = std::make_shared<const ResourceAllocation>(std::move(admitted));
  }
  return grant;
}

StatusOr<Pool> ParsePool(const v1::Pool& message) {
  QRM_ASSIGN_OR_RETURN(CpuSet cpus, CpuSet::Parse(message.cpus()));
  QRM_ASSIGN_OR_RETURN(CpuSet borrowed, CpuSet::Parse(message.borrowed_cpus()));
  return Pool{.name = message.name(),
              .cpus = std::move(cpus),
              .roles = {message.roles().begin(), message.roles().end()},
              .containers = message.containers(),
              .borrowed = std::move(borrowed),
              .cpu_class = message.cpu_class(),
              .class_problem = Cut(message.class_problem(), kMostProblemBytes)};
}

/// Answers with all pools of a plugin, in the message `R`.
template <typename R>
struct WithPools {
  using Response = R;
  static constexpr int kMostPools = 4096;

  static Response AnswerToWire(const std::vector<Pool>& pools) {
    Response response;
    for (const Pool& pool : pools) {
      v1::Pool& message = *response.add_pools();
      message.set_name(pool.name);
      message.set_cpus(ToString(pool.cpus));
      message.mutable_roles()->Add(pool.roles.begin(), pool.roles.end());
      message.set_containers(pool.containers);
      message.set_borrowed_cpus(ToString(pool.borrowed));
      message.set_cpu_class(pool.cpu_class);
      message.set_class_problem(pool.class_problem);
    }
    return response;
  }
  static StatusOr<std::vector<Pool>> AnswerFromWire(const Response& response) {
    if (response.pools_size() > kMostPools) {
      return Errorf(StatusCode::kInvalidArgument, "it has {} pools, more than {}",
                    response.pools_size(), kMostPools);
    }
    std::vector<Pool> pools;
    for (const v1::Pool& message : response.pools()) {
      StatusOr<Pool> pool = ParsePool(message);
      if (!pool.ok()) {
        return Annotate(pool.status(), "pool " + message.name());
      }
      pools.push_back(*std::move(pool));
    }
    return pools;
  }
};

}  // namespace

template <>
struct Codec<ReleaseContainer> {
  using Response = v1::ReleaseContainerResponse;
  using Message = v1::ReleaseContainerRequest;

  static Message ToWire(const ContainerKey& key) {
    Message message;
    message.set_pod_uid(key.pod_uid);
    message.set_container_name(key.container);
    return message;
  }
  static StatusOr<ContainerKey> FromWire(const Message& message) {
    return ContainerKey{message.pod_uid(), message.container_name()};
  }
  static Status Serve(PluginDriver& driver, const ContainerKey& key) {
    if (key.pod_uid.empty() || key.container.empty()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot release a container: pod_uid \"{}\" and container_name \"{}\" must "
                    "both be set",
                    key.pod_uid, key.container);
    }
    return driver.ReleaseContainer(key);
  }
};
template class CallTo<ReleaseContainer>;

template <>
struct Codec<GetPools> : WithPools<v1::GetPoolsResponse> {
  using Message = v1::GetPoolsRequest;

  static Message ToWire(const std::string& resource) {
    Message message;
    message.set_resource_name(resource);
    return message;
  }
  static StatusOr<std::string> FromWire(const Message& message) { return message.resource_name(); }
  static StatusOr<std::vector<Pool>> Serve(const PluginDriver& driver) { return driver.Pools(); }
};
template class CallTo<GetPools>;

template <>
struct Codec<SetPools> : WithPools<v1::SetPoolsResponse> {
  using Message = v1::SetPoolsRequest;

  static Message ToWire(const SetPools::Request& request) {
    Message message;
    message.set_resource_name(request.resource);
    message.mutable_cpus_by_pool()->insert(request.cpus_by_pool.begin(),
                                           request.cpus_by_pool.end());
    return message;
  }
  static StatusOr<SetPools::Request> FromWire(const Message& message) {
    return SetPools::Request{
        .resource = message.resource_name(),
        .cpus_by_pool = {message.cpus_by_pool().begin(), message.cpus_by_pool().end()}};
  }
  static StatusOr<std::vector<Pool>> Serve(PluginDriver& driver, const SetPools::Request& request) {
    QRM_ASSIGN_OR_RETURN(const auto pools, ParsePools(request.cpus_by_pool));
    QRM_RETURN_IF_ERROR(driver.SetPools(pools));
    return driver.Pools();
  }
};
template class CallTo<SetPools>;

template <>
struct Codec<ExportState> {
  using Message = v1::ExportStateRequest;
  using Response = v1::ExportStateResponse;

  static StatusOr<std::string> Serve(const PluginDriver& driver) { return driver.ExportState(); }
  static Response AnswerToWire(const std::string& json) {
    Response response;
    response.set_json(json);
    return response;
  }
  static StatusOr<std::string> AnswerFromWire(const Response& response) { return response.json(); }
};
template class CallTo<ExportState>;

template <>
struct Codec<Restore> {
  using Response = v1::RestoreResponse;
  using Message = v1::RestoreRequest;

  static Message ToWire(const Restore::Request& request) {
    Message message;
    for (const auto& [key, grant] : request.grants) {
      v1::Holding& holding = *message.add_holdings();
      wire::ToWire(grant.request).SerializeToString(holding.mutable_request());
      wire::ToWire(grant.allocation).SerializeToString(holding.mutable_allocation());
      if (grant.admitted != nullptr) {
        wire::ToWire(*grant.admitted).SerializeToString(holding.mutable_admitted());
      }
    }
    if (request.saved.has_value()) {
      message.set_saved(*request.saved);
    }
    return message;
  }
  static StatusOr<Restore::Request> FromWire(const Message& message) {
    Restore::Request request;
    for (const v1::Holding& holding : message.holdings()) {
      QRM_ASSIGN_OR_RETURN(sdk::Grant grant, ParseHolding(holding));
      const ContainerKey key = grant.request.key;
      request.grants.insert_or_assign(key, std::move(grant));
    }
    if (message.has_saved()) {
      request.saved = message.saved();
    }
    return request;
  }
  static Status Serve(PluginDriver& driver, const Restore::Request& request) {
    return driver.Restore(request.grants, request.saved);
  }
};
template class CallTo<Restore>;

template <>
struct Codec<GetChangedAllocations> {
  using Message = v1::GetChangedAllocationsRequest;
  using Response = v1::GetChangedAllocationsResponse;

  static Message ToWire(const std::string& since) {
    Message message;
    message.set_since(since);
    return message;
  }
  static StatusOr<std::string> FromWire(const Message& message) { return message.since(); }
  static StatusOr<sdk::ChangedAllocations> Serve(PluginDriver& driver, const std::string& since) {
    QRM_RETURN_IF_ERROR(driver.Reconcile());
    return driver.ChangesSince(since);
  }
  static Response AnswerToWire(const sdk::ChangedAllocations& answer) {
    Response response;
    response.set_now(answer.now);
    wire::ToWire(answer.changed).SerializeToString(response.mutable_changed());
    return response;
  }
  static StatusOr<sdk::ChangedAllocations> AnswerFromWire(const Response& response) {
    const auto parts = PartsOf(response.changed(), kPartBytes);
    if (!parts.has_value()) {
      return Unreadable("what changed");
    }
    sdk::ChangedAllocations answer{.now = response.now(), .changed = {}};
    for (const std::string_view part : *parts) {  // parsed, it takes several times its bytes
      QRM_ASSIGN_OR_RETURN(const auto changed,
                           ParseMessage<wire::pb::GetResourcesAllocationResponse>(part));
      QRM_ASSIGN_OR_RETURN(AllocationByContainer some, wire::FromWire(changed));
      answer.changed.merge(some);
      if (answer.changed.size() > kMostHeld) {
        return Errorf(StatusCode::kInvalidArgument, "it has more than {} containers that changed",
                      kMostHeld);
      }
    }
    return answer;
  }
  static Status Check(const sdk::ChangedAllocations& answer, const NumaMask& machine_nodes) {
    for (const auto& [key, allocations] : answer.changed) {
      QRM_RETURN_IF_ERROR(CheckAllocations(allocations, machine_nodes));
    }
    return OkStatus();
  }
};
template class CallTo<GetChangedAllocations>;

std::vector<ServedCall> ExtensionCalls() {
  return {Served<ReleaseContainer>(), Served<GetPools>(), Served<SetPools>(),
          Served<ExportState>(),      Served<Restore>(),  Served<GetChangedAllocations>()};
}

}  // namespace qrm::calls
