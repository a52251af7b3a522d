// Merges allocations, and translates their OCI properties.
#include "manager/runtime/run_options.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"

namespace qrm::manager {
namespace {

enum class Kind { kNumber, kCpuList, kNodeList, kHugepages, kFiles };

struct Property {
  std::string_view name;  // as plugins write it
  std::string_view json;  // as CRI writes it in JSON
  Kind kind;
};

constexpr Property kProperties[] = {
    {"CpuPeriod", "cpuPeriod", Kind::kNumber},
    {"CpuQuota", "cpuQuota", Kind::kNumber},
    {"CpuShares", "cpuShares", Kind::kNumber},
    {kCpusetCpus, "cpusetCpus", Kind::kCpuList},
    {kCpusetMems, "cpusetMems", Kind::kNodeList},
    {kHugepageLimits, "hugepageLimits", Kind::kHugepages},
    {"MemoryLimitInBytes", "memoryLimitInBytes", Kind::kNumber},
    {"MemorySwapLimitInBytes", "memorySwapLimitInBytes", Kind::kNumber},
    {"OomScoreAdj", "oomScoreAdj", Kind::kNumber},
    {kUnified, "unified", Kind::kFiles},
};

/// The files that plugins may set. Those of cpusets, quotas and memory limits have properties of
/// their own. Source: Linux Documentation/admin-guide/cgroup-v2.rst.
constexpr std::string_view kFiles[] = {
    "cpu.idle",        "cpu.max.burst",    "cpu.uclamp.max", "cpu.uclamp.min",   "cpu.weight",
    "cpu.weight.nice", "io.bfq.weight",    "io.latency",     "io.max",           "io.weight",
    "memory.high",     "memory.low",       "memory.min",     "memory.oom.group", "memory.swap.high",
    "memory.swap.max", "memory.zswap.max", "pids.max"};
constexpr JsonBounds kValueBounds{
    .bytes = 16 << 10, .depth = 3, .values = 256, .unique_keys = true};

template <typename T>
bool Has(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

const Property* FindProperty(std::string_view name) {
  const auto* found = std::find_if(std::begin(kProperties), std::end(kProperties),
                                   [name](const Property& p) { return p.name == name; });
  return found == std::end(kProperties) ? nullptr : found;
}

std::string PropertyNames() {
  std::vector<std::string_view> names;
  for (const Property& property : kProperties) {
    names.push_back(property.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<int64_t> NumberIn(const StringMap& properties, const std::string& name) {
  const auto found = properties.find(name);
  return found == properties.end() ? std::nullopt : ParseNumber<int64_t>(found->second);
}

std::optional<uint64_t> UnsignedIn(const StringMap& properties, const std::string& name) {
  const std::optional<int64_t> number = NumberIn(properties, name);
  if (!number.has_value() || *number < 0) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(*number);
}

std::string TextIn(const StringMap& properties, std::string_view name) {
  const auto found = properties.find(std::string(name));
  return found == properties.end() ? std::string() : found->second;
}

template <typename Set>
Status CheckList(std::string_view name, std::string_view value) {
  QRM_ASSIGN_OR_RETURN(const Set ids, Set::Parse(value));
  if (ids.Empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is empty, which a runtime takes as \"do not change it\"; give at least one",
                  name);
  }
  return OkStatus();
}

/// The files of a Unified, with their values. Errors: kInvalidArgument.
StatusOr<StringMap> FilesIn(std::string_view value) {
  const StatusOr<nlohmann::json> json = ParseJson(value, kValueBounds);
  if (!json.ok() || !json->is_object()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is not an object of files of cgroup v2 in JSON; write it like "
                  "{{\"memory.high\": \"1073741824\"}}",
                  kUnified);
  }
  StringMap files;
  for (const auto& [file, text] : json->items()) {
    if (std::find(std::begin(kFiles), std::end(kFiles), file) == std::end(kFiles) ||
        !text.is_string() || text.get<std::string>().empty()) {
      return Errorf(StatusCode::kInvalidArgument, "{} cannot set \"{}\"; give a text to one of {}",
                    kUnified, Quoted(file), fmt::join(kFiles, ", "));
    }
    files[file] = text.get<std::string>();
  }
  return files;
}

/// The limits of a HugepageLimits, by page size. Errors: kInvalidArgument.
StatusOr<std::map<std::string, uint64_t>> HugepagesIn(std::string_view value) {
  const auto bad = [] {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is not a list of limits in JSON; write it like "
                  "[{{\"page_size\": \"2MB\", \"limit\": 4194304}}]",
                  kHugepageLimits);
  };
  const StatusOr<nlohmann::json> json = ParseJson(value, kValueBounds);
  if (!json.ok() || !json->is_array()) {
    return bad();
  }
  std::map<std::string, uint64_t> limits;
  for (const nlohmann::json& entry : *json) {
    const auto size = entry.is_object() ? entry.find("page_size") : entry.end();
    const auto limit = entry.is_object() ? entry.find("limit") : entry.end();
    if (size == entry.end() || limit == entry.end() || !size->is_string() ||
        !limit->is_number_unsigned()) {
      return bad();
    }
    limits[size->get<std::string>()] = limit->get<uint64_t>();
  }
  return limits;
}

Status CheckValue(const Property& property, const std::string& value) {
  switch (property.kind) {
    case Kind::kCpuList:
      return CheckList<CpuSet>(property.name, value);
    case Kind::kNodeList:
      return CheckList<NumaMask>(property.name, value);
    case Kind::kHugepages:
      return HugepagesIn(value).status();
    case Kind::kFiles:
      return FilesIn(value).status();
    case Kind::kNumber:
      break;
  }
  return ParseNumber<int64_t>(value).has_value()
             ? OkStatus()
             : Errorf(StatusCode::kInvalidArgument, "{} \"{}\" is not a 64-bit integer",
                      property.name, value);
}

// Merges allocations one by one, and remembers which resource set each value.
class Joiner {
 public:
  void Join(const std::string& resource, const ResourceAllocation& allocation) {
    if (!allocation.oci_property.empty()) {
      Set(resource, "property", {allocation.oci_property, allocation.value}, options_.properties);
    }
    for (const auto& env : allocation.envs) {
      Set(resource, "environment variable", env, options_.envs);
    }
    for (const auto& annotation : allocation.annotations) {
      Set(resource, "annotation", annotation, options_.annotations);
    }
    for (const Mount& mount : allocation.mounts) {
      Add(resource, "mount", mount, options_.mounts);
    }
    for (const DeviceSpec& device : allocation.devices) {
      Add(resource, "device", device, options_.devices);
    }
  }

  RunOptions Take() && { return std::move(options_); }

 private:
  /// A kind, and a name of this kind.
  using Thing = std::pair<std::string_view, std::string_view>;

  void Set(const std::string& resource, std::string_view what,
           const std::pair<const std::string, std::string>& entry, StringMap& values) {
    const auto [set, inserted] = values.insert(entry);
    if (inserted) {
      owner_.emplace(Thing(what, set->first), resource);
    } else if (set->second != entry.second) {
      Report(resource, {what, set->first});
    }
  }

  template <typename T>
  void Add(const std::string& resource, std::string_view what, const T& item,
           std::vector<T>& items) {
    const Thing thing(what, item.container_path);
    if (owner_.emplace(thing, resource).second) {
      items.push_back(item);
    } else if (std::find(items.begin(), items.end(), item) == items.end()) {
      Report(resource, thing);
    }
  }

  void Report(const std::string& resource, const Thing& thing) {
    const std::string_view owner = owner_.at(thing);
    options_.conflicts.push_back(fmt::format("{} {} is set by {} and differently by {}; {} wins",
                                             thing.first, thing.second, owner, resource, owner));
  }

  std::map<Thing, std::string_view> owner_;  // texts of the options and of the allocations
  RunOptions options_;
};

nlohmann::ordered_json ResourcesJson(const StringMap& properties) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : properties) {
    if (const Property* property = FindProperty(name); property != nullptr) {
      nlohmann::ordered_json& field = json[std::string(property->json)];
      if (property->kind == Kind::kNumber) {
        field = ParseNumber<int64_t>(value).value_or(0);
      } else if (property->kind == Kind::kHugepages || property->kind == Kind::kFiles) {
        field = ParseJson(value, kValueBounds).value_or(nlohmann::json());
      } else {
        field = value;
      }
    }
  }
  return json;
}

}  // namespace

