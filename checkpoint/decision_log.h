// Keeps why containers run as they do, or were refused, beside the state: nothing is decided by it.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/base/task_thread.h"
#include "api/resource.h"

namespace qrm::checkpoint {

/// Why a container was admitted or rejected; `json` is the document behind `qrmctl explain`.
struct DecisionTrace {
  ContainerKey key;
  std::string pod_namespace;
  std::string pod_name;
  std::chrono::system_clock::time_point time;
  bool admitted = false;
  std::optional<std::chrono::nanoseconds> commit;  ///< how long its commit took
  std::string json;

  bool operator==(const DecisionTrace&) const = default;
};

/// The latest decisions: `decisions.jsonl`, one JSON object a line, and `decisions.older.jsonl`,
/// which it becomes when it is full. They survive the end of the process; of what a power loss
/// takes, the latest seconds, nothing depends on: no line is synced, so that none costs an
/// admission anything. Memory holds none of it. A line that cannot be read is left out, and the log
/// says so.
///
/// Threads: any; a thread of its own composes and writes.
class DecisionLog {
 public:
  /// So many, as long as they fit into kMostBytes.
  static constexpr std::size_t kKept = 1000;
  /// Of each of the two files.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  /// In `directory`, which is there. A disk that refuses is told of in the log once; the latest
  /// decisions wait in memory then.
  explicit DecisionLog(const std::string& directory);
  /// Writes what was added before.
  ~DecisionLog();
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  /// Keeps `trace` with what `compose` makes its `json`, after the caller has gone on. `compose`
  /// must not throw.
  void Add(DecisionTrace trace, std::function<std::string()> compose);

  /// The latest kKept, oldest first, with all that was added before. Cost: reads both files.
  std::vector<DecisionTrace> Read();

  /// Why the disk refuses the latest; empty while it takes them.
  std::string problem() const;

 private:
  struct File {
    std::string path;
    std::size_t lines = 0;
    std::size_t bytes = 0;
  };
  static File Measure(std::string path);
  void Write(std::string line);
  bool Append(const std::string& line);
  Status BeginNext();
  Status TryAppend(const std::string& line);

  // On the thread only.
  File current_;
  const std::string older_path_;
  std::deque<std::string> waiting_;  // for the disk

  mutable Mutex problem_mutex_;
  std::string problem_ QRM_GUARDED_BY(problem_mutex_);

  TaskThread thread_;  // ends first
};

}  // namespace qrm::checkpoint
