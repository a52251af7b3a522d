// Sets glibc's malloc options, and returns free memory to the kernel.
#include "manager/daemon/free_memory.h"

#include <malloc.h>

namespace qrm::manager {
namespace {

/// gRPC brings a dozen threads, and glibc gives each a heap of its own, up to eight per CPU; but
/// they rarely work at once, and what they take and free in a hurry comes from their caches.
constexpr int kOneHeap = 1;

/// More than there are threads: those that are beyond it share with the others.
constexpr int kManyHeaps = 1024;

/// Lists of all containers are above it, a container's own messages below.
constexpr int kAloneBytes = 64 << 10;

}  // namespace

void UseHeaps(Heaps heaps) {
  ::mallopt(M_ARENA_MAX, heaps == Heaps::kOneForAll ? kOneHeap : kManyHeaps);
  ::mallopt(M_MMAP_THRESHOLD, kAloneBytes);
}

void GiveBackFreeMemory() {
  ::malloc_trim(0);
}

}  // namespace qrm::manager
