// Prints configurations and pods with qrmd's decisions, as JSON, for the test of the API server's
// policies.
//   qrm-permission-cases CONFIGURATIONS PODS
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/number.h"
#include "test/manager/permissions/permission_cases.h"
#include "test/manager/permissions/permission_node.h"
#include "test/manager/permissions/permission_oracle.h"

namespace {

using namespace qrm::test;  // NOLINT(google-build-using-namespace): a program of one file

nlohmann::json DecisionOn(PermissionNode& node, const PermissionOracle& oracle,
                          const AskingPod& pod) {
  const qrm::Status admitted = node.Admit(pod);
  node.Remove();
  return {{"admitted", admitted.ok()},
          {"forbidden", oracle.ForbiddenName(pod).value_or("")},
          {"error", qrm::MessageOf(admitted)}};
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc != 3) {
    std::cerr << "usage: qrm-permission-cases CONFIGURATIONS PODS\n";
    return EXIT_FAILURE;
  }
  Random random(20'261'128);
  PermissionNode node;
  std::vector<AskingPod> pods;
  nlohmann::json cases = {{"namespaces", PodNamespaces()}, {"runtimeClasses", RuntimeClasses()}};
  for (int left = qrm::ParseNumber<int>(arguments[2]).value_or(0); left > 0; --left) {
    pods.push_back(DrawPod(random));
    cases["pods"].push_back(ManifestOf(pods.back()));
  }
  for (int left = qrm::ParseNumber<int>(arguments[1]).value_or(0); left > 0; --left) {
    const nlohmann::json config = DrawConfig(random);
    if (const qrm::Status configured = node.Configure(config); !configured.ok()) {
      std::cerr << qrm::MessageOf(configured) << "\n";
      return EXIT_FAILURE;
    }
    nlohmann::json decisions = nlohmann::json::array();
    for (const AskingPod& pod : pods) {
      decisions.push_back(DecisionOn(node, PermissionOracle(config), pod));
    }
    cases["policies"].push_back({{"config", config.dump()}, {"decisions", decisions}});
  }
  std::cout << cases.dump() << "\n";
  return EXIT_SUCCESS;
}
