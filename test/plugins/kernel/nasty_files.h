// Files that behave as nastily as the kernel's: rejected writes, values that come back otherwise,
// devices that vanish, and a process that dies at any step.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::test {

class NastyFiles final : public kernel::KernelFiles {
 public:
  using Value = std::string;
  /// What a write of `value` becomes, or the kernel's error.
  using OnWrite = std::function<StatusOr<Value>(const Value& value)>;

  NastyFiles() {
    values["proc/sys/kernel/random/boot_id"] = "first";
    values["sys/devices/system/cpu/online"] = "0-7";
  }

  StatusOr<std::string> Read(const std::string& path) const override {
    Step();
    const auto value = values.find(path);
    if (value == values.end()) {
      return Errorf(StatusCode::kNotFound, "cannot read {}: No such file or directory", path);
    }
    return value->second;
  }
  Status Write(const std::string& path, const std::string& value) override {
    Step();
    writes.emplace_back(path, value);
    const auto rule = on_write.find(path);
    StatusOr<Value> kept = rule == on_write.end() ? StatusOr<Value>(value) : rule->second(value);
    QRM_RETURN_IF_ERROR(kept.status());
    values[path] = *std::move(kept);
    return OkStatus();
  }
  std::vector<std::string> List(const std::string& directory) const override {
    std::vector<std::string> names;
    for (const auto& [path, value] : values) {
      if (path.starts_with(directory + "/")) {
        const std::string rest = path.substr(directory.size() + 1);
        const std::string name = rest.substr(0, rest.find('/'));
        if (names.empty() || names.back() != name) {
          names.push_back(name);
        }
      }
    }
    return names;
  }

  bool MayWrite(const std::string& path) const override {
    return values.contains(path) && !read_only.contains(path);
  }

  std::map<std::string, Value> values;
  std::set<std::string> read_only;
  std::map<std::string, OnWrite> on_write;
  std::vector<std::pair<std::string, Value>> writes;
  /// Thrown by the step of this number from now on: the process dies there.
  struct Killed {};
  mutable int steps_to_live = -1;

 private:
  void Step() const {
    if (steps_to_live == 0) {
      throw Killed();
    }
    steps_to_live -= steps_to_live > 0 ? 1 : 0;
  }
};

/// The kernel's "Input/output error", as for an interrupt that it manages itself.
inline StatusOr<std::string> RefuseWrite(const std::string& value) {
  return Errorf(StatusCode::kUnavailable, "cannot write {}: Input/output error", value);
}

}  // namespace qrm::test
