// Says which threads share a heap, limits how much free memory the allocator keeps, and lets go of
// what only the start needed.
#pragma once

namespace qrm::manager {

/// One for all: what one thread frees serves the others, but each waits for whoever holds its lock,
/// also a thread in real time for an ordinary one that has no CPU. Or one for each thread, whose
/// lock others take only to free what came from it.
enum class Heaps { kOneForAll, kOneForEachThread };

/// Takes what threads need from `heaps`, and keeps large buffers out of them, so that they leave no
/// holes. To be called before there are threads.
void UseHeaps(Heaps heaps);

/// Gives the kernel back what lies free in the heaps, after work that took much more than it left.
/// Threads: any. Cost: a walk over what is free, well under a millisecond with 1,000 containers.
void GiveBackFreeMemory();

/// Lets go of the pages of code and constants that are resident, most of which only the start has
/// read: what is used again comes back from the page cache. Nothing while the process is traced,
/// since a debugger's breakpoints lie in them. Threads: any. Cost: a page fault for each piece of
/// code that runs next.
void GiveBackStartPages();

}  // namespace qrm::manager
