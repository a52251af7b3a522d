// Looks for a driver in annotations, then in defaults.
#include "manager/drivers/driver_choice.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/glob.h"
#include "api/pod_texts.h"
#include "plugins/placement/requests.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

std::optional<DriverChoice> ByAnnotation(const StringMap& annotations, const std::string& key) {
  const auto found = annotations.find(key);
  if (found == annotations.end()) {
    return std::nullopt;
  }
  return DriverChoice{.name = found->second,
                      .by = fmt::format("annotation {}={}", key, Quoted(found->second))};
}

std::optional<DriverChoice> ByDefault(const placement::ContainerDemand& demand,
                                      const placement::DriverOptions& options) {
  // Any pod can name a runtime class, so that this default needs a permission of the namespace.
  const auto of_namespace = [&](const placement::DriverRules& rules) {
    return MatchesAnyGlob(rules.default_namespaces, demand.pod.pod_namespace);
  };
  for (const auto& [name, rules] : options) {
    const auto& classes = rules.runtime_classes;
    if (!demand.runtime_class.empty() &&
        std::find(classes.begin(), classes.end(), demand.runtime_class) != classes.end()) {
      return DriverChoice{.name = name,
                          .by = fmt::format("runtime class {}", Quoted(demand.runtime_class)),
                          .by_operator = of_namespace(rules)};
    }
  }
  for (const auto& [name, rules] : options) {
    if (of_namespace(rules)) {
      return DriverChoice{
          .name = name,
          .by = fmt::format("the default of namespace {}", Quoted(demand.pod.pod_namespace)),
          .by_operator = true};
    }
  }
  return std::nullopt;
}

std::string FindSpec(const placement::ContainerDemand& demand, const std::string& driver,
                     const placement::DriverOptions& options) {
  for (const std::string& key :
       {std::string(kDriverSpecOfContainer) + demand.container, std::string(kDriverSpec)}) {
    if (const auto found = demand.pod.annotations.find(key);
        found != demand.pod.annotations.end()) {
      return found->second;
    }
  }
  const auto rules = options.find(driver);
  return rules == options.end() ? std::string() : rules->second.spec;
}

StatusOr<DriverChoice> WithSpec(DriverChoice choice, const placement::ContainerDemand& demand,
                                const placement::DriverOptions& options) {
  choice.spec = FindSpec(demand, choice.name, options);
  if (choice.spec.size() > kMostSpecBytes || IsCut(choice.spec)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "its spec for compute driver {}, '{}', is too long; write at most {} bytes",
                  choice.name, Quoted(choice.spec), kMostSpecBytes);
  }
  return choice;
}

}  // namespace

StatusOr<std::optional<DriverChoice>> ChooseDriver(const placement::ContainerDemand& demand,
                                                   double cpus,
                                                   const placement::DriverOptions& options) {
  std::optional<DriverChoice> choice =
      ByAnnotation(demand.pod.annotations, kContainerDriver + demand.container);
  if (choice.has_value() && !choice->name.empty() && cpus == 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} asks for a compute driver, but the container requests no CPU; request the "
                  "CPUs that it needs",
                  choice->by);
  }
  if (!choice.has_value()) {
    if (!IsApp(demand) || cpus == 0) {
      return std::nullopt;
    }
    choice = ByAnnotation(demand.pod.annotations, kPodDriver);
  }
  if (!choice.has_value()) {
    choice = ByDefault(demand, options);
  }
  if (!choice.has_value() || choice->name.empty()) {
    return std::nullopt;
  }
  QRM_RETURN_IF_ERROR(Annotate(sdk::CheckDriverName(choice->name), choice->by));
  return WithSpec(*std::move(choice), demand, options);
}

StatusOr<DriverChoice> RecordedChoice(const placement::ContainerDemand& demand,
                                      const std::string& resource,
                                      const placement::DriverOptions& options) {
  const std::string name(sdk::DriverNameOf(resource));
  const auto rules = options.find(name);
  return WithSpec(
      {.name = name,
       .by = "the container's record",
       .by_operator = rules != options.end() &&
                      MatchesAnyGlob(rules->second.default_namespaces, demand.pod.pod_namespace)},
      demand, options);
}

std::vector<DriverChoice> DriversAskedFor(const StringMap& annotations) {
  std::vector<DriverChoice> asked;
  for (const auto& [key, name] : annotations) {
    if (key != kPodDriver && !key.starts_with(kContainerDriver)) {
      continue;
    }
    std::optional<DriverChoice> choice = ByAnnotation(annotations, key);
    if (choice.has_value() && !choice->name.empty()) {
      asked.push_back(*std::move(choice));
    }
  }
  return asked;
}

bool IsOpenTo(const placement::DriverOptions& options, const std::string& driver,
              const std::string& pod_namespace) {
  const auto rules = options.find(driver);
  return rules != options.end() && MatchesAnyGlob(rules->second.namespaces, pod_namespace);
}

std::string DriverOf(const AllocationByResource& allocations) {
  const auto found = std::find_if(allocations.begin(), allocations.end(), [](const auto& entry) {
    return sdk::IsDriverResource(entry.first) && entry.second->oci_property == kCpusetCpus;
  });
  return found == allocations.end() ? std::string() : found->first.str();
}

}  // namespace qrm::manager
