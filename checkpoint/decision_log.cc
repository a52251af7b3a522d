// Appends lines to a file, which is folded into another one when it is full.
#include "checkpoint/decision_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/file_descriptor.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "api/base/status.h"
#include "checkpoint/sqlite/durable_file.h"
#include "checkpoint/sqlite/sqlite_error.h"

namespace qrm::checkpoint {
namespace {

/// Of an event.
constexpr std::size_t kMostMessageBytes = 1000;

/// While the disk takes nothing.
constexpr std::size_t kMostWaiting = 100;

/// It would spoil the next line.
void DropHalfLine(const std::string& path, std::size_t bytes) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (!failed && size >= bytes) {
    std::filesystem::resize_file(path, size - bytes, failed);
  }
}

/// Why what is at `path` cannot be a file of decisions; null when it can, or nothing is there.
const char* WhyForeign(const std::string& path) {
  std::error_code ignored;
  switch (std::filesystem::symlink_status(path, ignored).type()) {
    case std::filesystem::file_type::regular:
      return std::filesystem::file_size(path, ignored) <= DecisionLog::kMostBytes
                 ? nullptr
                 : "it is larger than qrmd lets it grow";
    case std::filesystem::file_type::directory:
      return "it is a directory";
    case std::filesystem::file_type::symlink:
      return "it is a link";
    case std::filesystem::file_type::not_found:
      return nullptr;
    default:
      return "it is not a file";
  }
}

/// `path`, where nothing is left that qrmd did not write: reading it could end never.
std::string WithoutForeign(std::string path) {
  const char* const why = WhyForeign(path);
  if (why == nullptr) {
    return path;
  }
  if (const StatusOr<std::string> aside = MoveAside(path); aside.ok()) {
    log::Warning("history of decisions moved aside",
                 {{"error", fmt::format("cannot read decisions from {}: {}; see who put it there, "
                                        "and remove {}",
                                        path, why, *aside)}});
  } else {
    log::Warning("history of decisions not read",
                 {{"error", fmt::format("cannot read decisions from {}: {}; remove it", path, why)},
                  {"cause", MessageOf(aside.status())}});
  }
  return path;
}

/// Not open when there is none.
std::ifstream OpenHistory(const std::string& path, std::ios::openmode mode = std::ios::in) {
  return WhyForeign(path) == nullptr ? std::ifstream(path, mode | std::ios::binary)
                                     : std::ifstream();
}

std::vector<DecisionTrace> ReadFile(const std::string& path) {
  std::vector<DecisionTrace> traces;
  std::ifstream file = OpenHistory(path);
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
                 {{"error", fmt::format("cannot read {} lines of {}: they are damaged; the other "
                                        "lines are shown; move the file away to end this warning",
                                        unreadable, path)}});
  }
  return traces;
}

Status ReplaceFile(const std::string& path, const std::vector<DecisionTrace>& traces) {
  const std::string next = path + ".new";
  ::unlink(next.c_str());
  const FileDescriptor file(
      ::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) {
    return SystemError(errno, "write", next);
  }
  for (const DecisionTrace& trace : traces) {
    const std::string line = ToLine(trace);
    const ssize_t written = ::write(file.get(), line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size())) {
      const int error = written < 0 ? errno : ENOSPC;
      ::unlink(next.c_str());
      return SystemError(error, "write", next);
    }
  }
  if (::rename(next.c_str(), path.c_str()) != 0) {
    return SystemError(errno, "rename", next);
  }
  return OkStatus();
}

}  // namespace

DecisionLog::DecisionLog(const std::string& directory, IsOnNode is_on_node)
    : is_on_node_(std::move(is_on_node)),
      current_(Measure(WithoutForeign(directory + "/decisions.jsonl"))),
      older_path_(WithoutForeign(directory + "/decisions.older.jsonl")) {
  // What a power loss cut off must not swallow the next line.
  std::ifstream file = OpenHistory(current_.path, std::ios::ate);
  if (current_.bytes > 0 && file.seekg(-1, std::ios::end) && file.get() != '\n') {
    TryAppend("\n").IgnoreError();  // the next line reports the error
  }
}

DecisionLog::~DecisionLog() = default;

