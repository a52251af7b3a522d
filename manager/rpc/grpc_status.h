// Our errors as gRPC's: the codes are the same numbers.
#pragma once

#include <grpcpp/support/status.h>

#include "api/status.h"

namespace qrm::manager {

inline grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), MessageOf(status)};
}

inline Status FromGrpc(const grpc::Status& status) {
  return {static_cast<StatusCode>(status.error_code()), status.error_message()};
}

}  // namespace qrm::manager
