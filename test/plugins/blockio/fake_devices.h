// Block devices that a test plugs in and out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "plugins/blockio/devices.h"

namespace qrm::test {

class FakeDevices final : public blockio::Devices {
 public:
  using ByPath = std::map<std::string, blockio::Device>;

  /// `devices` outlive it. A glob ends in a star, or is a path.
  explicit FakeDevices(const ByPath& devices) : devices_(devices) {}

  [[nodiscard]] std::vector<std::string> Match(const std::string& glob) const override {
    std::vector<std::string> paths;
    for (const auto& [path, device] : devices_) {
      const bool matches =
          glob.ends_with("*") ? path.starts_with(glob.substr(0, glob.size() - 1)) : path == glob;
      if (matches) {
        paths.push_back(path);
      }
    }
    return paths;
  }

  [[nodiscard]] StatusOr<blockio::Device> Look(const std::string& path) const override {
    const auto found = devices_.find(path);
    return found == devices_.end()
               ? StatusOr<blockio::Device>(Errorf(StatusCode::kNotFound, "{} is gone", path))
               : found->second;
  }

  [[nodiscard]] blockio::Weighing WeighingOfDisks() const override {
    blockio::Weighing weighing;
    for (const auto& [path, device] : devices_) {
      weighing.by_bfq = weighing.by_bfq || device.has_bfq;
      weighing.by_io_cost = weighing.by_io_cost || device.has_io_cost;
    }
    return weighing;
  }

 private:
  const ByPath& devices_;
};

}  // namespace qrm::test
