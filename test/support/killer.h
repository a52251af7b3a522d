// Kills a process at a moment that does not depend on the process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include <sys/types.h>

namespace qrm::test {

/// Kills a process after a while, unless it is cancelled.
class Killer {
 public:
  Killer(pid_t pid, std::chrono::microseconds after)
      : thread_([this, pid, after] {
          std::unique_lock lock(mutex_);
          if (!changed_.wait_for(lock, after, [this] { return called_off_; })) {
            ::kill(pid, SIGKILL);
          }
        }) {}
  ~Killer() {
    {
      const std::lock_guard lock(mutex_);
      called_off_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Killer(const Killer&) = delete;
  Killer& operator=(const Killer&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool called_off_ = false;
  std::thread thread_;
};

}  // namespace qrm::test
