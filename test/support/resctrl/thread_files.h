// The part of /proc in which threads show their resctrl groups.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/support/resctrl/resctrl_model.h"

namespace qrm::test {

/// /proc as far as resctrl uses it: THREAD/cpu_resctrl_groups of living threads, and `mounts`.
class ThreadFiles final : public FileTree {
 public:
  /// `threads` outlives it.
  ThreadFiles(ThreadGroups& threads, std::string mounts)
      : threads_(threads), mounts_(std::move(mounts)) {}

  Kind Find(const std::string& path) override;
  std::vector<std::string> List(const std::string& directory) override;
  FileResult Read(const std::string& path) override;
  int Write(const std::string& path, std::string_view text) override;
  int MakeDirectory(const std::string& path) override;
  int RemoveDirectory(const std::string& path) override;

 private:
  ThreadGroups& threads_;
  std::string mounts_;
};

}  // namespace qrm::test
