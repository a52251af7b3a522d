// Writes and reads records as messages.
#include "checkpoint/record_codec.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/arena.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/proto/qrm/state/v1/record.pb.h"

namespace qrm::checkpoint {
namespace {

namespace pb = ::qrm::state::v1;
using Pairs = google::protobuf::RepeatedPtrField<pb::Pair>;
using Quantities = google::protobuf::RepeatedPtrField<pb::Quantity>;
using NodeAmounts = google::protobuf::RepeatedPtrField<pb::NodeAmount>;

/// Fills messages, and remembers what cannot be stored.
class Writer {
 public:
  Status status() const { return status_; }

  void Fill(const PodRecord& pod, const ContainerRecord& record, pb::Record& message) {
    Fill(pod.meta, *message.mutable_pod());
    message.set_pod_order(pod.order);
    message.set_type(static_cast<int>(record.type));
    message.set_index(record.index);
    message.set_restartable_init(record.restartable_init);
    Fill(record.requests, *message.mutable_requests());
    Fill(record.limits, *message.mutable_limits());
    message.set_request_source(Text(record.request_source));
    message.set_runtime_class(Text(record.runtime_class));
    message.set_skipped(Text(record.skipped));
    for (const auto& [resource, allocation] : record.allocations) {
      pb::Allocation& given = *message.add_allocations();
      given.set_resource(Text(resource));
      Fill(resource, allocation, given);
      if (const auto origin = record.origins.find(resource); origin != record.origins.end()) {
        Fill(resource, origin->second, *given.mutable_origin());
      }
    }
    Fill(record.classes, *message.mutable_classes());
    Fill(record.applied, *message.mutable_applied());
    message.set_applied_to(Text(record.applied_to));
  }

 private:
  const std::string& Text(const std::string& text) {
    if (!IsUtf8(text)) {
      status_.Update(Errorf(StatusCode::kInvalidArgument,
                            "cannot store the text {}: it is not UTF-8; correct what the plugin or "
                            "pod sends",
                            Quoted(text)));
    }
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): records outlive their writing.
    return text;
  }

  double Finite(double number, const std::string& resource) {
    if (!std::isfinite(number)) {
      status_.Update(Errorf(StatusCode::kInvalidArgument,
                            "cannot store {} of {}: it is not a finite number; correct the plugin "
                            "or the request",
                            number, Quoted(resource)));
    }
    return number;
  }

  void Fill(const StringMap& map, Pairs& pairs) {
    pairs.Reserve(static_cast<int>(map.size()));
    for (const auto& [key, value] : map) {
      pb::Pair& pair = *pairs.Add();
      pair.set_key(Text(key));
      pair.set_value(Text(value));
    }
  }

  void Fill(const std::map<std::string, double>& amounts, Quantities& quantities) {
    for (const auto& [name, amount] : amounts) {
      pb::Quantity& quantity = *quantities.Add();
      quantity.set_name(Text(name));
      quantity.set_amount(Finite(amount, name));
    }
  }

  static void Fill(const std::map<uint64_t, uint64_t>& by_node, NodeAmounts& amounts) {
    for (const auto& [node, amount] : by_node) {
      pb::NodeAmount& entry = *amounts.Add();
      entry.set_node(node);
      entry.set_amount(amount);
    }
  }

  void Fill(const PodMeta& meta, pb::Pod& message) {
    message.set_namespace_(Text(meta.pod_namespace));
    message.set_name(Text(meta.name));
    message.set_role(Text(meta.role));
    message.set_type(Text(meta.type));
    message.set_qos_class(Text(meta.qos_class));
    Fill(meta.labels, *message.mutable_labels());
    Fill(meta.annotations, *message.mutable_annotations());
  }

