// What permissions mean, written once more: from the documents, for the one pod of a node of
// permission_node.h.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "checkpoint/node_state.h"
#include "test/manager/permissions/permission_cases.h"

namespace qrm::test {

/// Judges by one configuration of DrawConfig.
class PermissionOracle {
 public:
  /// `config` outlives it.
  explicit PermissionOracle(const nlohmann::json& config) : config_(config) {}

  /// What the pod has without the right to have it: the first that is found.
  std::optional<std::string> Excess(const AskingPod& pod, const checkpoint::PodRecord& has) const;
  /// What an admitted pod asks for that must have kept it from being admitted.
  std::optional<std::string> ForbiddenWish(const AskingPod& pod) const;
  /// The pool, role, class or driver that the pod names by a key for it, and may not have.
  std::optional<std::string> ForbiddenName(const AskingPod& pod) const;

 private:
  const nlohmann::json* RuleOf(const std::string& pod_namespace) const;
  bool May(const std::string& pod_namespace, const std::string& word) const;
  bool MayName(const std::string& pod_namespace, const std::string& list,
               const std::string& name) const;
  bool MayHaveClass(const std::string& pod_namespace, const std::string& type,
                    const std::string& name) const;
  bool MayHaveDriver(const std::string& pod_namespace, const std::string& driver) const;
  bool IsSkipped(const AskingPod& pod) const;
  std::optional<std::string> ForbiddenClass(const AskingPod& pod) const;
  std::optional<std::string> ExcessOfContainer(const AskingPod& pod,
                                               const checkpoint::PodRecord& has,
                                               const checkpoint::ContainerRecord& container) const;

  const nlohmann::json& config_;
};

}  // namespace qrm::test
