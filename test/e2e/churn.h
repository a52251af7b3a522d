// Clients that make and remove pods all the time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/e2e/kubelet.h"

namespace qrm::test {

/// Each client makes one pod after another and removes every second one again. Failures, as while
/// the runtime restarts, are ignored.
class Churn {
 public:
  /// `spec` makes the pod of a number that is never repeated.
  Churn(int clients, Kubelet::Options options, std::function<PodSpec(int number)> spec);
  /// Stops.
  ~Churn();
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  /// Ends after the present step.
  void Stop();
  /// Pods that were made.
  int made() const { return made_; }
  /// True once `count` more were made.
  bool WaitForMore(int count) const;

 private:
  void Run();

  const Kubelet::Options options_;
  const std::function<PodSpec(int number)> spec_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> next_ = 0;
  std::atomic<int> made_ = 0;
  std::vector<std::thread> clients_;
};

}  // namespace qrm::test
