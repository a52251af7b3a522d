// The current status of one plugin.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "api/resource.h"

namespace qrm::manager {

/// How qrmd learned of a plugin.
enum class RegisteredBy { kBuiltIn, kRegister, kWatcher, kCheckpoint };

/// "built-in", "register", "watcher", "checkpoint".
constexpr std::string_view ToString(RegisteredBy by) {
  switch (by) {
    case RegisteredBy::kBuiltIn:
      return "built-in";
    case RegisteredBy::kRegister:
      return "register";
    case RegisteredBy::kWatcher:
      return "watcher";
    case RegisteredBy::kCheckpoint:
      break;
  }
  return "checkpoint";
}

/// The identity, options and status of one plugin.
struct PluginInfo {
  std::string resource;
  std::string endpoint;  ///< socket path, or "built-in"
  RegisteredBy registered_by = RegisteredBy::kBuiltIn;
  PluginOptions options;
  bool live = false;
  /// Why it is not live, or why it is suspect: one sentence with its remedy; empty: no problem.
  std::string problem;
  std::chrono::steady_clock::time_point registered_at;
};

}  // namespace qrm::manager
