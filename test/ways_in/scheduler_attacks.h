// The worst legal input of each way into qrm-scheduler.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "api/base/status.h"
#include "test/support/fake_api_server.h"

namespace qrm::test {

/// qrm-scheduler while it is attacked.
struct SchedulerUnderAttack {
  std::string dir;
  std::string program;  ///< its path
  FakeApiServer& cluster;
  int port = 0;
  int monitor_port = 0;
};

/// Errors: kInternal when the attack shows a wrong answer.
using SchedulerAttack = std::function<Status(const SchedulerUnderAttack&)>;

/// By the names in docs/ways-in.md.
const std::map<std::string, SchedulerAttack>& SchedulerAttacks();

}  // namespace qrm::test
