// Converts between the desk's values and Katalyst's messages.
#include "plugins/cpu/advisor/katalyst_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"
#include "api/proto/cpuadvisor/cpu.pb.h"
#include "plugins/placement/qos_annotations.h"

namespace qrm::cpu {
namespace {

using nlohmann::json;

constexpr char kPoolItself[] = "";  // instead of a container
constexpr char kReserve[] = "reserve";
constexpr char kReclaim[] = "reclaim";
constexpr char kDedicated[] = "dedicated";
constexpr char kHeadroom[] = "cpu_numa_headroom";

void SetCpus(const NodeSight& node, const CpuSet& cpus, cpuadvisor::AllocationInfo& info) {
  for (const auto& [id, online] : node.online) {
    const CpuSet here = cpus & online;
    if (!here.Empty()) {
      const auto key = static_cast<uint64_t>(id);
      (*info.mutable_topology_aware_assignments())[key] = ToString(here);
      (*info.mutable_original_topology_aware_assignments())[key] = ToString(here);
    }
  }
}

void AddPool(const NodeSight& node, const std::string& name, const CpuSet& cpus,
             cpuadvisor::GetAdviceRequest& request) {
  cpuadvisor::AllocationInfo& info =
      *(*(*request.mutable_entries())[name].mutable_entries())[kPoolItself]
           .mutable_allocation_info();
  info.set_owner_pool_name(name);
  SetCpus(node, cpus, info);
}

std::string LevelOf(const ContainerRequest& asked, const std::string& owner) {
  if (const auto level = asked.annotations.find(placement::kQosLevelKey);
      level != asked.annotations.end()) {
    return level->second;
  }
  if (owner == kDedicated) {
    return "dedicated_cores";
  }
  return owner == kReclaim ? "reclaimed_cores" : "shared_cores";
}

void AddContainer(const ContainerRequest& asked, const std::string& owner,
                  cpuadvisor::ContainerAllocationInfo& entry) {
  cpuadvisor::ContainerMetadata& who = *entry.mutable_metadata();
  who.set_pod_uid(asked.key.pod_uid);
  who.set_pod_namespace(asked.pod_namespace);
  who.set_pod_name(asked.pod_name);
  who.set_container_name(asked.key.container);
  who.set_container_type(static_cast<int32_t>(asked.type));
  who.set_container_index(asked.index);
  who.mutable_labels()->insert(asked.labels.begin(), asked.labels.end());
  who.mutable_annotations()->insert(asked.annotations.begin(), asked.annotations.end());
  who.set_qos_level(LevelOf(asked, owner));
  const double cpus = asked.quantity();
  who.set_request_quantity(static_cast<uint64_t>(cpus));
  who.set_request_milli_quantity(static_cast<uint64_t>(std::llround(cpus * 1000)));
  who.set_use_milli_quantity(true);
  entry.mutable_allocation_info()->set_owner_pool_name(owner);
}

/// The owner of a block's CPUs: the first of all that name the block.
struct Owner {
  bool borrows = false;  // it may use CPUs that another owner has
  bool is_pool = false;
  std::string name;