RunOptions MakeRunOptions(const AllocationByResource& allocations, const CpuSet& offline) {
  Joiner joiner;
  for (const auto& [resource, allocation] : allocations) {
    joiner.Join(resource, allocation);
  }
  RunOptions options = std::move(joiner).Take();
  const auto cpus = options.properties.find(std::string(kCpusetCpus));
  if (cpus != options.properties.end()) {
    cpus->second = WithShared(cpus->second, allocations);
  }
  if (!offline.Empty() && cpus != options.properties.end()) {
    cpus->second = WithoutOffline(cpus->second, offline);
    if (cpus->second.empty()) {
      options.properties.erase(cpus);
    }
  }
  return options;
}

std::string WithShared(const std::string& value, const AllocationByResource& allocations) {
  std::string together = value;
  for (const auto& [resource, allocation] : allocations) {
    if (!allocation->shares.empty()) {
      // Both were checked as lists when the allocation was accepted.
      together = ToString(CpuSet::Parse(together).value_or(CpuSet()) |
                          CpuSet::Parse(allocation->shares).value_or(CpuSet()));
    }
  }
  return together;
}

bool IsForNewOnly(const ResourceAllocation& allocation) {
  return allocation.oci_property.empty() &&
         !(allocation.envs.empty() && allocation.annotations.empty() && allocation.mounts.empty() &&
           allocation.devices.empty());
}

