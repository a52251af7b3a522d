// A class type whose classes the operator defines in a file: reads the file, follows its changes,
// and keeps what each class means on this machine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "api/base/changed_file.h"
#include "api/base/mutex.h"
#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::kernel {

/// Reads `classes: {NAME: {...}}`, each class by `read`. Errors: kInvalidArgument with file, line
/// and key for an invalid name, and for any other key; those of `read`.
template <typename Class>
StatusOr<std::map<std::string, Class>> ParseClasses(
    const config::Section& file,
    const std::function<StatusOr<Class>(const config::Section&)>& read) {
  QRM_RETURN_IF_ERROR(file.AllowKeys({"classes"}));
  QRM_ASSIGN_OR_RETURN(const auto sections, file.Children("classes"));
  std::map<std::string, Class> classes;
  for (const auto& [name, section] : sections) {
    if (!sdk::IsClassName(name)) {
      return file.Error("classes", "has '" + name + "', which is not a class name",
                        sdk::kClassNameForm);
    }
    QRM_ASSIGN_OR_RETURN(classes[name], read(section));
  }
  return classes;
}

/// What a class means on this machine.
template <typename Setting>
struct Meaning {
  Setting setting;
  std::string definition;
  std::string problem;          ///< why it is not possible here; empty: none
  std::set<std::string> files;  ///< as of ClassInfo
};

/// Such a type; a subclass reads the file's section, resolves each class, and sets the result.
/// Threads: Find, List and Resolve by any; the others as ClassProvider.
template <typename Class, typename Setting>
class FileClasses : public sdk::ClassProvider {
 public:
  using Classes = std::map<std::string, Class>;
  using Meanings = std::map<std::string, Meaning<Setting>>;

  /// Reads the file for the first time. Errors: kInvalidArgument for a file that cannot be read or
  /// has an error.
  Status Open() {
    QRM_RETURN_IF_ERROR(ReadAgain({}));
    return Refresh({});
  }

  [[nodiscard]] sdk::ClassType List() const final {
    sdk::ClassType type = type_;
    const MutexLock guard(mutex_);
    for (const auto& [name, meaning] : meanings_) {
      if (!name.empty()) {
        type.classes.push_back({.name = name,
                                .definition = meaning.definition,
                                .problem = meaning.problem,
                                .files = meaning.files});
      }
    }
    return type;
  }

  Status Refresh(const std::set<std::string>& in_use) final {
    const Status reread = FileVersion(path_) != version_ ? ReadAgain(in_use) : OkStatus();
    Meanings meanings = ResolveAll(classes_);
    const MutexLock guard(mutex_);
    meanings_ = std::move(meanings);
    return reread;
  }

 protected:
  FileClasses(sdk::ClassType type, std::string path)
      : type_(std::move(type)), path_(std::move(path)) {}

  virtual StatusOr<Classes> Parse(const config::Section& file) const = 0;
  /// The classes if no file is named; none: a file is required.
  virtual Classes WithoutFile() const { return {}; }
  /// The meaning of each class now; the class "" is that of containers without one.
  virtual Meanings ResolveAll(const Classes& classes) = 0;

  [[nodiscard]] bool Has(const std::string& name) const {
    const MutexLock guard(mutex_);
    return meanings_.contains(name);
  }
  /// Errors: kFailedPrecondition with the reason.
  [[nodiscard]] StatusOr<Setting> Find(const std::string& name) const {
    const MutexLock guard(mutex_);
    const auto found = meanings_.find(name);
    if (found == meanings_.end()) {
      return Status(StatusCode::kFailedPrecondition,
                    "there is no " + type_.name + " class " + name + "; add it to " + path_);
    }
    if (!found->second.problem.empty()) {
      return Status(StatusCode::kFailedPrecondition, found->second.problem);
    }
    return found->second.setting;
  }

 private:
  Status ReadAgain(const std::set<std::string>& in_use) {
    if (path_.empty() && !WithoutFile().empty()) {
      classes_ = WithoutFile();
      return OkStatus();
    }
    if (path_.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    "config-file is not set; name the file that defines the classes");
    }
    std::string version = FileVersion(path_);
    QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Load(path_));
    QRM_ASSIGN_OR_RETURN(Classes classes, Parse(section));
    for (const std::string& name : in_use) {
      if (!classes.contains(name)) {
        return Status(StatusCode::kFailedPrecondition,
                      "cannot take over " + path_ + ": it lacks class " + name +
                          ", which is in use; give its users another class with qrmctl class set "
                          "first");
      }
    }
    classes_ = std::move(classes);
    version_ = std::move(version);
    return OkStatus();
  }

  const sdk::ClassType type_;  // without classes
  const std::string path_;
  std::string version_;  // this and the next one: only on the provider's thread
  Classes classes_;      // from the last valid file
  mutable Mutex mutex_;
  Meanings meanings_ QRM_GUARDED_BY(mutex_);
};

/// Creates a provider of such a type. Errors: as Open's.
template <typename Provider, typename... Args>
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeFileClasses(Args&&... args) {
  auto provider = std::make_unique<Provider>(std::forward<Args>(args)...);
  QRM_RETURN_IF_ERROR(provider->Open());
  return std::unique_ptr<sdk::ClassProvider>(std::move(provider));
}

}  // namespace qrm::kernel
