// Appends lines to a file, and begins another one when it is full.
#include "checkpoint/decision_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "api/base/file_descriptor.h"
#include "api/base/log.h"
#include "api/base/status.h"
#include "checkpoint/sqlite/sqlite_error.h"

namespace qrm::checkpoint {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::nanoseconds;
using std::chrono::system_clock;

/// What follows the head's members in a line. Not within one of them: quotes in a text are escaped.
constexpr std::string_view kDocument = ",\"decision\":";

/// While the disk takes nothing.
constexpr std::size_t kMostWaiting = 100;

std::string ToLine(const DecisionTrace& trace) {
  Json head = {{"unix_nanos", nanoseconds(trace.time.time_since_epoch()).count()},
               {"pod_uid", trace.key.pod_uid},
               {"namespace", trace.pod_namespace},
               {"name", trace.pod_name},
               {"container", trace.key.container},
               {"admitted", trace.admitted}};
  if (trace.commit.has_value()) {
    head["commit_nanos"] = trace.commit->count();
  }
  std::string line = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  line.pop_back();
  line += kDocument;
  line += trace.json.empty() ? "{}" : trace.json;
  line += "}\n";
  return line;
}

std::optional<DecisionTrace> FromLine(std::string_view line) {
  const std::size_t document = line.find(kDocument);
  if (document == std::string_view::npos || !line.ends_with("}")) {
    return std::nullopt;
  }
  const Json head =
      Json::parse(std::string(line.substr(0, document)) + "}", nullptr, /*allow_exceptions=*/false);
  if (!head.is_object()) {
    return std::nullopt;
  }
  try {
    const nanoseconds since_epoch(head.at("unix_nanos").get<int64_t>());
    DecisionTrace trace{.key = {head.at("pod_uid"), head.at("container")},
                        .pod_namespace = head.at("namespace"),
                        .pod_name = head.at("name"),
                        .time = system_clock::time_point(
                            std::chrono::duration_cast<system_clock::duration>(since_epoch)),
                        .admitted = head.at("admitted")};
    if (const auto commit = head.find("commit_nanos"); commit != head.end()) {
      trace.commit = nanoseconds(commit->get<int64_t>());
    }
    const std::size_t begin = document + kDocument.size();
    trace.json = line.substr(begin, line.size() - 1 - begin);
    return trace;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

/// It would spoil the next line.
void DropHalfLine(const std::string& path, std::size_t bytes) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (!failed && size >= bytes) {
    std::filesystem::resize_file(path, size - bytes, failed);
  }
}

void ReadFile(const std::string& path, std::vector<DecisionTrace>& traces) {
  std::ifstream file(path, std::ios::binary);
  std::size_t unreadable = 0;
  for (std::string line; std::getline(file, line);) {
    if (std::optional<DecisionTrace> trace = FromLine(line); trace.has_value()) {
      traces.push_back(*std::move(trace));
    } else {
      ++unreadable;
    }
  }
  if (unreadable > 0) {
    log::Warning("decisions left out",
                 {{"error", fmt::format("cannot read {} lines of {}: they are damaged; the others "
                                        "are told, move the file away to hear of it no more",
                                        unreadable, path)}});
  }
}

}  // namespace

DecisionLog::DecisionLog(const std::string& directory)
    : current_(Measure(directory + "/decisions.jsonl")),
      older_path_(directory + "/decisions.older.jsonl") {
  // What a power loss cut off must not swallow the next line.
  std::ifstream file(current_.path, std::ios::binary | std::ios::ate);
  if (current_.bytes > 0 && file.seekg(-1, std::ios::end) && file.get() != '\n') {
    TryAppend("\n").IgnoreError();  // the next line tells why
  }
}

DecisionLog::~DecisionLog() = default;

DecisionLog::File DecisionLog::Measure(std::string path) {
  std::ifstream file(path, std::ios::binary);
  File measured{.path = std::move(path)};
  std::array<char, std::size_t{64} << 10> part{};
  while (file.read(part.data(), part.size()) || file.gcount() > 0) {
    const auto end = part.begin() + file.gcount();
    measured.bytes += static_cast<std::size_t>(file.gcount());
    measured.lines += static_cast<std::size_t>(std::count(part.begin(), end, '\n'));
  }
  return measured;
}

void DecisionLog::Add(DecisionTrace trace, std::function<std::string()> compose) {
  thread_.Post([this, trace = std::move(trace), compose = std::move(compose)]() mutable {
    trace.json = compose();
    Write(ToLine(trace));
  });
}

std::vector<DecisionTrace> DecisionLog::Read() {
  std::vector<DecisionTrace> traces;
  thread_.Run([&] {
    ReadFile(older_path_, traces);
    ReadFile(current_.path, traces);
    for (std::string line : waiting_) {
      line.pop_back();
      if (std::optional<DecisionTrace> trace = FromLine(line); trace.has_value()) {
        traces.push_back(*std::move(trace));
      }
    }
  });
  if (traces.size() > kKept) {
    traces.erase(traces.begin(), traces.end() - static_cast<std::ptrdiff_t>(kKept));
  }
  return traces;
}

void DecisionLog::Write(std::string line) {
  waiting_.push_back(std::move(line));
  while (!waiting_.empty() && Append(waiting_.front())) {
    waiting_.pop_front();
  }
  if (waiting_.size() > kMostWaiting) {
    waiting_.pop_front();
  }
}

bool DecisionLog::Append(const std::string& line) {
  const bool full = current_.lines >= kKept || current_.bytes + line.size() > kMostBytes;
  const Status begun = full ? BeginNext() : OkStatus();
  const Status written = begun.ok() ? TryAppend(line) : begun;
  const std::string problem = MessageOf(written);
  std::string before;
  {
    const MutexLock lock(problem_mutex_);
    before = std::exchange(problem_, problem);
  }
  if (!problem.empty() && before.empty()) {
    log::Warning("decisions wait in memory, the latest only", {{"error", problem}});
  }
  return written.ok();
}

Status DecisionLog::BeginNext() {
  const bool renamed = ::rename(current_.path.c_str(), older_path_.c_str()) == 0;
  if (!renamed && errno != ENOENT) {
    return SystemError(errno, "rename", current_.path);
  }
  current_.lines = current_.bytes = 0;
  return OkStatus();
}

Status DecisionLog::TryAppend(const std::string& line) {
  const FileDescriptor file(
      ::open(current_.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) {
    return SystemError(errno, "write", current_.path);
  }
  const ssize_t written = ::write(file.get(), line.data(), line.size());
  const int error = written < 0 ? errno : ENOSPC;
  if (written != static_cast<ssize_t>(line.size())) {
    DropHalfLine(current_.path, static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    return SystemError(error, "write", current_.path);
  }
  current_.lines += static_cast<std::size_t>(std::count(line.begin(), line.end(), '\n'));
  current_.bytes += line.size();
  return OkStatus();
}

std::string DecisionLog::problem() const {
  const MutexLock lock(problem_mutex_);
  return problem_;
}

}  // namespace qrm::checkpoint
