// What files of one cgroup say, line by line, and how they come to say something else.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace qrm::cgroup {

/// How lines of a file look.
enum class LineForm {
  kKeyed,  ///< "KEY VALUE", any number of lines; one line is written at a time
  kWhole,  ///< one value for the whole file, under kNoKey
};

/// The key of a value that has none.
inline constexpr char kNoKey[] = "";

/// One file that a type sets.
struct CgroupFile {
  std::string name;
  LineForm form = LineForm::kKeyed;
  /// What the line of a key says where nothing is set, as the kernel shows it; and what is written
  /// for that. Lines that say so are not told from lines that are not there.
  std::string neutral;
  std::string reset;
};

/// File -> key -> value, of what is set. Files of which nothing is set are not in it.
using CgroupTable = std::map<std::string, std::map<std::string, std::string>>;

/// The files of one cgroup. Production reads and writes a directory; tests check every step.
class CgroupFiles {
 public:
  virtual ~CgroupFiles() = default;

  /// Errors: kNotFound without the file, kUnavailable.
  [[nodiscard]] virtual StatusOr<std::string> Read(const std::string& file) const = 0;
  /// Errors: kNotFound without the file; kAborted for a device that is not there (ENODEV);
  /// kInvalidArgument for a value that the kernel refuses; kUnavailable.
  virtual Status Write(const std::string& file, const std::string& line) = 0;
  /// Whether the cgroup is there.
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

/// The lines of `text`, the content of `file`, that are set.
std::map<std::string, std::string> ParseLines(const CgroupFile& file, std::string_view text);

/// What `cgroup` has in `files`; a file that is not there has nothing set.
/// Errors: kNotFound when the cgroup is gone; kUnavailable.
StatusOr<CgroupTable> ReadTable(const CgroupFiles& cgroup, const std::vector<CgroupFile>& files);

/// Has `cgroup` say what `wanted` says in `files`, and nothing else: first every line that differs,
/// each in one write, then what is no longer set is reset, so that no limit is lifted before its
/// successor holds. A line about a device that is gone is left out.
/// Errors: kNotFound when the cgroup is gone; kFailedPrecondition when it lacks a file that is
/// wanted; the kernel's. What was written until then is undone as far as the kernel lets it.
Status WriteTable(CgroupFiles& cgroup, const std::vector<CgroupFile>& files,
                  const CgroupTable& wanted);

/// "FILE KEY VALUE; FILE KEY VALUE"; "nothing set" for an empty table.
std::string ToString(const CgroupTable& table);

}  // namespace qrm::cgroup
