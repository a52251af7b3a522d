// The built-in advisor: it sizes pools by the CPU use of their containers.
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
#include "plugins/cpu/sizing/pool_size.h"

namespace qrm::cpu {

/// The CPU use of the containers of each pool of `node`, from the `uses` of their pods. A pod that
/// uses several pools is divided by its requests to them. A container that is new, or also has
/// exclusive CPUs, counts with its request.
std::map<std::string, Use> UseByPool(const UseRule& rule, const NodeSight& node,
                                     const UseByPod& uses);

/// Measures and advises every `UseRule::every`; every second while advice leaves a pool less than
/// its containers request, so that they soon have it when they need it. Leaves pools that another
/// advisor leads to that advisor.
class UseAdvisor {
 public:
  /// `desk` and `clock` outlive it.
  UseAdvisor(const UseRule& rule, AdviceDesk& desk, const Clock& clock);
  ~UseAdvisor();
  UseAdvisor(const UseAdvisor&) = delete;
  UseAdvisor& operator=(const UseAdvisor&) = delete;

  /// One measurement, as in the thread; for tests. Returns when the next one is due.
  std::chrono::milliseconds Look();

  /// What it cannot measure, in one sentence; empty: nothing. Threads: any.
  std::string Problem() const;

 private:
  void Run();
  void NoteProblem(const std::string& problem);

  const UseRule rule_;
  AdviceDesk& desk_;
  const Clock& clock_;
  PodCgroups cgroups_;  // used by Look
  mutable Mutex problem_mutex_;
  std::string problem_ QRM_GUARDED_BY(problem_mutex_);
  Mutex mutex_;
  CondVar stopped_;
  bool is_stopping_ QRM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace qrm::cpu
