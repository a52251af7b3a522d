// Separates plugins that can report only their changes from plugins that cannot.
#include "manager/reconcile/change_questions.h"

#include <utility>

#include "manager/registry/plugins.h"

namespace qrm::manager {
namespace {

ChangedAnswers Sorted(ByPlugin<sdk::ChangedAllocations> answers, std::vector<std::string> mute) {
  ChangedAnswers sorted{.changed = {}, .now = {}, .mute = std::move(mute)};
  for (auto& [plugin, answer] : answers) {
    if (answer.ok()) {
      sorted.now.emplace(plugin, std::move(answer->now));
      sorted.changed.emplace(plugin, calls::ToHeld(answer->changed));
    } else if (answer.status().code() == StatusCode::kUnimplemented) {
      sorted.mute.push_back(plugin);
    } else {
      sorted.changed.emplace(plugin, answer.status());
    }
  }
  return sorted;
}

}  // namespace

std::set<ContainerKey> ContainersIn(const ChangedAnswers& answers) {
  std::set<ContainerKey> keys;
  for (const auto& [plugin, answer] : answers.changed) {
    if (answer.ok()) {
      for (const calls::HeldAllocation& one : **answer) {
        keys.insert(one.key);
      }
    }
  }
  return keys;
}

void ChangeQuestions::Ask(Deadline deadline, std::function<void(ChangedAnswers)> done) {
  std::vector<std::string> mute;
  const auto is_meant = [&](const PluginInfo& plugin) {
    if (plugin.options.need_reconcile && mute_.contains(plugin.resource)) {
      mute.push_back(plugin.resource);
      return false;
    }
    return plugin.options.need_reconcile;
  };
  const std::vector<std::string> asked = plugins_.Live(is_meant);
  plugins_.AskEach<calls::GetChangedAllocations>(
      asked,
      [this](const std::string& plugin) {
        const auto known = known_.find(plugin);
        return known == known_.end() ? std::string() : known->second;
      },
      deadline,
      [mute = std::move(mute),
       done = std::move(done)](ByPlugin<sdk::ChangedAllocations> answers) mutable {
        done(Sorted(std::move(answers), std::move(mute)));
      });
}

void ChangeQuestions::Know(const ChangedAnswers& answers) {
  for (const auto& [plugin, now] : answers.now) {
    known_.insert_or_assign(plugin, now);
  }
  mute_.insert(answers.mute.begin(), answers.mute.end());
}

}  // namespace qrm::manager
