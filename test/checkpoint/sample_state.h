// Pods, containers and changes for the checkpoint's tests: small ones by name, and random ones that
// use every field.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "checkpoint/sqlite/sqlite_db.h"
#include "checkpoint/store.h"

namespace qrm::test {

/// A pod's container with a CPU and a memory allocation, as a usual admission commits it.
inline checkpoint::Change::PutContainer SampleContainer(const std::string& uid,
                                                        const std::string& container = "main") {
  checkpoint::ContainerRecord record = {.type = ContainerType::kMain,
                                        .requests = {{"cpu", 2}, {"memory", 4294967296.0}},
                                        .request_source = "pods-api",
                                        .applied = {{"CpusetCpus", "0-1"}, {"CpusetMems", "0"}}};
  const std::vector<TopologyHint> node_zero = {{.nodes = {0}, .preferred = true}};
  record.allocations["cpu"].Edit() = {.oci_property = "CpusetCpus",
                                      .value = "0-1",
                                      .is_scalar_resource = true,
                                      .quantity = 2,
                                      .hints = node_zero,
                                      .exclusive = true};
  record.allocations["memory"].Edit() = {.oci_property = "CpusetMems",
                                         .value = "0",
                                         .is_scalar_resource = true,
                                         .quantity = 4294967296.0,
                                         .hints = node_zero,
                                         .amount_by_node = {{0, 4294967296}}};
  return {.pod = {.uid = uid,
                  .pod_namespace = "default",
                  .name = "pod-" + uid,
                  .role = "server",
                  .qos_class = "Guaranteed",
                  .labels = {{"app", "sample"}},
                  .annotations = {{"katalyst.kubewharf.io/qos_level", "dedicated_cores"}}},
          .container = container,
          .record = record};
}

inline checkpoint::Change PutSample(const std::string& uid, const std::string& container = "main") {
  checkpoint::Change change;
  change.put_containers = {SampleContainer(uid, container)};
  return change;
}

inline checkpoint::Change RemoveSample(const std::string& uid) {
  checkpoint::Change change;
  change.remove_pods = {uid};
  return change;
}

/// The store in `directory`, which is of no newer schema.
inline checkpoint::OpenedStore OpenStore(const std::string& directory,
                                         const checkpoint::SqliteOptions& options = {}) {
  return *checkpoint::OpenSqliteStore(directory, options);
}

/// Draws changes over a few pods, so that puts, renames, removals and repetitions meet.
class RandomChanges {
 public:
  explicit RandomChanges(uint32_t seed) : engine_(seed) {}

  checkpoint::Change Next() {
    checkpoint::Change change;
    for (int i = Draw(4); i > 0; --i) {
      change.put_containers.push_back(Put());
    }
    for (int i = Draw(2); i > 0; --i) {
      change.remove_pods.push_back(Uid());
    }
    for (int i = Draw(2); i > 0; --i) {
      change.remove_containers.push_back({.pod_uid = Uid(), .container = Container()});
    }
    for (int i = Draw(2); i > 0; --i) {
      change.add_pending_removals.emplace_back(Uid(), Resource());
    }
    for (int i = Draw(3); i > 0; --i) {
      change.done_pending_removals.emplace_back(Uid(), Resource());
    }
    for (int i = Draw(2); i > 0; --i) {
      change.put_plugin_values[Resource()] = Text();
    }
    return change;
  }

  int Draw(int below) { return static_cast<int>(engine_() % static_cast<uint32_t>(below)); }

 private:
  bool Flip() { return Draw(2) == 1; }
  std::string Uid() { return "uid-" + std::to_string(Draw(30)); }
  std::string Container() { return "c" + std::to_string(Draw(3)); }
  std::string Resource() { return "resource" + std::to_string(Draw(3)); }

