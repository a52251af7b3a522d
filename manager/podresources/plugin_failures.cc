// Keeps each plugin's latest failure, and counts failures.
#include "manager/podresources/plugin_failures.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>

#include "api/base/log.h"

namespace qrm::manager {

PluginFailures::PluginFailures(std::string untold, prometheus::Family<prometheus::Counter>& errors)
    : untold_(std::move(untold)), errors_(errors) {}

void PluginFailures::Add(const std::string& resource, const Status& why) {
  errors_.Add({{"resource", resource}}).Increment();
  log::Debug("plugin does not report",
             {{"resource", resource}, {"what", untold_}, {"error", MessageOf(why)}});
  const MutexLock lock(mutex_);
  reasons_[resource] = MessageOf(why);
}

void PluginFailures::Forget(const std::string& resource) {
  const MutexLock lock(mutex_);
  reasons_.erase(resource);
}

void PluginFailures::Keep(const std::vector<std::string>& resources) {
  const MutexLock lock(mutex_);
  std::erase_if(reasons_, [&](const auto& failed) {
    return std::find(resources.begin(), resources.end(), failed.first) == resources.end();
  });
}

std::vector<std::string> PluginFailures::Sentences() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> sentences;
  sentences.reserve(reasons_.size());
  for (const auto& [resource, reason] : reasons_) {
    sentences.push_back(fmt::format("plugin {} does not report {}: {}", resource, untold_, reason));
  }
  return sentences;
}

}  // namespace qrm::manager
