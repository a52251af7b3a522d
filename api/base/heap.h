// The allocator of qrmd, its plugins and qrm-scheduler: jemalloc, whose cost and fragmentation do
// not grow with the heap. Under sanitizers, which have an allocator of their own, and in programs
// that do not link it, nothing here does anything.
#pragma once

namespace qrm {

/// From now on the calling thread takes memory from a heap of its own, whose lock others take only
/// to free what came from it. All other threads share one heap: memory that one thread frees serves
/// the rest, but each waits for the thread that holds its lock, also a thread in real time for an
/// ordinary thread that has no CPU. Cost: a few megabytes at most, for as long as the process
/// lives. False when there is no memory for one: the thread goes on with the one that it had. May
/// be repeated.
[[nodiscard]] bool UseHeapApart();

/// Gives the kernel back what lies free in the heaps, after work that took much more than it left;
/// what is not given back so goes after 10 s of other work. Threads: any. Cost: a system call per
/// piece, well under a millisecond.
void GiveBackFreeMemory();

}  // namespace qrm
