// Log lines through spdlog: `2026-11-21T00:33:43.185Z I "event" key=value`, or one JSON object
// each.
#include "api/base/log.h"

#include <atomic>
#include <memory>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/log_settings.h"
#include "api/base/mutex.h"

namespace qrm::log {
namespace {

struct Sink {
  Mutex mutex;
  std::function<void(Level, const std::string&)> function QRM_GUARDED_BY(mutex);
};

Sink& CurrentSink() {
  static Sink* const sink = new Sink;  // never destroyed: threads may log while the process ends
  return *sink;
}

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %L %v";

void SetPattern(spdlog::logger& logger, const std::string& pattern) {
  logger.set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
}

spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    auto* created = new spdlog::logger("qrm", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    SetPattern(*created, kTextPattern);
    created->set_level(spdlog::level::info);
    created->flush_on(spdlog::level::info);
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}

/// A longer value is foreign data, not a message, and would fill the disk.
constexpr std::size_t kMostValueBytes = 4096;

std::string InQuotes(std::string_view value) {
  std::string quoted;
  quoted.reserve(value.size());
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
    }
    quoted += c;
  }
  return '"' + Escaped(quoted) + '"';
}

std::string ValueText(std::string_view value) {
  const std::string cut = Cut(value, kMostValueBytes);
  const bool plain =
      !cut.empty() && cut.find_first_of(" \"=\\") == std::string::npos && Escaped(cut) == cut;
  return plain ? cut : InQuotes(cut);
}

/// What stands as \xNN between quotes otherwise is \u00NN in JSON.
std::string InJson(std::string_view value) {
  std::string text = InQuotes(value);
  for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; at += 2) {
    if (text[at + 1] == 'x') {
      text.replace(at + 1, 1, "u00");
    }
  }
  return text;
}

std::atomic<Form>& CurrentForm() {
  static std::atomic<Form> form = Form::kText;
  return form;
}

/// The members of the object that come after time and level.
std::string FormatJson(std::string_view event, Fields fields) {
  std::string members = "\"event\":" + InJson(event);
  for (const Field& field : fields) {
    members += fmt::format(",{}:{}", InJson(field.key), InJson(Cut(field.value, kMostValueBytes)));
  }
  return members + "}";
}

std::string FormatText(std::string_view event, Fields fields) {
  std::string line = InQuotes(event);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    line += ValueText(field.value);
  }
  return line;
}

void Write(Level level, std::string_view event, Fields fields) {
  spdlog::logger& logger = Logger();
  if (!logger.should_log(ToSpdlog(level))) {
    return;
  }
  const std::string line =
      CurrentForm() == Form::kJson ? FormatJson(event, fields) : FormatText(event, fields);
  std::function<void(Level, const std::string&)> redirected;
  {
    Sink& sink = CurrentSink();
    const MutexLock lock(sink.mutex);
    redirected = sink.function;
  }
  if (redirected) {
    redirected(level, line);
  } else {
    logger.log(ToSpdlog(level), "{}", line);
  }
}

}  // namespace

void Debug(std::string_view event, Fields fields) {
  Write(Level::kDebug, event, fields);
}
void Info(std::string_view event, Fields fields) {
  Write(Level::kInfo, event, fields);
}
void Warning(std::string_view event, Fields fields) {
  Write(Level::kWarning, event, fields);
}
void Error(std::string_view event, Fields fields) {
  Write(Level::kError, event, fields);
}

void SetLevel(Level level) {
  Logger().set_level(ToSpdlog(level));
}

Level CurrentLevel() {
  switch (Logger().level()) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return Level::kDebug;
    case spdlog::level::info:
      return Level::kInfo;
    case spdlog::level::warn:
      return Level::kWarning;
    default:
      return Level::kError;
  }
}

std::string_view ToString(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      break;
  }
  return "error";
}

StatusOr<Level> ParseLevel(std::string_view text) {
  if (text == "debug") return Level::kDebug;
  if (text == "info") return Level::kInfo;
  if (text == "warning") return Level::kWarning;
  if (text == "error") return Level::kError;
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read log level \"{}\"; use debug, info, warning or error", text);
}

void SetForm(Form form) {
  SetPattern(Logger(), form == Form::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v)"
                                           : kTextPattern);
  CurrentForm() = form;
}

StatusOr<Form> ParseForm(std::string_view text) {
  if (text == "text") return Form::kText;
  if (text == "json") return Form::kJson;
  return Errorf(StatusCode::kInvalidArgument, "cannot read log form \"{}\"; use text or json",
                text);
}

void SetSink(std::function<void(Level, const std::string&)> sink) {
  Sink& current = CurrentSink();
  const MutexLock lock(current.mutex);
  current.function = std::move(sink);
}

}  // namespace qrm::log
