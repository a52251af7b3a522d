// Turns a container's record into the bytes of its row, and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/base/status.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// What a row says beside its keys. Source: api/proto/qrm/state/v1/record.proto.
struct StoredRecord {
  PodMeta pod;  ///< its UID is the row's
  int64_t pod_order = 0;
  ContainerRecord container;
};

/// The same bytes for the same record. Errors: kInvalidArgument for text that is not UTF-8 or a
/// number that is not finite.
StatusOr<std::string> EncodeRecord(const PodRecord& pod, const ContainerRecord& container);

/// The inverse, without the UID. Errors: kDataLoss for bytes that EncodeRecord does not make.
StatusOr<StoredRecord> DecodeRecord(std::string_view bytes);

}  // namespace qrm::checkpoint
