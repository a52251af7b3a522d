// Tells answers apart by their bytes, and parses one only when it differs from the last.
#include "plugins/sdk/calls/held_allocations.h"

#include "api/base/check.h"
#include "api/wire.h"

namespace qrm::calls {
namespace {

bool Equal(const Pieces& pieces, std::string_view bytes) {
  for (const std::string_view piece : pieces) {
    if (!bytes.starts_with(piece)) {
      return false;
    }
    bytes.remove_prefix(piece.size());
  }
  return bytes.empty();
}

StatusOr<AllocationByContainer> Parse(const std::string& bytes) {
  wire::pb::GetResourcesAllocationResponse message;
  if (!message.ParseFromString(bytes)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "its answer cannot be read (not the message of this call)");
  }
  return wire::FromWire(message);
}

}  // namespace

HeldAllocationsReader::Bytes HeldAllocationsReader::Last() const {
  const MutexLock lock(mutex_);
  return last_;
}

HeldAllocations HeldAllocationsReader::Repeat(const Bytes& last) {
  return HeldAllocations(last, [last] {
    StatusOr<AllocationByContainer> again = Parse(*last);
    QRM_CHECK(again.ok());  // it was when these bytes came first
    return std::make_shared<const AllocationByContainer>(*std::move(again));
  });
}

StatusOr<HeldAllocations> HeldAllocationsReader::ReadNew(Bytes bytes) {
  QRM_ASSIGN_OR_RETURN(AllocationByContainer parsed, Parse(*bytes));
  auto reading = std::make_shared<const AllocationByContainer>(std::move(parsed));
  const MutexLock lock(mutex_);
  last_ = bytes;
  return HeldAllocations(std::move(bytes), [reading] { return reading; });
}

StatusOr<HeldAllocations> HeldAllocationsReader::Read(const Pieces& pieces) {
  if (const Bytes last = Last(); last != nullptr && Equal(pieces, *last)) {
    return Repeat(last);
  }
  return ReadNew(std::make_shared<const std::string>(Joined(pieces)));
}

StatusOr<HeldAllocations> HeldAllocationsReader::ReadShared(
    std::shared_ptr<const std::string> bytes) {
  return bytes == Last() ? Repeat(bytes) : ReadNew(std::move(bytes));
}

}  // namespace qrm::calls
