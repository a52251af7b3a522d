// Bounds what a server takes of its clients.
#pragma once

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace qrm::rpc {

/// A request of the server to be built has up to `bytes`, and none is unpacked: a compressed
/// request is rejected as UNIMPLEMENTED. gRPC 1.51 unpacks it before it looks at the size, and a
/// few KiB of gzip are megabytes.
void BoundRequests(grpc::ServerBuilder& builder, int bytes);

}  // namespace qrm::rpc
