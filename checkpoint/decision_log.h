// Keeps why containers run as they do, or were refused, beside the state: nothing is decided by it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/base/task_thread.h"
#include "checkpoint/decision_trace.h"

namespace qrm::checkpoint {

/// The latest decisions: `decisions.jsonl`, one JSON object a line, and `decisions.older.jsonl`,
/// into which it is folded when it is full: why the containers of pods on the node were admitted
/// stays there however old it is, and equal refusals of a container are one. They survive the end
/// of the process; of what a power loss takes, the latest seconds, nothing depends on: no line is
/// synced, so that none costs an admission anything. Memory holds none of it. A line that cannot be
/// read is left out, and the log says so. What is in a file's place at the start and is no file of
/// decisions (a directory, a link, a pipe, a file larger than kMostBytes) is moved aside.
///
/// Threads: any; a thread of its own composes and writes.
class DecisionLog {
 public:
  /// So many, beside those of pods on the node, as long as they fit into kMostBytes.
  static constexpr std::size_t kKept = 1000;
  /// So many wait for a disk that hangs; the latest, as of all that is kept.
  static constexpr std::size_t kMostQueued = kKept;
  /// Of each of the two files.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  /// In `directory`, which is there. A disk that refuses is told of in the log once; the latest
  /// decisions wait in memory then. `is_on_node` is called on the log's thread; empty: no pod is.
  explicit DecisionLog(const std::string& directory, IsOnNode is_on_node = {});
  /// Writes what was added before.
  ~DecisionLog();
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  /// Keeps `trace` with what `compose` makes its `json`, after the caller has gone on. `compose`
  /// must not throw. It may never run: with kMostQueued before it, the oldest is forgotten.
  void Add(DecisionTrace trace, std::function<std::string()> compose);

  /// The latest kKept and those of pods on the node, oldest first, with all that was added before.
  /// Cost: reads both files.
  std::vector<DecisionTrace> Read();

  /// How many were added since the start: what Read tells is as it was while this stays. Cheap.
  uint64_t added() const { return added_.load(std::memory_order_acquire); }

  /// Why the disk refuses the latest; empty while it takes them.
  std::string problem() const;

 private:
  struct File {
    std::string path;
    std::size_t lines = 0;
    std::size_t bytes = 0;
  };
  struct Queued {
    DecisionTrace trace;
    std::function<std::string()> compose;
  };
  static File Measure(std::string path);
  bool IsFolded() const;
  void WriteNext();
  void Write(std::string line);
  bool Append(const std::string& line);
  Status FoldIntoOlder();
  Status TryAppend(const std::string& line);

  // On the thread only.
  const IsOnNode is_on_node_;
  File current_;
  const std::string older_path_;
  std::vector<std::string> waiting_;  // for the disk

  std::atomic<uint64_t> added_ = 0;

  mutable Mutex mutex_;
  std::vector<Queued> queue_ QRM_GUARDED_BY(mutex_);  // a task of the thread waits for each
  std::string problem_ QRM_GUARDED_BY(mutex_);

  TaskThread thread_;  // ends first
};

}  // namespace qrm::checkpoint
