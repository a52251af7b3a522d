// resctrl without the hardware: what the kernel's file system keeps, allows and rejects.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/mutex.h"
#include "test/support/resctrl/thread_groups.h"

namespace qrm::test {

/// A result of a file operation: an errno, or 0 and, where something is read, its text.
struct FileResult {
  int error = 0;
  std::string text;
};

/// A tree of directories and files by their paths: "" is the root, "a/b" a path in it.
class FileTree {
 public:
  enum class Kind { kNone, kDirectory, kFile };
  virtual ~FileTree() = default;
  virtual Kind Find(const std::string& path) = 0;
  virtual std::vector<std::string> List(const std::string& directory) = 0;
  virtual FileResult Read(const std::string& path) = 0;
  virtual int Write(const std::string& path, std::string_view text) = 0;
  virtual int MakeDirectory(const std::string& path) = 0;
  virtual int RemoveDirectory(const std::string& path) = 0;
};

/// A machine with resctrl.
struct ResctrlMachine {
  uint64_t l3_mask = 0xfffff;
  int least_bits = 1;
  int closids = 8;
  int rmids = 32;
  std::vector<int> cache_ids = {0, 1, 8};  ///< with a gap, as some machines have
  bool code_and_data = false;              ///< mounted with cdp, which halves the CLOSIDs
  uint64_t least_bandwidth = 10;
  uint64_t bandwidth_granularity = 10;
  bool bandwidth_in_mbps = false;  ///< mounted with mba_MBps
};

/// The state behind the double: control groups and monitoring groups with their schemata, a bounded
/// number of ids, the status of the last command, and one group for each thread of this machine. It
/// parses all before it applies anything, rejects with the kernel's errno and words, and gives new
/// groups all that no group has exclusively.
///
/// Threads: any.
/// Source: Linux Documentation/filesystems/resctrl.rst, fs/resctrl/{rdtgroup,ctrlmondata}.c.
class ResctrlModel final : public FileTree {
 public:
  explicit ResctrlModel(ResctrlMachine machine);

  Kind Find(const std::string& path) override;
  std::vector<std::string> List(const std::string& directory) override;
  FileResult Read(const std::string& path) override;
  int Write(const std::string& path, std::string_view text) override;
  int MakeDirectory(const std::string& path) override;
  int RemoveDirectory(const std::string& path) override;

  /// The state after an unmount: no groups, all masks whole, all threads in the root group.
  void Reset();
  /// Called before each command that changes something, with its path, on the file system's thread:
  /// here others can come between two calls. It may call this object.
  void SetBefore(std::function<void(const std::string& path)> before);
  /// What the counters of control group `group` show from now on, for each L3.
  void SetCounter(const std::string& group, const std::string& event, const std::string& text);
  ThreadGroups& threads() { return threads_; }

 private:
  using Values = std::map<std::string, std::map<int, uint64_t>>;
  struct Group {
    Values schemata;
    std::string mode = "shareable";
    std::set<std::string> monitors;
    std::map<std::string, std::string> counters;  ///< event -> text
  };
  /// A path, taken apart: control group, monitoring group, and what is left.
  struct Where {
    std::string group;
    std::string monitor;
    std::string rest;
    bool exists = false;
  };

  Where Locate(const std::string& path) const QRM_REQUIRES(mutex_);
  std::map<std::string, std::string> InfoFiles() const QRM_REQUIRES(mutex_);
  std::set<std::string> FilesOf(const Where& where) const QRM_REQUIRES(mutex_);
  std::string SchemataText(const Group& group) const QRM_REQUIRES(mutex_);
  Values FullSchemata() const QRM_REQUIRES(mutex_);
  int WriteSchemata(const std::string& name, std::string_view text) QRM_REQUIRES(mutex_);
  int StageLine(const std::string& name, std::string_view line, Values& staged)
      QRM_REQUIRES(mutex_);
  int CheckValue(const std::string& resource, std::string_view text, uint64_t& value)
      QRM_REQUIRES(mutex_);
  int CheckOverlap(const std::string& name, const std::string& resource, int id, uint64_t mask)
      QRM_REQUIRES(mutex_);
  int WriteMode(const std::string& name, std::string_view text) QRM_REQUIRES(mutex_);
  int WriteTasks(const Where& where, std::string_view text) QRM_REQUIRES(mutex_);
  int MoveThread(const Where& where, std::string_view text) QRM_REQUIRES(mutex_);
  int Fail(int error, std::string text) QRM_REQUIRES(mutex_);
  std::size_t UsedRmids() const QRM_REQUIRES(mutex_);
  int Closids() const { return machine_.closids / (machine_.code_and_data ? 2 : 1); }
  std::vector<std::string> Caches() const;
  void Announce(const std::string& path) QRM_EXCLUDES(mutex_);

  const ResctrlMachine machine_;
  ThreadGroups threads_;
  Mutex mutex_;
  std::map<std::string, Group> groups_ QRM_GUARDED_BY(mutex_);  ///< the root group is ""
  std::string status_ QRM_GUARDED_BY(mutex_) = "ok";
  std::function<void(const std::string&)> before_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
