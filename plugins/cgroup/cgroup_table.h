// Reads and changes the files of one cgroup, line by line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace qrm::cgroup {

/// The form of a file's lines.
enum class LineForm {
  kKeyed,  ///< "KEY VALUE", any number of lines; one line is written at a time
  kWhole,  ///< one value for the whole file, under kNoKey
};

/// The key of a value without a key.
inline constexpr char kNoKey[] = "";

/// One file that a type sets.
struct CgroupFile {
  std::string name;
  LineForm form = LineForm::kKeyed;
  /// The value that the kernel shows if nothing is set, and the value to write to reset it. A line
  /// with the neutral value counts as not set.
  std::string neutral;
  std::string reset;
};

/// File -> key -> value, of all set values. Files without set values are not in it.
using CgroupTable = std::map<std::string, std::map<std::string, std::string>>;

/// The files of one cgroup. In production a directory; tests use another implementation.
class CgroupFiles {
 public:
  virtual ~CgroupFiles() = default;

  /// Errors: kNotFound without the file, kUnavailable.
  [[nodiscard]] virtual StatusOr<std::string> Read(const std::string& file) const = 0;
  /// Errors: kNotFound without the file; kAborted for a missing device (ENODEV); kInvalidArgument
  /// for a value that the kernel rejects; kUnavailable.
  virtual Status Write(const std::string& file, const std::string& line) = 0;
  /// Whether the cgroup exists.
  [[nodiscard]] virtual bool Exists() const = 0;
};

/// A directory of a cgroup hierarchy.
class CgroupDirectory final : public CgroupFiles {
 public:
  explicit CgroupDirectory(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] StatusOr<std::string> Read(const std::string& file) const override;
  Status Write(const std::string& file, const std::string& line) override;
  [[nodiscard]] bool Exists() const override;

 private:
  const std::string path_;
};

/// The set lines in `text`, the content of `file`.
std::map<std::string, std::string> ParseLines(const CgroupFile& file, std::string_view text);

/// The set values of `cgroup` in `files`; a missing file has none. Errors: kNotFound when the
/// cgroup is gone; kUnavailable.
StatusOr<CgroupTable> ReadTable(const CgroupFiles& cgroup, const std::vector<CgroupFile>& files);

/// Makes `files` of `cgroup` equal to `wanted`. First writes every line that differs, each in one
/// write, then resets lines that are no longer set, so that no limit is lifted before the new one
/// applies. A line about a missing device is skipped. Errors: kNotFound when the cgroup is gone;
/// kFailedPrecondition when it lacks a wanted file; the kernel's. Earlier writes are undone as far
/// as the kernel permits.
Status WriteTable(CgroupFiles& cgroup, const std::vector<CgroupFile>& files,
                  const CgroupTable& wanted);

/// "FILE KEY VALUE; FILE KEY VALUE"; "nothing set" for an empty table.
std::string ToString(const CgroupTable& table);

}  // namespace qrm::cgroup