  void Fill(const std::string& resource, const ResourceAllocation& allocation,
            pb::Allocation& message) {
    message.set_oci_property(Text(allocation.oci_property));
    message.set_value(Text(allocation.value));
    message.set_is_node_resource(allocation.is_node_resource);
    message.set_is_scalar_resource(allocation.is_scalar_resource);
    message.set_quantity(Finite(allocation.quantity, resource));
    message.set_exclusive(allocation.exclusive);
    message.set_is_inferred(allocation.is_inferred);
    message.set_decided_by(Text(allocation.decided_by));
    message.set_may_share(Text(allocation.may_share));
    message.set_shares(Text(allocation.shares));
    message.set_shares_of(Text(allocation.shares_of));
    message.set_pool(Text(allocation.pool));
    message.set_grown(Text(allocation.grown));
    message.set_lacks(Finite(allocation.lacks, resource));
    if (allocation.hints.has_value()) {
      pb::Hints& hints = *message.mutable_hints();
      for (const TopologyHint& hint : *allocation.hints) {
        pb::Hint& entry = *hints.add_hints();
        entry.set_nodes(ToString(hint.nodes));
        entry.set_preferred(hint.preferred);
      }
    }
    Fill(allocation.envs, *message.mutable_envs());
    Fill(allocation.class_defaults, *message.mutable_class_defaults());
    Fill(allocation.annotations, *message.mutable_annotations());
    Fill(allocation.amount_by_node, *message.mutable_amount_by_node());
    for (const Mount& mount : allocation.mounts) {
      pb::Mount& entry = *message.add_mounts();
      entry.set_container_path(Text(mount.container_path));
      entry.set_host_path(Text(mount.host_path));
      entry.set_read_only(mount.read_only);
    }
    for (const DeviceSpec& device : allocation.devices) {
      pb::Device& entry = *message.add_devices();
      entry.set_container_path(Text(device.container_path));
      entry.set_host_path(Text(device.host_path));
      entry.set_permissions(Text(device.permissions));
    }
  }

  void Fill(const std::string& resource, const Origin& origin, pb::Origin& message) {
    message.set_plugin(Text(origin.plugin));
    message.set_endpoint(Text(origin.endpoint));
    if (origin.admitted.has_value()) {
      message.mutable_admitted()->set_quantity(Finite(origin.admitted->quantity, resource));
      Fill(origin.admitted->by_node, *message.mutable_admitted()->mutable_by_node());
    }
  }

