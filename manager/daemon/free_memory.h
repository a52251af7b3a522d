// Limits how much free memory the allocator keeps.
#pragma once

namespace qrm::manager {

/// Makes threads share one heap, so that what one frees serves the others, and keeps large buffers
/// out of it, so that they leave no holes. To be called before there are threads.
void KeepHeapsSmall();

/// Gives the kernel back what lies free in the heaps, after work that took much more than it left.
/// Threads: any. Cost: a walk over what is free, well under a millisecond with 1,000 containers.
void GiveBackFreeMemory();

}  // namespace qrm::manager
