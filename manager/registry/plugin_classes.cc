// Forwards a type's calls to its plugin, and keeps the plugin's latest classes.
#include "manager/registry/plugin_classes.h"

#include <optional>
#include <utility>

#include "api/base/errorf.h"

namespace qrm::manager {

PluginClasses::PluginClasses(std::string type, Plugins& plugins,
                             std::chrono::milliseconds call_deadline)
    : type_(std::move(type)), plugins_(plugins), deadline_(call_deadline) {}

std::string PluginClasses::Absence() const {
  const std::optional<PluginInfo> plugin = plugins_.Find(type_);
  if (!plugin.has_value()) {
    return fmt::format("no plugin has registered as {}; start it", type_);
  }
  return plugin->live ? "" : fmt::format("plugin {} is not running: {}", type_, plugin->problem);
}

sdk::ClassType PluginClasses::List() const {
  std::string absence = Absence();
  const MutexLock lock(mutex_);
  sdk::ClassType type = offer_.type;
  type.name = type_;
  if (!absence.empty()) {
    type.problem = std::move(absence);
  } else if (!known_) {
    type.problem = fmt::format("plugin {} has not sent its classes yet; try again", type_);
  }
  return type;
}

StatusOr<sdk::ClassOptions> PluginClasses::Resolve(const std::string& class_name) const {
  const MutexLock lock(mutex_);
  for (const sdk::ClassInfo& info : offer_.type.classes) {
    if (info.name != class_name) {
      continue;
    }
    if (!info.problem.empty()) {
      return Errorf(StatusCode::kFailedPrecondition, "{}", info.problem);
    }
    return offer_.options.at(class_name);
  }
  return Errorf(StatusCode::kNotFound, "plugin {} has no class {}; see qrmctl classes", type_,
                class_name);
}

// On the type's own thread, which may wait.
template <typename Call>
StatusOr<typename Call::Answer> PluginClasses::Ask(typename Call::Request request) {
  if (const std::string absence = Absence(); !absence.empty()) {
    return Status(StatusCode::kUnavailable, absence);
  }
  request.resource = type_;
  return std::move(
      plugins_.AskForEach<Call>({std::move(request)}, DeadlineAfter(deadline_)).front());
}

Status PluginClasses::Refresh(const std::set<std::string>& in_use) {
  QRM_ASSIGN_OR_RETURN(calls::ClassOffer offer, Ask<calls::RefreshClasses>({.in_use = in_use}));
  return TakeOver(std::move(offer));
}

// The plugin cannot give or read classes that it does not offer any more, even if they are in use.
Status PluginClasses::TakeOver(calls::ClassOffer offer) {
  const MutexLock lock(mutex_);
  if (known_ &&
      (offer.type.level != offer_.type.level || offer.type.is_mutable != offer_.type.is_mutable)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot take over the classes of plugin {}: its level, or whether classes can "
                  "change, differs from before; restart qrmd",
                  type_);
  }
  known_ = true;
  offer_ = std::move(offer);
  return offer_.error.empty() ? OkStatus() : Errorf(StatusCode::kUnavailable, "{}", offer_.error);
}

Status PluginClasses::Apply(const sdk::ClassTarget& target, const std::string& from,
                            const std::string& to) {
  return Ask<calls::ApplyClass>({.target = target, .from = from, .to = to}).status();
}

StatusOr<std::string> PluginClasses::ReadBack(const sdk::ClassTarget& target,
                                              const std::string& class_name) {
  return Ask<calls::ReadBackClass>({.target = target, .class_name = class_name});
}

void PluginClasses::Release(const sdk::ClassTarget& target) {
  Ask<calls::ReleaseClass>({.target = target}).status().IgnoreError();  // its next Refresh sees it
}

std::vector<sdk::ClassReading> PluginClasses::Readings() {
  const MutexLock lock(mutex_);
  return offer_.readings;
}

}  // namespace qrm::manager
