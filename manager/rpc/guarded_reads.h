// Ends connections whose headers do not come to an end, or whose frames come too fast, before gRPC
// reads them.
#pragma once

#include <cstdint>

namespace qrm::manager {

/// From now on, what is read from the connection `fd`, by whomever, passes a HeaderGuard, until the
/// descriptor is another socket's. A connection that the guard ends reads as closed by the client.
///
/// gRPC offers no place for this, and reads its sockets with recvmsg(2) of the C library: the
/// program has a recvmsg of its own, which the dynamic linker prefers.
/// Threads: any.
void GuardReads(int fd);

/// How many connections the guard has ended since the start. Threads: any.
uint64_t ConnectionsEnded();

}  // namespace qrm::manager
