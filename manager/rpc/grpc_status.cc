// Converts statuses; Abseil's codes copy gRPC's.
#include "manager/rpc/grpc_status.h"

#include <grpcpp/support/status.h>

namespace qrm::manager {

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), MessageOf(status)};
}

}  // namespace qrm::manager
