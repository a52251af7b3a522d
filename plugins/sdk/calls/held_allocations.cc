// Tells answers apart by what they say, and parses only the pods of which one says something new.
#include "plugins/sdk/calls/held_allocations.h"

#include <algorithm>
#include <iterator>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "api/base/errorf.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"

namespace qrm::calls {
namespace {

using wire::pb::GetResourcesAllocationResponse;

StatusOr<HeldList> Parse(std::string_view bytes) {
  GetResourcesAllocationResponse message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Errorf(StatusCode::kInvalidArgument,
                  "its answer cannot be read (not the message of this call)");
  }
  QRM_ASSIGN_OR_RETURN(const AllocationByContainer allocations, wire::FromWire(message));
  return ToList(allocations);
}

/// The key of an entry of a map; the last one counts. Source: Protocol Buffers, "Encoding", maps.
std::string_view KeyOf(std::string_view field) {
  using google::protobuf::internal::WireFormatLite;
  static constexpr uint32_t kKeyTag =
      WireFormatLite::MakeTag(1, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(field.data()),
                                            static_cast<int>(field.size()));
  uint32_t size = 0;
  in.ReadTag();
  in.ReadVarint32(&size);  // of the entry, which ends with the field
  std::string_view key;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != kKeyTag) {
      WireFormatLite::SkipField(&in, tag);
    } else if (in.ReadVarint32(&size)) {
      key = field.substr(static_cast<std::size_t>(in.CurrentPosition()), size);
      in.Skip(static_cast<int>(size));
    }
  }
  return key;
}

/// The part of `list` about `pods`.
HeldAllocations::Reading Select(const HeldList& list, const PodSet& pods) {
  HeldList selected;
  for (const SharedText& pod : pods) {
    const auto begin = std::lower_bound(
        list.begin(), list.end(), pod,
        [](const HeldAllocation& one, const SharedText& uid) { return one.key.pod_uid < uid; });
    const auto end =
        std::find_if(begin, list.end(), [&](const auto& one) { return one.key.pod_uid != pod; });
    selected.insert(selected.end(), begin, end);
  }
  return std::make_shared<const HeldList>(std::move(selected));
}

/// The pods about which two lists differ.
PodSet Unlike(const HeldList& before, const HeldList& now) {
  PodSet pods;
  auto a = before.begin();
  auto b = now.begin();
  while (a != before.end() || b != now.end()) {
    const bool only_a = b == now.end() || (a != before.end() && a->key < b->key);
    const bool only_b = a == before.end() || (b != now.end() && b->key < a->key);
    if (only_a || only_b || *a != *b) {
      pods.insert(only_b ? b->key.pod_uid : a->key.pod_uid);
    }
    a += only_b ? 0 : 1;
    b += only_a ? 0 : 1;
  }
  return pods;
}

HeldAllocations::Reader ReaderOf(const HeldAllocations::Reading& list) {
  return [list](const PodSet* pods) { return pods == nullptr ? list : Select(*list, *pods); };
}

}  // namespace

/// The bytes of an answer, and where in them each pod stands.
struct HeldAllocationsReader::Answer {
  /// It could be read before; who makes up another one of the same digest holds nothing.
  HeldAllocations::Reading ReadAgain(const PodSet* wanted) const {
    return std::make_shared<const HeldList>(
        Parse(wanted == nullptr ? bytes : Cut(*wanted)).value_or(HeldList()));
  }
  /// The fields of those that are `wanted`, one after the other: a message without the others.
  std::string Cut(const PodSet& wanted) const {
    std::string part;
    for (const DigestedEntry& pod : pods) {
      if (wanted.contains(KeyOf(pod.field))) {
        part += pod.field;
      }
    }
    return part;
  }

  std::string bytes;
  std::vector<DigestedEntry> pods;  ///< in the order of the bytes
};

/// What an answer says that the one before it did not.
struct HeldAllocationsReader::News {
  std::string fields;       ///< of the pods about which it says something new
  std::vector<Said> said;   ///< about them
  std::vector<bool> stays;  ///< beside what was said before
  PodSet pods;              ///< those of `said`, and of what does not stay
};

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

HeldAllocations::HeldAllocations(const Reading& reading)
    : HeldAllocations(reading, ReaderOf(reading)) {
  identity_.list = reading;
}

std::optional<PodSet> HeldAllocations::PodsUnlike(const Identity& before) const {
  if (before == identity_) {
    return PodSet();
  }
  if (before.list != nullptr && identity_.list != nullptr) {
    return Unlike(*before.list, *identity_.list);
  }
  return before.content != nullptr && before.content == difference_->before
             ? std::optional(difference_->pods)
             : std::nullopt;
}

StatusOr<HeldAllocations> HeldAllocationsReader::Read(const Pieces& pieces) {
  auto answer = std::make_shared<Answer>();
  answer->bytes = Joined(pieces);
  auto digested = ContentDigest(*GetResourcesAllocationResponse::descriptor(), answer->bytes);
  if (!digested.has_value()) {
    QRM_ASSIGN_OR_RETURN(HeldList list, Parse(answer->bytes));
    return HeldAllocations(std::make_shared<const HeldList>(std::move(list)));
  }
  answer->pods = std::move(digested->entries);
  const auto read = [answer](const PodSet* pods) { return answer->ReadAgain(pods); };
  const Content content{.digest = digested->digest, .bytes = answer->bytes.size()};

  const MutexLock lock(mutex_);
  if (last_ != nullptr && *last_ == content) {
    return HeldAllocations(last_, read);
  }
  News news = NewsOf(*answer);
  QRM_ASSIGN_OR_RETURN(HeldList fresh, Parse(news.fields));
  const bool is_all = news.fields.size() == answer->bytes.size();
  HeldAllocations::Difference difference{.before = last_, .pods = std::move(news.pods)};
  last_ = std::make_shared<const Content>(content);
  Remember(std::move(news));
  return HeldAllocations(
      last_, is_all ? ReaderOf(std::make_shared<const HeldList>(std::move(fresh))) : read,
      std::move(difference));
}

HeldAllocationsReader::News HeldAllocationsReader::NewsOf(const Answer& answer) const {
  News news;
  news.stays.resize(said_.size());
  for (const DigestedEntry& pod : answer.pods) {
    const auto same = std::lower_bound(said_.begin(), said_.end(), Said{pod.digest, {}});
    if (same != said_.end() && same->digest == pod.digest) {
      news.stays[static_cast<std::size_t>(same - said_.begin())] = true;
    } else {
      news.said.push_back({pod.digest, KeyOf(pod.field)});
      news.pods.insert(news.said.back().pod);
      news.fields += pod.field;
    }
  }
  for (std::size_t i = 0; i < said_.size(); ++i) {
    if (!news.stays[i]) {
      news.pods.insert(said_[i].pod);
    }
  }
  return news;
}

void HeldAllocationsReader::Remember(News news) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < said_.size(); ++i) {
    if (news.stays[i]) {
      std::swap(said_[kept++], said_[i]);
    }
  }
  said_.resize(kept);
  std::sort(news.said.begin(), news.said.end());
  said_.insert(said_.end(), std::make_move_iterator(news.said.begin()),
               std::make_move_iterator(news.said.end()));
  std::inplace_merge(said_.begin(), said_.begin() + static_cast<std::ptrdiff_t>(kept), said_.end());
}

}  // namespace qrm::calls
