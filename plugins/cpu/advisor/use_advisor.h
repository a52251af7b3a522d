// The advisor that is built in: it sizes pools by what their containers use.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "api/base/clock.h"
#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "plugins/cpu/advisor/desk.h"
#include "plugins/cpu/advisor/pod_cgroups.h"
#include "plugins/cpu/sizing/use.h"

namespace qrm::cpu {

/// What the containers of each pool of `node` do by `uses` of their pods: of one that uses several
/// pools each has a part by what is requested there. One that is new, or has CPUs of its own
/// besides, is counted by what it requests.
std::map<std::string, Use> UseByPool(const UseRule& rule, const NodeSight& node,
                                     const UseByPod& uses);

/// Looks every `UseRule::every`, and advises: every second while a pool has less than what its
/// containers request by advice, so that they have it soon when they need it. Pools that another
/// advisor leads are that one's.
class UseAdvisor {
 public:
  /// `desk` and `clock` outlive it.
  UseAdvisor(const UseRule& rule, AdviceDesk& desk, const Clock& clock);
  ~UseAdvisor();
  UseAdvisor(const UseAdvisor&) = delete;
  UseAdvisor& operator=(const UseAdvisor&) = delete;

  /// One look; what the thread does, for tests. Returns when the next one is due.
  std::chrono::milliseconds Look();

 private:
  void Run();

  const UseRule rule_;
  AdviceDesk& desk_;
  const Clock& clock_;
  PodCgroups cgroups_;   // of whoever looks
  std::string problem_;  // why there was no look
  Mutex mutex_;
  CondVar stopped_;
  bool is_stopping_ QRM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace qrm::cpu
