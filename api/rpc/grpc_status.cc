// Converts statuses; Abseil's codes copy gRPC's.
#include "api/rpc/grpc_status.h"

#include <grpcpp/support/status.h>

namespace qrm::rpc {

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), MessageOf(status)};
}

Status FromGrpc(const grpc::Status& status) {
  return {static_cast<StatusCode>(status.error_code()), status.error_message()};
}

}  // namespace qrm::rpc
