// Log lines on stderr: `2026-11-21T00:33:43.185Z I "event" key=value`, or one JSON object each.
#include "api/base/log.h"

#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/log_settings.h"
#include "api/base/mutex.h"

namespace qrm::log {
namespace {

struct Sink {
  Mutex mutex;
  std::function<void(Level, const std::string&)> function QRM_GUARDED_BY(mutex);
  std::function<std::string(const std::string&)> name_of QRM_GUARDED_BY(mutex);
};

Sink& CurrentSink() {
  static Sink* const sink = new Sink;  // never destroyed: threads may log while the process ends
  return *sink;
}

std::atomic<Level>& LeastLevel() {
  static std::atomic<Level> level = Level::kInfo;
  return level;
}

/// "2026-11-21T00:33:43.185Z".
std::string TimeText(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     std::chrono::floor<std::chrono::milliseconds>(time - seconds).count());
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

/// `fields` with the names of pods beside their UIDs.
std::vector<Field> Named(Fields fields) {
  std::function<std::string(const std::string&)> name_of;
  {
    Sink& sink = CurrentSink();
    const MutexLock lock(sink.mutex);
    name_of = sink.name_of;
  }
  std::vector<Field> named;
  for (const Field& field : fields) {
    const bool is_pod = field.key == "pod" && name_of;
    if (const std::string name = is_pod ? name_of(field.value) : ""; !name.empty()) {
      named.emplace_back("pod", name);
      named.emplace_back("uid", field.value);
    } else {
      named.push_back(field);
    }
  }
  return named;
}

std::atomic<Form>& CurrentForm() {
  static std::atomic<Form> form = Form::kText;
  return form;
}

/// The members of the object that come after time and level.
std::string FormatJson(std::string_view event, const std::vector<Field>& fields) {
  std::string members = "\"event\":" + InJson(event);
  for (const Field& field : fields) {
    members += fmt::format(",{}:{}", InJson(field.key), InJson(Cut(field.value, kMostValueBytes)));
  }
  return members + "}";
}

std::string FormatText(std::string_view event, const std::vector<Field>& fields) {
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
  if (level < LeastLevel()) {
    return;
  }
  const bool is_json = CurrentForm() == Form::kJson;
  const std::vector<Field> named = Named(fields);
  const std::string line = is_json ? FormatJson(event, named) : FormatText(event, named);
  std::function<void(Level, const std::string&)> redirected;
  {
    Sink& sink = CurrentSink();
    const MutexLock lock(sink.mutex);
    redirected = sink.function;
  }
  if (redirected) {
    redirected(level, line);
    return;
  }
  const std::string time = TimeText(std::chrono::system_clock::now());
  const std::string_view name = ToString(level);
  const std::string whole =
      is_json
          ? fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",{}\n", time, name, line)
          : fmt::format("{} {} {}\n", time, static_cast<char>(std::toupper(name.front())), line);
  std::fwrite(whole.data(), 1, whole.size(), stderr);  // unbuffered: one write, so one whole line
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
  LeastLevel() = level;
}

Level CurrentLevel() {
  return LeastLevel();
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
  CurrentForm() = form;
}

StatusOr<Form> ParseForm(std::string_view text) {
  if (text == "text") return Form::kText;
  if (text == "json") return Form::kJson;
  return Errorf(StatusCode::kInvalidArgument, "cannot read log form \"{}\"; use text or json",
                text);
}

void NamePods(std::function<std::string(const std::string& uid)> name_of) {
  Sink& current = CurrentSink();
  const MutexLock lock(current.mutex);
  current.name_of = std::move(name_of);
}

void SetSink(std::function<void(Level, const std::string&)> sink) {
  Sink& current = CurrentSink();
  const MutexLock lock(current.mutex);
  current.function = std::move(sink);
}

}  // namespace qrm::log
