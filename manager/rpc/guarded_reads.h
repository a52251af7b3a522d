// Ends connections whose clients send what costs gRPC too much, before it reads that.
#pragma once

namespace qrm::manager {

/// From now on, what is read from the connection `fd`, by whomever, passes a HeaderGuard, until the
/// descriptor is another socket's. A connection that the guard ends reads as closed by the client.
/// So do those with most of the requests that are not complete, once these have 16 MiB together:
/// gRPC 1.51 looks at a request's size when it is complete. What is ended is counted as rejected.
///
/// gRPC offers no place for this, and reads its sockets with recvmsg(2) of the C library: the
/// program has a recvmsg of its own, which the dynamic linker prefers.
/// Threads: any.
void GuardReads(int fd);

/// Ends the guarded connection `fd`, whose client does not read its answers. Threads: any.
void EndConnection(int fd);

}  // namespace qrm::manager
