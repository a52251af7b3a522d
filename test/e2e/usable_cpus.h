// The CPUs that the tests on real containers divide.
#pragma once

#include <sched.h>

#include "api/id_set.h"

namespace qrm::test {

/// The CPUs that this process may use, so that tests also run in a restricted cpuset.
inline CpuSet UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof(set), &set);
  CpuSet cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      cpus.Add(cpu);
    }
  }
  return cpus;
}

inline CpuSet FirstOf(const CpuSet& cpus, int count) {
  CpuSet first;
  for (const int cpu : cpus) {
    if (first.Count() < count) {
      first.Add(cpu);
    }
  }
  return first;
}

}  // namespace qrm::test
