// Tells answers apart by what they say, and parses one only when it differs from the last.
#include "plugins/sdk/calls/held_allocations.h"

#include <optional>

#include "api/wire.h"
#include "plugins/sdk/calls/content_digest.h"

namespace qrm::calls {
namespace {

StatusOr<HeldList> Parse(const std::string& bytes) {
  wire::pb::GetResourcesAllocationResponse message;
  if (!message.ParseFromString(bytes)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "its answer cannot be read (not the message of this call)");
  }
  QRM_ASSIGN_OR_RETURN(const AllocationByContainer allocations, wire::FromWire(message));
  return ToList(allocations);
}

}  // namespace

HeldList ToList(const AllocationByContainer& allocations) {
  HeldList list;
  list.reserve(allocations.size());
  for (const auto& [key, by_resource] : allocations) {
    for (const auto& [resource, allocation] : by_resource) {
      list.push_back({.key = key, .resource = resource, .allocation = allocation});
    }
  }
  return list;
}

HeldAllocationsReader::Identity HeldAllocationsReader::Last() const {
  const MutexLock lock(mutex_);
  return last_;
}

StatusOr<HeldAllocations> HeldAllocationsReader::Read(const Pieces& pieces) {
  auto bytes = std::make_shared<const std::string>(Joined(pieces));
  const std::optional<uint64_t> digest =
      ContentDigest(*wire::pb::GetResourcesAllocationResponse::descriptor(), *bytes);
  const Content content{.digest = digest.value_or(0), .bytes = bytes->size()};
  if (const Identity last = Last(); digest.has_value() && last != nullptr && *last == content) {
    // It could be read when somebody said this first; who makes up another message of the same
    // digest holds nothing.
    return HeldAllocations(last, [bytes] {
      return std::make_shared<const HeldList>(Parse(*bytes).value_or(HeldList()));
    });
  }
  QRM_ASSIGN_OR_RETURN(HeldList parsed, Parse(*bytes));
  auto identity = std::make_shared<const Content>(content);
  {
    const MutexLock lock(mutex_);
    last_ = identity;
  }
  return HeldAllocations(
      std::move(identity),
      [reading = std::make_shared<const HeldList>(std::move(parsed))] { return reading; });
}

}  // namespace qrm::calls
