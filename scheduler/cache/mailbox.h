// What threads of handles want to be run on the cache's writer.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"

namespace qrm::scheduler {

/// Threads: any.
class Mailbox {
 public:
  struct Letter {
    std::string type;  ///< of the resource
    std::function<void()> run;
  };

  /// `wake` runs after each Put from now on, on its thread.
  void OnPut(std::function<void()> wake) {
    const MutexLock lock(mutex_);
    wake_ = std::move(wake);
  }
  void Put(const std::string& type, std::function<void()> run) {
    std::function<void()> wake;
    {
      const MutexLock lock(mutex_);
      letters_.push_back({type, std::move(run)});
      wake = wake_;
    }
    if (wake != nullptr) {
      wake();
    }
  }
  std::vector<Letter> Take() {
    const MutexLock lock(mutex_);
    return std::exchange(letters_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Letter> letters_ QRM_GUARDED_BY(mutex_);
  std::function<void()> wake_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::scheduler
