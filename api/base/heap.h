// The allocator of the programs that keep containers: jemalloc, whose costs and holes do not grow
// with what it holds. Under sanitizers, which have an allocator of their own, and in programs that
// do not link it, nothing here does anything.
#pragma once

namespace qrm {

/// From now on the calling thread takes memory from a heap of its own, whose lock others take only
/// to free what came from it. All others share one: what one thread frees serves the rest, but each
/// waits for whoever holds its lock, also a thread in real time for an ordinary one that has no
/// CPU. Cost: a few megabytes at most, for as long as the process lives. False when there is no
/// memory for one: the thread goes on with the one that it had. May be repeated.
[[nodiscard]] bool UseHeapApart();

/// Gives the kernel back what lies free in the heaps, after work that took much more than it left;
/// what is not given back so goes after 10 s of other work. Threads: any. Cost: a system call per
/// piece, well under a millisecond.
void GiveBackFreeMemory();

}  // namespace qrm
