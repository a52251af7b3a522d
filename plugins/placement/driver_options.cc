// Reads the key of compute drivers.
#include "plugins/placement/driver_options.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/section.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::placement {
namespace {

using config::KeyShape;
using config::Section;

constexpr char kRefuse[] = "refuse";
constexpr char kFallBack[] = "fallback";
constexpr char kRetry[] = "retry";
constexpr char kFail[] = "fail";

StatusOr<DriverRules> ReadRules(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys({"namespaces", "default-namespaces", "runtime-classes",
                                         "spec", "when-missing", "reject-as"}));
  DriverRules rules;
  QRM_ASSIGN_OR_RETURN(rules.namespaces, section.Words("namespaces"));
  QRM_ASSIGN_OR_RETURN(rules.default_namespaces, section.Words("default-namespaces"));
  QRM_ASSIGN_OR_RETURN(rules.runtime_classes, section.Words("runtime-classes"));
  QRM_ASSIGN_OR_RETURN(rules.spec, section.Text("spec", ""));
  QRM_ASSIGN_OR_RETURN(const std::string when_missing, section.Text("when-missing", kRefuse));
  if (when_missing != kRefuse && when_missing != kFallBack) {
    return section.Error("when-missing", fmt::format("is '{}'", when_missing),
                         fmt::format("choose from {} and {}", kRefuse, kFallBack));
  }
  rules.when_missing = when_missing == kRefuse ? WhenMissing::kRefuse : WhenMissing::kFallBack;
  QRM_ASSIGN_OR_RETURN(const std::string reject_as, section.Text("reject-as", ""));
  if (const StatusOr<RejectAs> read = ParseRejectAs(reject_as); read.ok()) {
    rules.reject_as = *read;
  } else if (!reject_as.empty()) {
    return section.Error("reject-as", fmt::format("is '{}'", reject_as),
                         fmt::format("choose from {} and {}", kRetry, kFail));
  }
  return rules;
}

std::string Show(const DriverRules& rules) {
  return fmt::format(
      "{{namespaces: {}, default-namespaces: {}, runtime-classes: {}, spec: \"{}\", "
      "when-missing: {}{}}}",
      config::WordsText(rules.namespaces), config::WordsText(rules.default_namespaces),
      config::WordsText(rules.runtime_classes), rules.spec,
      rules.when_missing == WhenMissing::kRefuse ? kRefuse : kFallBack,
      !rules.reject_as.has_value()           ? ""
      : *rules.reject_as == RejectAs::kRetry ? ", reject-as: retry"
                                             : ", reject-as: fail");
}

std::string ShowAll(const DriverOptions& options) {
  std::vector<std::string> drivers;
  drivers.reserve(options.size());
  for (const auto& [name, rules] : options) {
    drivers.push_back(fmt::format("{}: {}", name, Show(rules)));
  }
  return fmt::format("{{{}}}", fmt::join(drivers, ", "));
}

}  // namespace

StatusOr<RejectAs> ParseRejectAs(std::string_view word) {
  if (word != kRetry && word != kFail) {
    return Errorf(StatusCode::kInvalidArgument, "choose from {} and {}", kRetry, kFail);
  }
  return word == kRetry ? RejectAs::kRetry : RejectAs::kFail;
}

std::vector<config::ConfigKey> DriverKeys(DriverOptions& options) {
  return {{.name = "compute-drivers",
           .shape = KeyShape::kMapping,
           .range = "sections of drivers: {namespaces, default-namespaces, runtime-classes, spec, "
                    "when-missing: `refuse` or `fallback`, reject-as: `retry` or `fail`}",
           .help = "Compute drivers (CCI): the namespaces that may ask for them, the containers "
                   "that get them by default, what happens while a driver is not running, and what "
                   "becomes of pods that it rejects (as `reject-as`); see cci.md.",
           .read = [&options](const Section& section, const std::string& key) -> Status {
             QRM_ASSIGN_OR_RETURN(const auto children, section.Children(key));
             DriverOptions read;
             for (const auto& [name, keys] : children) {
               if (!sdk::CheckDriverName(name).ok()) {
                 return section.Error(key,
                                      fmt::format("has '{}', which is not a driver name", name),
                                      "write lower-case letters, digits and '-'");
               }
               QRM_ASSIGN_OR_RETURN(read[name], ReadRules(keys));
             }
             options = std::move(read);
             return OkStatus();
           },
           .show = [&options] { return ShowAll(options); }}};
}

}  // namespace qrm::placement
