// Sets the bounds by gRPC's own options.
#include "api/rpc/request_bounds.h"

#include <grpcpp/server_builder.h>

namespace qrm::rpc {

void BoundRequests(grpc::ServerBuilder& builder, int bytes) {
  builder.SetMaxReceiveMessageSize(bytes);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace qrm::rpc
