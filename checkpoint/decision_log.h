// Keeps the reasons of admissions and rejections beside the state. No decision depends on it.
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

/// The latest decisions and other events, one JSON object a line. `decisions.jsonl` is folded into
/// `decisions.older.jsonl` when it is full: the admissions of pods on the node stay there however
/// old they are, and equal rejections of a container become one. The files survive the end of the
/// process. A power loss can take the latest seconds, on which nothing depends: lines are not
/// synced, so that they cost admissions nothing. Memory holds no decisions. A line that cannot be
/// read is left out, and logged. If something else has the name of a file at the start (a
/// directory, a link, a pipe, a file larger than kMostBytes), it is moved aside.
///
/// Threads: any; a thread of its own composes and writes.
class DecisionLog {
 public:
  /// The number of decisions that are kept, beside those of pods on the node, within kMostBytes;
  /// and as many other events.
  static constexpr std::size_t kKept = 1000;
  /// The number of decisions that wait for a disk that hangs; the oldest are dropped first.
  static constexpr std::size_t kMostQueued = kKept;
  /// Of each of the two files.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  /// In `directory`, which exists. A disk that rejects writes is logged once; the latest decisions
  /// then wait in memory. `is_on_node` is called on the log's thread; empty: no pod is.
  explicit DecisionLog(const std::string& directory, IsOnNode is_on_node = {});
  /// Writes what was added before.
  ~DecisionLog();
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  /// Keeps `trace` with what `compose` makes its `json`, after the caller has gone on. `compose`
  /// must not throw. It may never run: with kMostQueued before it, the oldest is forgotten.
  void Add(DecisionTrace trace, std::function<std::string()> compose);

  /// Keeps `event`, which is now. Its message is cut.
  void Note(const NodeEvent& event);

  /// The latest kKept and those of pods on the node, oldest first, with all that was added before,
  /// and the latest kKept other events.
  /// Cost: reads both files.
  std::vector<DecisionTrace> Read();

  /// How many were added since the start: Read returns the same while this is the same. Cheap.
  uint64_t added() const { return added_.load(std::memory_order_acquire); }

  /// Why the disk rejects the latest decisions; empty while it accepts them.
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
  std::vector<DecisionTrace> ReadFiles() const;
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
