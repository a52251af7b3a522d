// Names instances after the containers that use them.
#include "plugins/cpu/config/instances.h"

#include <optional>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"
#include "plugins/rules/select.h"

namespace qrm::cpu {
namespace {

constexpr char kSeparator = '/';  // never in the name of a configured pool
constexpr char kNumber = ':';     // never in the name of a group

bool IsInstance(std::string_view pool) {
  return pool.find(kSeparator) != std::string_view::npos;
}

StatusOr<std::string> GroupOf(const InstanceRule& rule, const std::string& pool,
                              const ContainerRequest& request) {
  switch (rule.by) {
    case InstanceRule::By::kPod:
      return Escaped(fmt::format("{}/{}", request.pod_namespace, request.pod_name));
    case InstanceRule::By::kContainer:
      return Escaped(
          fmt::format("{}/{}/{}", request.pod_namespace, request.pod_name, request.key.container));
    case InstanceRule::By::kNamespace:
      return Escaped(request.pod_namespace);
    case InstanceRule::By::kNode:
      return "any";
    case InstanceRule::By::kAll:
      return "all";
    case InstanceRule::By::kLabel:
      break;
  }
  const auto label = request.labels.find(rule.label);
  if (label == request.labels.end() || label->second.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot place {}: pool {} has an instance for each value of label {}, which the "
                  "pod lacks; set the label, or choose another pool",
                  rules::NameOf(request), pool, rule.label);
  }
  return Escaped(label->second);
}

}  // namespace

std::string_view ConfiguredName(std::string_view pool) {
  return pool.substr(0, pool.find(kSeparator));
}

const PoolConfig* FindPool(const CpuPluginConfig& config, std::string_view pool) {
  const auto found = config.pools.find(std::string(ConfiguredName(pool)));
  const bool there =
      found != config.pools.end() && found->second.instances.has_value() == IsInstance(pool);
  return there ? &found->second : nullptr;
}

bool IsElastic(const CpuPluginConfig& config, std::string_view pool) {
  const PoolConfig* const found = FindPool(config, pool);
  return found != nullptr && found->size.has_value();
}

bool IsByNode(const CpuPluginConfig& config, std::string_view pool) {
  const PoolConfig* const found = FindPool(config, pool);
  return found != nullptr && found->instances.has_value() &&
         found->instances->by == InstanceRule::By::kNode;
}

std::string InstanceOn(std::string_view pool, int node) {
  return fmt::format("{}{}{}", ConfiguredName(pool), kSeparator, node);
}

std::optional<int> NodeOfInstance(const CpuPluginConfig& config, std::string_view pool) {
  return IsByNode(config, pool) ? ParseNumber<int>(pool.substr(pool.find(kSeparator) + 1))
                                : std::nullopt;
}

std::string NumberedInstance(const std::string& first, int number) {
  return number == 1 ? first : fmt::format("{}{}{}", first, kNumber, number);
}

std::string_view FirstInstance(std::string_view instance) {
  return instance.substr(0, instance.find(kNumber));
}

std::string SpareInstance(std::string_view pool, int number) {
  return fmt::format("{}{}{}{}", ConfiguredName(pool), kSeparator, kNumber, number);
}

bool IsSpare(std::string_view pool) {
  const std::string_view group = pool.substr(ConfiguredName(pool).size());
  return group.size() > 1 && group[1] == kNumber;
}

StatusOr<std::string> PoolFor(const CpuPluginConfig& config, const std::string& pool,
                              const ContainerRequest& request) {
  const auto found = config.pools.find(pool);
  const std::optional<InstanceRule> rule =
      found == config.pools.end() ? std::nullopt : found->second.instances;
  if (!rule.has_value()) {
    return pool;
  }
  QRM_ASSIGN_OR_RETURN(const std::string group, GroupOf(*rule, pool, request));
  return fmt::format("{}{}{}", pool, kSeparator, group);
}

}  // namespace qrm::cpu
