// Keeps other work of the machine out of a measurement.
#pragma once

#include <iostream>

#include <sched.h>

namespace qrm::test {

/// Gives the calling thread, and the threads and processes that it starts meanwhile, real-time
/// priority.
class BeforeOthers {
 public:
  BeforeOthers() {
    const sched_param priority{.sched_priority = 1};
    if (::sched_setscheduler(0, SCHED_RR, &priority) != 0) {
      std::cout << "no real-time priority (it needs root): other work on this machine is measured, "
                   "too\n";
    }
  }
  ~BeforeOthers() {
    const sched_param ordinary{.sched_priority = 0};
    ::sched_setscheduler(0, SCHED_OTHER, &ordinary);
  }
  BeforeOthers(const BeforeOthers&) = delete;
  BeforeOthers& operator=(const BeforeOthers&) = delete;
};

}  // namespace qrm::test
