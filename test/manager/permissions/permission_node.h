// qrmd's admission with its own plugins, two compute drivers and three types of classes, for one
// pod at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "test/manager/permissions/permission_cases.h"

namespace qrm::test {

/// A node with one configuration of DrawConfig at a time. Threads: one.
class PermissionNode {
 public:
  PermissionNode();
  ~PermissionNode();
  PermissionNode(const PermissionNode&) = delete;
  PermissionNode& operator=(const PermissionNode&) = delete;

  /// Errors: the configuration's.
  Status Configure(const nlohmann::json& config);

  /// Admits each container of the pod, as the runtime creates them. Errors: the first rejection.
  Status Admit(const AskingPod& pod);
  /// What is recorded of the pod; none when it has nothing.
  std::optional<checkpoint::PodRecord> Has() const;
  void Remove();

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace qrm::test
