// Our errors as gRPC's: the codes are the same numbers.
#pragma once

#include "api/base/status.h"

namespace grpc {
class Status;
}

namespace qrm::manager {

grpc::Status ToGrpc(const Status& status);

}  // namespace qrm::manager
