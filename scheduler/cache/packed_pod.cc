// Writes maps and containers into one text each: a map of three labels takes 400 B, its text 80.
#include "scheduler/cache/packed_pod.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

namespace qrm::scheduler {
namespace {

class Writer {
 public:
  template <typename Number>
  void Put(Number number) {
    static_assert(std::is_arithmetic_v<Number>);
    const auto bytes = std::bit_cast<std::array<char, sizeof number>>(number);
    text_.append(bytes.data(), bytes.size());
  }
  void Put(const std::string& text) {
    Put(static_cast<uint32_t>(text.size()));
    text_ += text;
  }
  template <typename Value>
  void Put(const std::map<std::string, Value>& values) {
    Put(static_cast<uint32_t>(values.size()));
    for (const auto& [key, value] : values) {
      Put(key);
      Put(value);
    }
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Of what a Writer wrote.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename Number>
  void Get(Number& number) {
    std::array<char, sizeof number> bytes{};
    text_.copy(bytes.data(), bytes.size());
    number = std::bit_cast<Number>(bytes);
    text_.remove_prefix(bytes.size());
  }
  void Get(std::string& text) {
    const auto size = Take<uint32_t>();
    text.assign(text_.substr(0, size));
    text_.remove_prefix(size);
  }
  template <typename Value>
  void Get(std::map<std::string, Value>& values) {
    for (auto left = Take<uint32_t>(); left > 0; --left) {
      std::string key;
      Get(key);
      Get(values[key]);
    }
  }
  template <typename Number>
  Number Take() {
    Number number = {};
    Get(number);
    return number;
  }

 private:
  std::string_view text_;
};

std::string TextOf(const StringMap& texts) {
  Writer writer;
  writer.Put(texts);
  return writer.Take();
}

StringMap TextsIn(const std::string& packed) {
  StringMap texts;
  Reader(packed).Get(texts);
  return texts;
}

std::string NeedsOf(const Pod& pod) {
  Writer writer;
  writer.Put(pod.qos_class);
  writer.Put(pod.runtime_class);
  writer.Put(pod.controller_kind);
  writer.Put(pod.priority_class);
  writer.Put(pod.priority);
  writer.Put(static_cast<uint8_t>(pod.preempts));
  writer.Put(pod.overhead);
  writer.Put(static_cast<uint32_t>(pod.containers.size()));
  for (const PodContainer& container : pod.containers) {
    writer.Put(container.name);
    writer.Put(static_cast<uint8_t>(container.kind));
    writer.Put(container.requests);
    writer.Put(container.limits);
  }
  return writer.Take();
}

void ReadNeeds(const std::string& needs, Pod& pod) {
  Reader reader(needs);
  reader.Get(pod.qos_class);
  reader.Get(pod.runtime_class);
  reader.Get(pod.controller_kind);
  reader.Get(pod.priority_class);
  reader.Get(pod.priority);
  pod.preempts = reader.Take<uint8_t>() != 0;
  reader.Get(pod.overhead);
  pod.containers.resize(reader.Take<uint32_t>());
  for (PodContainer& container : pod.containers) {
    reader.Get(container.name);
    container.kind = static_cast<PodContainer::Kind>(reader.Take<uint8_t>());
    reader.Get(container.requests);
    reader.Get(container.limits);
  }
}

}  // namespace

SharedText TextPool::Share(std::string text) {
  if (const auto known = texts_.find(text); known != texts_.end()) {
    return *known;
  }
  if (texts_.size() >= sweep_at_) {
    std::erase_if(texts_, [](const SharedText& known) { return known.use_count() == 1; });
    sweep_at_ = std::max(sweep_at_, 2 * texts_.size());
  }
  text.shrink_to_fit();
  return *texts_.insert(std::make_shared<const std::string>(std::move(text))).first;
}

PackedPodPtr Pack(Pod pod, TextPool& pool) {
  auto packed = std::make_shared<PackedPod>();
  packed->pod_namespace = pool.Share(pod.pod_namespace);
  packed->node = pool.Share(pod.node);
  packed->labels = pool.Share(TextOf(pod.labels));
  packed->annotations = pool.Share(TextOf(pod.annotations));
  packed->needs = pool.Share(NeedsOf(pod));
  packed->nominated = pool.Share(pod.nominated);
  packed->finished = pod.finished;
  packed->refused = pod.refused;
  packed->ending = pod.ending;
  packed->uid = std::move(pod.uid);
  packed->name = std::move(pod.name);
  return packed;
}

Pod Unpack(const PackedPod& packed) {
  Pod pod{.uid = packed.uid,
          .pod_namespace = *packed.pod_namespace,
          .name = packed.name,
          .node = *packed.node,
          .finished = packed.finished,
          .refused = packed.refused,
          .ending = packed.ending,
          .nominated = *packed.nominated,
          .labels = TextsIn(*packed.labels),
          .annotations = TextsIn(*packed.annotations)};
  ReadNeeds(*packed.needs, pod);
  return pod;
}

bool SameToResources(const PackedPod& a, const PackedPod& b) {
  return a.uid == b.uid && a.name == b.name && a.pod_namespace == b.pod_namespace &&
         a.node == b.node && a.labels == b.labels && a.annotations == b.annotations &&
         a.needs == b.needs && a.finished == b.finished;
}

}  // namespace qrm::scheduler