  Status status_;
};

Status Unreadable(std::string_view why) {
  return Errorf(StatusCode::kDataLoss,
                "cannot read the record of a container: {}; move the database aside and restart",
                why);
}

StringMap Read(const Pairs& pairs) {
  StringMap map;
  for (const pb::Pair& pair : pairs) {
    map.emplace_hint(map.end(), pair.key(), pair.value());
  }
  return map;
}

std::map<std::string, double> Read(const Quantities& quantities) {
  std::map<std::string, double> amounts;
  for (const pb::Quantity& quantity : quantities) {
    amounts.emplace_hint(amounts.end(), quantity.name(), quantity.amount());
  }
  return amounts;
}

std::map<uint64_t, uint64_t> Read(const NodeAmounts& amounts) {
  std::map<uint64_t, uint64_t> by_node;
  for (const pb::NodeAmount& entry : amounts) {
    by_node.emplace_hint(by_node.end(), entry.node(), entry.amount());
  }
  return by_node;
}

PodMeta Read(const pb::Pod& message) {
  return {.uid = {},
          .pod_namespace = message.namespace_(),
          .name = message.name(),
          .role = message.role(),
          .type = message.type(),
          .qos_class = message.qos_class(),
          .labels = Read(message.labels()),
          .annotations = Read(message.annotations())};
}

StatusOr<std::vector<TopologyHint>> Read(const pb::Hints& message) {
  std::vector<TopologyHint> hints;
  hints.reserve(static_cast<std::size_t>(message.hints_size()));
  for (const pb::Hint& entry : message.hints()) {
    TopologyHint hint{.nodes = {}, .preferred = entry.preferred()};
    if (!entry.nodes().empty()) {
      StatusOr<NumaMask> nodes = NumaMask::Parse(entry.nodes());
      if (!nodes.ok()) {
        return Unreadable(MessageOf(nodes.status()));
      }
      hint.nodes = *std::move(nodes);
    }
    hints.push_back(std::move(hint));
  }
  return hints;
}

StatusOr<ResourceAllocation> Read(const pb::Allocation& message) {
  ResourceAllocation allocation{.oci_property = message.oci_property(),
                                .value = message.value(),
                                .is_node_resource = message.is_node_resource(),
                                .is_scalar_resource = message.is_scalar_resource(),
                                .quantity = message.quantity(),
                                .envs = Read(message.envs()),
                                .annotations = Read(message.annotations()),
                                .amount_by_node = Read(message.amount_by_node()),
                                .exclusive = message.exclusive(),
                                .is_inferred = message.is_inferred(),
                                .may_share = message.may_share(),
                                .shares = message.shares(),
                                .shares_of = message.shares_of(),
                                .pool = message.pool(),
                                .grown = message.grown(),
                                .lacks = message.lacks(),
                                .decided_by = message.decided_by(),
                                .class_defaults = Read(message.class_defaults())};
  if (message.has_hints()) {
    QRM_ASSIGN_OR_RETURN(allocation.hints, Read(message.hints()));
  }
  for (const pb::Mount& entry : message.mounts()) {
    allocation.mounts.push_back({.container_path = entry.container_path(),
                                 .host_path = entry.host_path(),
                                 .read_only = entry.read_only()});
  }
  for (const pb::Device& entry : message.devices()) {
    allocation.devices.push_back({.container_path = entry.container_path(),
                                  .host_path = entry.host_path(),
                                  .permissions = entry.permissions()});
  }
  return allocation;
}

Origin Read(const pb::Origin& message) {
  Origin origin{.plugin = message.plugin(), .endpoint = message.endpoint()};
  if (message.has_admitted()) {
    origin.admitted = {.quantity = message.admitted().quantity(),
                       .by_node = Read(message.admitted().by_node())};
  }
  return origin;
}

StatusOr<ContainerRecord> Read(const pb::Record& message) {
  if (message.type() < 0 || message.type() > static_cast<int>(ContainerType::kEphemeral)) {
    return Unreadable(fmt::format("there is no container type {}", message.type()));
  }
  ContainerRecord record{.type = static_cast<ContainerType>(message.type()),
                         .index = message.index(),
                         .restartable_init = message.restartable_init(),
                         .request_source = message.request_source(),
                         .runtime_class = message.runtime_class(),
                         .skipped = message.skipped(),
                         .classes = Read(message.classes()),
                         .applied = Read(message.applied()),
                         .applied_to = message.applied_to()};
  record.requests = Read(message.requests());
  record.limits = Read(message.limits());
  std::map<std::string, Origin> origins;
  for (const pb::Allocation& given : message.allocations()) {
    QRM_ASSIGN_OR_RETURN(ResourceAllocation allocation, Read(given));
    record.allocations.emplace_hint(record.allocations.end(), given.resource(),
                                    std::move(allocation));
    if (given.has_origin()) {
      origins.emplace_hint(origins.end(), given.resource(), Read(given.origin()));
    }
  }
  record.origins = std::move(origins);
  return record;
}

}  // namespace

StatusOr<std::string> EncodeRecord(const PodRecord& pod, const ContainerRecord& container) {
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<pb::Record>(&arena);
  Writer writer;
  writer.Fill(pod, container, message);
  QRM_RETURN_IF_ERROR(writer.status());
  return message.SerializeAsString();
}

StatusOr<StoredRecord> DecodeRecord(std::string_view bytes) {
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<pb::Record>(&arena);
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Unreadable("it is not such a message");
  }
  QRM_ASSIGN_OR_RETURN(ContainerRecord container, Read(message));
  return StoredRecord{.pod = Read(message.pod()),
                      .pod_order = message.pod_order(),
                      .container = std::move(container)};
}

}  // namespace qrm::checkpoint
