// Asks plugins only for what they changed.
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

/// What plugins changed since the answers that were dealt with.
struct ChangedAnswers {
  AllocationsByPlugin changed;
  std::map<std::string, std::string> now;  ///< for Know, by plugin
  std::vector<std::string> mute;           ///< plugins that have to be asked for everything
};

/// Those that are named.
std::set<ContainerKey> ContainersIn(const ChangedAnswers& answers);

/// Keeps what of each plugin's answers was dealt with.
///
/// Threads: the I/O loop.
class ChangeQuestions {
 public:
  /// `plugins` outlives the object.
  explicit ChangeQuestions(Plugins& plugins) : plugins_(plugins) {}

  /// Asks all live plugins that take part in reconcile. `done` runs once, on the thread that brings
  /// the last answer: it must only post. The object outlives it.
  void Ask(Deadline deadline, std::function<void(ChangedAnswers)> done);

  /// `answers` were dealt with, and need not be given again.
  void Know(const ChangedAnswers& answers);

  /// Whoever was mute is asked again: another plugin may have its place.
  void AskAnew() { mute_.clear(); }

 private:
  Plugins& plugins_;
  std::map<std::string, std::string> known_;  ///< `now` of the latest answer, by plugin
  std::set<std::string> mute_;
};

}  // namespace qrm::manager
