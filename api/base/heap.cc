// Sets jemalloc's options, and calls it.
#include "api/base/heap.h"

#ifdef QRM_JEMALLOC

#include <cstddef>
#include <string>

#include <jemalloc/jemalloc.h>

/// gRPC brings a dozen threads, and jemalloc would give them four arenas per CPU; but they rarely
/// work at once, and what they take and free in a hurry comes from their caches.
/// Source: jemalloc(3), TUNING.
const char* malloc_conf = "narenas:1";  // NOLINT: its name and type are jemalloc's

namespace qrm {

bool UseHeapApart() {
  thread_local bool is_apart = false;
  unsigned arena = 0;
  std::size_t size = sizeof(arena);
  is_apart = is_apart || (::mallctl("arenas.create", &arena, &size, nullptr, 0) == 0 &&
                          ::mallctl("thread.arena", nullptr, nullptr, &arena, sizeof(arena)) == 0);
  return is_apart;
}

void GiveBackFreeMemory() {
  ::mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
  const std::string all = "arena." + std::to_string(MALLCTL_ARENAS_ALL) + ".purge";
  ::mallctl(all.c_str(), nullptr, nullptr, nullptr, 0);
}

}  // namespace qrm

#else

namespace qrm {

bool UseHeapApart() {
  return true;
}
void GiveBackFreeMemory() {}

}  // namespace qrm

#endif