  auto operator<=>(const Owner&) const = default;
};

Owner OwnerOf(const std::string& name, const std::string& container) {
  return {.borrows = name == kReclaim, .is_pool = container == kPoolItself, .name = name};
}

/// Calls `use` with each block of `answer`, and its name.
template <typename Use>
void ForEachBlock(const cpuadvisor::GetAdviceResponse& answer, const Use& use) {
  for (const auto& [name, entries] : answer.entries()) {
    for (const auto& [container, info] : entries.entries()) {
      for (const auto& [numa, result] : info.calculation_results_by_numas()) {
        for (const cpuadvisor::Block& block : result.blocks()) {
          use(OwnerOf(name, container), block);
        }
      }
    }
  }
}

std::map<std::string, Owner> OwnersOf(const cpuadvisor::GetAdviceResponse& answer) {
  std::map<std::string, Owner> owners;
  ForEachBlock(answer, [&](const Owner& owner, const cpuadvisor::Block& block) {
    const auto [named, is_first] = owners.emplace(block.block_id(), owner);
    if (!is_first && owner < named->second) {
      named->second = owner;
    }
  });
  return owners;
}

/// The CPUs of each pool that `answer` names, at most as many as machines can have.
PoolSizes SizesIn(const cpuadvisor::GetAdviceResponse& answer) {
  const std::map<std::string, Owner> owners = OwnersOf(answer);
  std::map<std::string, uint64_t> sizes;
  ForEachBlock(answer, [&](const Owner& owner, const cpuadvisor::Block& block) {
    if (!owner.is_pool) {
      return;
    }
    uint64_t& size = sizes[owner.name];
    if (block.block_id().empty() || owners.at(block.block_id()) == owner) {
      size += std::min<uint64_t>(block.result(), CpuSet::kMaxIds);
    }
  });
  PoolSizes bounded;
  for (const auto& [name, size] : sizes) {
    bounded[name] = static_cast<int>(std::min<uint64_t>(size, CpuSet::kMaxIds));
  }
  return bounded;
}

Status ReadHeadroom(const std::string& text, std::map<int, double>& headroom) {
  const json nodes = ParseJson(text).value_or(json());
  const auto refuse = [&] {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot read {} of Katalyst's advisor: {} is not a JSON object of CPUs by NUMA node; "
        "use a supported version of Katalyst",
        kHeadroom, Quoted(text));
  };
  if (!nodes.is_object()) {
    return refuse();
  }
  for (const auto& [key, cpus] : nodes.items()) {
    int node = 0;
    const char* const end = key.data() + key.size();
    if (std::from_chars(key.data(), end, node).ptr != end || key.empty() || !cpus.is_number()) {
      return refuse();
    }
    headroom[node] = cpus.get<double>();
  }
  return OkStatus();
}

}  // namespace

cpuadvisor::GetAdviceRequest QuestionOf(const NodeSight& node) {
  cpuadvisor::GetAdviceRequest request;
  AddPool(node, kReserve, node.reserved, request);
  for (const auto& [name, cpus] : node.pools) {
    AddPool(node, name, cpus, request);
  }
  const auto entry_of = [&](const ContainerKey& key) -> cpuadvisor::ContainerAllocationInfo& {
    return (*(*request.mutable_entries())[key.pod_uid].mutable_entries())[key.container];
  };
  for (const NodeSight::Container& container : node.containers) {
    if (const auto asked = node.requests.find(container.key);
        asked != node.requests.end() && !node.own_cpus.contains(container.key)) {
      AddContainer(asked->second, container.pool, entry_of(container.key));
    }
  }
  for (const auto& [key, cpus] : node.own_cpus) {
    if (const auto asked = node.requests.find(key); asked != node.requests.end()) {
      cpuadvisor::ContainerAllocationInfo& entry = entry_of(key);
      AddContainer(asked->second, kDedicated, entry);
      SetCpus(node, cpus, *entry.mutable_allocation_info());
    }
  }
  return request;
}

StatusOr<KatalystAdvice> AdviceIn(const cpuadvisor::GetAdviceResponse& answer,
                                  const NodeSight& node) {
  KatalystAdvice advice;
  for (const auto& [pool, cpus] : SizesIn(answer)) {
    if (node.advised.asks.contains(pool)) {
      advice.pools.push_back({pool, cpus, "Katalyst's advisor"});
    } else if (pool != kReserve) {
      advice.unknown.push_back(pool);
    }
  }
  for (const cpuadvisor::ExtraEntry& extra : answer.extra_entries()) {
    const auto& values = extra.calculation_result().values();
    if (const auto text = values.find(kHeadroom); text != values.end()) {
      QRM_RETURN_IF_ERROR(ReadHeadroom(text->second, advice.headroom));
    }
  }
  return advice;
}

}  // namespace qrm::cpu
