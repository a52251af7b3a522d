// Keeps gRPC's callback threads for the life of the process, and them and its locks cheap.
#pragma once

namespace qrm {

/// Pins gRPC's shared callback queue; call it before the first channel or server of the callback
/// API. Cheap to repeat.
///
/// gRPC 1.51 tears that queue down when its last user goes. When the last user is released by one
/// of the queue's own threads, as the end of a call does that outlived its channel, the queue is
/// freed under that thread and the process aborts
/// ("assertion failed: prior > 0"). One user that never goes rules it out.
///
/// Also switches off the search for lock cycles in abseil's mutexes, which gRPC uses: Debian's
/// build searches at each lock, which is for tests of gRPC itself.
///
/// Threads: any.
void KeepGrpcCallbackThreads();

/// All of gRPC's callback threads but one rest from now on. Where several wait for events, each
/// event also wakes the next one to wait in its place, which costs more than most events do. Only
/// for a process whose callbacks neither wait nor compute for long, for they stand before each
/// other. Once, and a while after the first server or channel, when the threads have their names.
///
/// Threads: any. Source: gRPC 1.51, CallbackAlternativeCQ and end_worker of its epoll1 engine.
void RestSpareGrpcCallbackThreads();

}  // namespace qrm
