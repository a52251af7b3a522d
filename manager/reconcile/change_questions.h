// Asks plugins only for the allocations that they changed.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/resource.h"
#include "manager/registry/plugins.h"

namespace qrm::manager {

/// The allocations that plugins changed since the answers that were processed last.
struct ChangedAnswers {
  AllocationsByPlugin changed;
  std::map<std::string, std::string> now;  ///< for Know, by plugin
  std::vector<std::string> mute;           ///< plugins that must be asked for everything
};

/// The containers that `answers` name.
std::set<ContainerKey> ContainersIn(const ChangedAnswers& answers);

/// Remembers which of each plugin's answers was processed last.
///
/// Threads: the I/O loop.
class ChangeQuestions {
 public:
  /// `plugins` outlives the object.
  explicit ChangeQuestions(Plugins& plugins) : plugins_(plugins) {}

  /// Asks all live plugins that take part in reconcile. `done` runs once, on the thread that brings
  /// the last answer: it must only post. The object outlives it.
  void Ask(Deadline deadline, std::function<void(ChangedAnswers)> done);

  /// `answers` were processed: plugins need not report these changes again.
  void Know(const ChangedAnswers& answers);

  /// Asks mute plugins for changes again: another plugin may serve the resource now.
  void AskAnew() { mute_.clear(); }

 private:
  Plugins& plugins_;
  std::map<std::string, std::string> known_;  ///< `now` of the latest answer, by plugin
  std::set<std::string> mute_;
};

}  // namespace qrm::manager
