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

/// Sends formatted lines (without time stamp) to `sink` instead of standard error; an empty
/// function restores it. For tests.
void SetSink(std::function<void(Level, const std::string& line)> sink);

}  // namespace qrm::log
