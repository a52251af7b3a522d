// Asks all plugins of a container at the same time.
#include "manager/pods/pre_start.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::PodMeta;

std::vector<std::string> PluginsToAsk(const ContainerRecord& record, const Plugins& plugins) {
  std::vector<std::string> resources;
  for (const auto& [resource, allocation] : record.allocations) {
    const std::optional<PluginInfo> plugin = plugins.Find(resource);
    if (plugin.has_value() && plugin->options.pre_start_required) {
      resources.push_back(resource);
    }
  }
  return resources;
}

Status FirstError(const ByPlugin<calls::Nothing>& answers) {
  for (const auto& [resource, answer] : answers) {
    if (!answer.ok()) {
      return answer.status();
    }
  }
  return OkStatus();
}

}  // namespace

void PreStart::Prepare(const ContainerKey& key, std::function<void(const Status&)> done) {
  const auto state = parts_.state.Load();
  const ContainerRecord* record = state->Find(key);
  const std::vector<std::string> resources =
      record == nullptr ? std::vector<std::string>() : PluginsToAsk(*record, parts_.plugins);
  const bool has_classes =
      record != nullptr && parts_.classes != nullptr && !record->classes.empty();
  if (resources.empty() && !has_classes) {
    done(OkStatus());
    return;
  }
  const PodMeta& pod = state->FindPod(key.pod_uid)->meta;
  std::string what = fmt::format("cannot start container {} of pod {}/{}", key.container,
                                 pod.pod_namespace, pod.name);
  if (resources.empty()) {
    GiveClasses(key, what, done);
    return;
  }
  parts_.plugins.AskAll<calls::PreStartContainer>(
      resources, {.key = key, .pod_namespace = pod.pod_namespace, .pod_name = pod.name},
      DeadlineAfter(deadline_),
      [this, key, has_classes, what = std::move(what),
       done = std::move(done)](const ByPlugin<calls::Nothing>& answers) {
        const Status prepared = FirstError(answers);
        if (prepared.ok() && has_classes) {
          GiveClasses(key, what, done);
        } else {
          done(prepared.ok() ? prepared : Annotate(prepared, what));
        }
      });
}

void PreStart::GiveClasses(const ContainerKey& key, const std::string& what,
                           const std::function<void(const Status&)>& done) {
  parts_.classes->Prepare(
      key, [what, done](const Status& given) { done(given.ok() ? given : Annotate(given, what)); });
}

}  // namespace qrm::manager