DecisionLog::File DecisionLog::Measure(std::string path) {
  std::ifstream file = OpenHistory(path);
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
  Queued forgotten;
  std::string problem;
  {
    const MutexLock lock(mutex_);
    queue_.push_back({std::move(trace), std::move(compose)});
    if (queue_.size() <= kMostQueued) {
      thread_.Post([this] { WriteNext(); });
    } else {
      forgotten = std::exchange(queue_.front(), {});
      queue_.erase(queue_.begin());
      if (problem_.empty()) {
        problem = problem_ = fmt::format(
            "cannot write {}: the disk has not answered while {} decisions came; see "
            "what delays it",
            current_.path, kMostQueued);
      }
    }
  }
  added_.fetch_add(1, std::memory_order_release);
  if (!problem.empty()) {
    log::Warning("decisions forgotten, the latest wait in memory", {{"error", problem}});
  }
}

void DecisionLog::Note(const NodeEvent& event) {
  Add({.key = event.key,
       .pod_namespace = event.pod_namespace,
       .pod_name = event.pod_name,
       .time = std::chrono::system_clock::now(),
       .type = std::string(event.type)},
      [message = Cut(event.message, kMostMessageBytes), by = event.by] {
        return nlohmann::json{{"message", message}, {"by", by}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace);
      });
}

void DecisionLog::WriteNext() {
  Queued next;
  {
    const MutexLock lock(mutex_);
    next = std::exchange(queue_.front(), {});
    queue_.erase(queue_.begin());
  }
  next.trace.json = next.compose();
  Write(ToLine(next.trace));
}

std::vector<DecisionTrace> DecisionLog::Read() {
  std::vector<DecisionTrace> traces;
  thread_.Run([&] {
    traces = ReadFiles();
    for (std::string line : waiting_) {
      line.pop_back();
      if (std::optional<DecisionTrace> trace = FromLine(line); trace.has_value()) {
        traces.push_back(*std::move(trace));
      }
    }
  });
  return Latest(std::move(traces), is_on_node_, {.traces = kKept, .bytes = 2 * kMostBytes});
}

// A process that ended between the two steps of a fold left the same traces in both files.
std::vector<DecisionTrace> DecisionLog::ReadFiles() const {
  std::vector<DecisionTrace> traces = ReadFile(older_path_);
  std::set<std::pair<ContainerKey, std::chrono::system_clock::time_point>> folded;
  for (const DecisionTrace& trace : traces) {
    folded.emplace(trace.key, trace.time);
  }
  for (DecisionTrace& trace : ReadFile(current_.path)) {
    if (!folded.contains({trace.key, trace.time})) {
      traces.push_back(std::move(trace));
    }
  }
  return traces;
}

void DecisionLog::Write(std::string line) {
  waiting_.push_back(std::move(line));
  while (!waiting_.empty() && Append(waiting_.front())) {
    waiting_.erase(waiting_.begin());
  }
  if (waiting_.size() > kMostWaiting) {
    waiting_.erase(waiting_.begin());
  }
}

bool DecisionLog::Append(const std::string& line) {
  const bool full = current_.lines >= kKept || current_.bytes + line.size() > kMostBytes;
  const Status begun = full ? FoldIntoOlder() : OkStatus();
  const Status written = begun.ok() ? TryAppend(line) : begun;
  const std::string problem = MessageOf(written);
  std::string before;
  {
    const MutexLock lock(mutex_);
    before = std::exchange(problem_, problem);
  }
  if (!problem.empty() && before.empty()) {
    log::Warning("decisions wait in memory, the latest only", {{"error", problem}});
  }
  return written.ok();
}

Status DecisionLog::FoldIntoOlder() {
  const std::vector<DecisionTrace> traces =
      Latest(Folded(ReadFiles()), is_on_node_, {.traces = kKept, .bytes = kMostBytes});
  QRM_RETURN_IF_ERROR(ReplaceFile(older_path_, traces));
  if (::unlink(current_.path.c_str()) != 0 && errno != ENOENT) {
    return SystemError(errno, "remove", current_.path);
  }
  current_.lines = current_.bytes = 0;
  return OkStatus();
}

Status DecisionLog::TryAppend(const std::string& line) {
  const FileDescriptor file(
      ::open(current_.path.c_str(),
             O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
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
  const MutexLock lock(mutex_);
  return problem_;
}

}  // namespace qrm::checkpoint
