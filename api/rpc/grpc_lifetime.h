// Keeps gRPC's callback threads for the life of the process, and its locks cheap.
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

}  // namespace qrm
