// Converts our errors to gRPC's and back: the codes are the same numbers.
#pragma once

#include "api/base/status.h"

namespace grpc {
class Status;
}

namespace qrm::rpc {

grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

}  // namespace qrm::rpc
