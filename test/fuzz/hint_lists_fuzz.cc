// Hint lists: the merge equals the plain product of all lists.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/check.h"
#include "test/support/product_merge.h"
#include "topology/merge.h"

namespace {

/// Numbers from the fuzzer's bytes; zeros when they are used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  int Next() {
    if (left_ == 0) {
      return 0;
    }
    --left_;
    return *data_++;
  }
  int Below(int bound) { return Next() % bound; }

 private:
  const uint8_t* data_;
  std::size_t left_;
};

qrm::Machine NextMachine(Bytes& bytes) {
  qrm::MachineParts parts;
  const int count = 1 + bytes.Below(6);
  const int step = 1 + bytes.Below(40);
  for (int node = 0; node < count; ++node) {
    parts.nodes.push_back({.id = node * step});
    std::vector<uint64_t>& row = parts.distances.emplace_back();
    for (int to = 0; to < count; ++to) {
      row.push_back(to == node ? 10 : 10 + static_cast<uint64_t>(bytes.Below(4)));
    }
  }
  return qrm::Machine(std::move(parts));
}

qrm::HintList NextList(const qrm::Machine& machine, Bytes& bytes) {
  const int kind = bytes.Below(8);
  if (kind == 0) {
    return qrm::HintList::NoPreference();
  }
  std::vector<qrm::TopologyHint> hints;
  for (int i = kind - 1; i > 0; --i) {
    const int bits = bytes.Next();
    qrm::TopologyHint hint{.nodes = {}, .preferred = (bits & 128) != 0};
    int bit = 1;
    for (const qrm::NumaNode& node : machine.nodes()) {
      if ((bits & bit) != 0) {
        hint.nodes.Add(node.id);
      }
      bit *= 2;
    }
    hints.push_back(std::move(hint));
  }
  return qrm::HintList(std::move(hints));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const qrm::Machine machine = NextMachine(bytes);
  qrm::MergeOptions options;
  options.policy = static_cast<qrm::TopologyPolicy>(bytes.Below(5));
  options.prefer_closest_numa_nodes = bytes.Below(2) == 1;
  qrm::HintsByResource hints;
  for (const char* const resource : {"cpu", "memory", "nic", "gpu"}) {
    if (bytes.Below(4) != 3) {
      hints[resource] = NextList(machine, bytes);
    }
  }
  const qrm::MergeResult fast = qrm::MergeHints(machine, hints, options);
  const qrm::test::ProductResult plain = qrm::test::MergeByProduct(machine, hints, options);
  QRM_CHECK(fast.admit == plain.admit);
  QRM_CHECK(fast.admit || !fast.reasons.empty());
  if (options.policy == qrm::TopologyPolicy::kNumeric) {
    QRM_CHECK(fast.hints == plain.hints);
  } else {
    QRM_CHECK(fast.merged == plain.merged);
  }
  return 0;
}