bool WasMadeWith(const placement::MadeWith& container, const ResourceAllocation& allocation) {
  return std::all_of(allocation.envs.begin(), allocation.envs.end(),
                     [&](const auto& variable) {
                       return Has(container.env, variable.first + "=" + variable.second);
                     }) &&
         std::all_of(allocation.annotations.begin(), allocation.annotations.end(),
                     [&](const auto& annotation) {
                       // An empty one withdraws what a plugin once set.
                       const auto found = container.annotations.find(annotation.first);
                       return annotation.second.empty() || (found != container.annotations.end() &&
                                                            found->second == annotation.second);
                     }) &&
         std::all_of(allocation.mounts.begin(), allocation.mounts.end(),
                     [&](const Mount& mount) {
                       return Has(container.mount_paths, mount.container_path);
                     }) &&
         std::all_of(allocation.devices.begin(), allocation.devices.end(),
                     [&](const DeviceSpec& device) {
                       return Has(container.device_paths, device.container_path);
                     });
}

std::string WithoutOffline(const std::string& value, const CpuSet& offline) {
  const StatusOr<CpuSet> cpus = CpuSet::Parse(value);
  return cpus.ok() && cpus->Intersects(offline) ? ToString(*cpus - offline) : value;
}

Status CheckProperty(const ResourceAllocation& allocation) {
  if (allocation.oci_property.empty()) {
    return OkStatus();
  }
  const Property* property = FindProperty(allocation.oci_property);
  return Annotate(property != nullptr ? CheckValue(*property, allocation.value)
                                      : Errorf(StatusCode::kInvalidArgument,
                                               "unknown OCI property \"{}\"; use one of {}",
                                               allocation.oci_property, PropertyNames()),
                  "it gave a value that no runtime accepts");
}

LinuxResources ToLinuxResources(const StringMap& properties) {
  LinuxResources resources;
  resources.cpu_period_us = UnsignedIn(properties, "CpuPeriod");
  resources.cpu_quota_us = NumberIn(properties, "CpuQuota");
  resources.cpu_shares = UnsignedIn(properties, "CpuShares");
  resources.memory_limit_bytes = NumberIn(properties, "MemoryLimitInBytes");
  resources.memory_swap_limit_bytes = NumberIn(properties, "MemorySwapLimitInBytes");
  resources.cpuset_cpus = TextIn(properties, kCpusetCpus);
  resources.cpuset_mems = TextIn(properties, kCpusetMems);
  if (const auto files = properties.find(std::string(kUnified)); files != properties.end()) {
    resources.unified = FilesIn(files->second).value_or(StringMap());
  }
  if (const auto limits = properties.find(std::string(kHugepageLimits));
      limits != properties.end()) {
    resources.hugepage_limit_bytes =
        HugepagesIn(limits->second).value_or(std::map<std::string, uint64_t>());
  }
  return resources;
}

ContainerAdjustment ToAdjustment(const RunOptions& options) {
  LinuxResources resources = ToLinuxResources(options.properties);
  resources.unified.insert(options.classes.unified.begin(), options.classes.unified.end());
  const std::optional<int64_t> score = NumberIn(options.properties, "OomScoreAdj");
  return {.resources = std::move(resources),
          .oom_score_adj = score.has_value() ? score : options.classes.oom_score_adj,
          .rdt_class = options.classes.rdt_class,
          .envs = options.envs,
          .annotations = options.annotations,
          .mounts = options.mounts,
          .devices = options.devices};
}

std::string ToJson(const RunOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!options.envs.empty()) {
    json["envs"] = options.envs;
  }
  if (!options.annotations.empty()) {
    json["annotations"] = options.annotations;
  }
  for (const Mount& mount : options.mounts) {
    json["mounts"].push_back({{"container_path", mount.container_path},
                              {"host_path", mount.host_path},
                              {"read_only", mount.read_only}});
  }
  for (const DeviceSpec& device : options.devices) {
    json["devices"].push_back({{"container_path", device.container_path},
                               {"host_path", device.host_path},
                               {"permissions", device.permissions}});
  }
  if (!options.classes.rdt_class.empty()) {
    json["rdt_class"] = options.classes.rdt_class;
  }
  if (!options.classes.unified.empty()) {
    json["unified"] = options.classes.unified;
  }
  if (options.classes.oom_score_adj.has_value()) {
    json["class_oom_score_adj"] = *options.classes.oom_score_adj;
  }
  if (!options.properties.empty()) {
    json["linux_container_resources"] = ResourcesJson(options.properties);
  }
  // Plugins' texts need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace qrm::manager
