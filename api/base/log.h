// Structured log lines: a literal event and fields, one line each on standard error.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "api/base/log_level.h"

namespace qrm::log {

/// One `key=value` of a log line; any value that fmt can format.
struct Field {
  template <typename T>
  Field(std::string_view field_key, const T& field_value)
      : key(field_key), value(fmt::format("{}", field_value)) {}

  std::string_view key;
  std::string value;
};

using Fields = std::initializer_list<Field>;

/// Debug is for single requests, Info for changes, Warning for what was worked around, Error for
/// what a person must act on. `event` is a literal that occurs once in the tree. Threads: any.
void Debug(std::string_view event, Fields fields = {});
void Info(std::string_view event, Fields fields = {});
void Warning(std::string_view event, Fields fields = {});
void Error(std::string_view event, Fields fields = {});

/// Lines below `level` are dropped; the default is kInfo.
void SetLevel(Level level);

/// Has lines name pods: where a field "pod" is a UID whose name `name_of` returns, the field
/// becomes that name, with the UID beside it. `name_of` returns nothing for other texts; it must
/// not log. An empty function restores UIDs. Threads: any, also of `name_of`.
void NamePods(std::function<std::string(const std::string& uid)> name_of);

/// Sends formatted lines (without time stamp) to `sink` instead of standard error; an empty
/// function restores it. For tests.
void SetSink(std::function<void(Level, const std::string& line)> sink);

}  // namespace qrm::log