  std::string Text() {
    static const std::vector<std::string> texts = {"",
                                                   "plain",
                                                   "with \"quotes\" and \\",
                                                   "täxt ☃",
                                                   std::string("nul\0inside", 10),
                                                   "line\nbreak",
                                                   "none",
                                                   "any preferred",
                                                   "; "};
    return texts[static_cast<std::size_t>(Draw(static_cast<int>(texts.size())))];
  }

  std::string Property() {
    return std::vector<std::string>{"CpusetCpus", "CpusetMems",
                                    Text()}[static_cast<std::size_t>(Draw(3))];
  }

  StringMap Map() {
    StringMap map;
    for (int i = Draw(3); i > 0; --i) {
      map["key" + Text()] = Text();
    }
    return map;
  }

  ResourceAllocation Allocation() {
    ResourceAllocation allocation = {.oci_property = Property(),
                                     .value = Text(),
                                     .is_node_resource = Flip(),
                                     .is_scalar_resource = Flip(),
                                     .quantity = Draw(1000) / 7.0,
                                     .envs = Map(),
                                     .annotations = Map(),
                                     .exclusive = Flip(),
                                     .may_share = Flip() ? "0-7" : "",
                                     .shares = Flip() ? "0,5" : "",
                                     .shares_of = Flip() ? "helpers" : "",
                                     .pool = Flip() ? "batch" : "",
                                     .grown = Flip() ? "2-3" : "",
                                     .lacks = Flip() ? 2.0 : 0,
                                     .decided_by = Text(),
                                     .class_defaults = Map()};
    if (allocation.oci_property.starts_with("Cpuset")) {
      allocation.value = "0,2-3";
    }
    if (Flip()) {
      allocation.hints.emplace();
      for (int i = Draw(3); i > 0; --i) {
        allocation.hints->push_back(
            {.nodes = Flip() ? NumaMask() : NumaMask{Draw(4), Draw(70)}, .preferred = Flip()});
      }
    }
    for (int i = Draw(3); i > 0; --i) {
      allocation.amount_by_node[static_cast<uint64_t>(Draw(8))] = UINT64_MAX - engine_();
    }
    if (Draw(5) == 0) {
      allocation.mounts.push_back(
          {.container_path = "/" + Text(), .host_path = "/" + Text(), .read_only = Flip()});
      allocation.devices.push_back(
          {.container_path = "/" + Text(), .host_path = "/" + Text(), .permissions = "rw"});
    }
    return allocation;
  }

  checkpoint::Origin Origin() {
    checkpoint::Origin origin = {.plugin = Resource(), .endpoint = Text()};
    if (Flip()) {
      origin.admitted = {.quantity = Draw(1000) / 7.0,
                         .by_node = {{static_cast<uint64_t>(Draw(8)), UINT64_MAX - engine_()}}};
    }
    return origin;
  }

  checkpoint::Change::PutContainer Put() {
    checkpoint::Change::PutContainer put;
    put.pod = {.uid = Uid(),
               .pod_namespace = "ns" + std::to_string(Draw(2)),
               .name = "name" + std::to_string(Draw(5)),
               .role = Text(),
               .type = Text(),
               .qos_class = Text(),
               .labels = Map(),
               .annotations = Map()};
    put.container = Container();
    put.record = {.type = static_cast<ContainerType>(Draw(4)),
                  .index = UINT64_MAX - engine_(),
                  .restartable_init = Flip(),
                  .request_source = Text(),
                  .runtime_class = Text(),
                  .skipped = Text(),
                  .applied = Map(),
                  .applied_to = Text()};
    for (int i = Draw(3); i > 0; --i) {
      const std::string resource = Resource();
      put.record.requests.Edit()[Resource()] = Draw(1000) / 3.0;
      put.record.limits.Edit()[Resource()] = Draw(1000) / 3.0;
      put.record.allocations[resource] = Allocation();
      if (Flip()) {
        put.record.origins.Edit()[resource] = Origin();
      }
    }
    if (Draw(3) == 0) {
      put.record.classes = Map();
    }
    return put;
  }

  std::mt19937 engine_;
};

}  // namespace qrm::test
