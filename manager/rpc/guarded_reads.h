// Closes connections whose clients send data that is too expensive for gRPC, before gRPC reads it.
#pragma once

namespace qrm::manager {

/// From now on, all reads from the connection `fd` pass through a HeaderGuard, until the descriptor
/// belongs to another socket. To gRPC, a connection that the guard closes looks closed by the
/// client. When the incomplete requests of all connections exceed 16 MiB, the connections with the
/// largest ones are closed: gRPC 1.51 checks a request's size only when it is complete. Closed
/// connections are counted as rejected.
///
/// gRPC has no hook for this. It reads its sockets with recvmsg(2) of the C library, so the program
/// defines its own recvmsg, which the dynamic linker prefers.
/// Threads: any.
void GuardReads(int fd);

/// Closes the guarded connection `fd`, whose client does not read its answers. Threads: any.
void EndConnection(int fd);

}  // namespace qrm::manager
