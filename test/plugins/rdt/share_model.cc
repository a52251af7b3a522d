// Deals out bits one by one.
#include "test/plugins/rdt/share_model.h"

#include <algorithm>

namespace qrm::test {
namespace {

using Sizes = std::map<std::string, int>;

/// Deals `left` of `all` bits, which represent `total` percent, to `asked`, smallest first.
std::optional<Sizes> Deal(std::multimap<int, std::string> asked, int left, int all, int total,
                          int least) {
  if (asked.empty()) {
    return Sizes();
  }
  if (left < least || all == 0) {
    return std::nullopt;
  }
  const auto [percent, name] = *asked.begin();
  asked.erase(asked.begin());
  int size = percent * left / (left * total / all);
  while (size < least) {
    ++size;
  }
  if (asked.empty() || size > left) {
    size = left;
  }
  std::optional<Sizes> others = Deal(std::move(asked), left - size, all, total, least);
  if (others.has_value()) {
    others->emplace(name, size);
  }
  return others;
}

BitSet From(int first, int count) {
  BitSet bits;
  while (count-- > 0) {
    bits.insert(first++);
  }
  return bits;
}

std::optional<std::map<std::string, BitSet>> PartitionBits(
    const std::vector<ModelPartition>& partitions, int bits, int least) {
  std::map<std::string, BitSet> result;
  std::multimap<int, std::string> asked;  // equal percents in the order of names
  int total = 0;
  BitSet taken;
  for (const ModelPartition& partition : partitions) {
    const ModelShare share = partition.share.value_or(ModelShare());
    if (share.percent) {
      asked.emplace(share.high, partition.name);
      total += share.high;
      continue;
    }
    const BitSet own = From(share.low, share.high - share.low + 1);
    for (const int bit : own) {
      if (bit >= bits || !taken.insert(bit).second) {
        return std::nullopt;
      }
    }
    if (static_cast<int>(own.size()) < least) {
      return std::nullopt;
    }
    result[partition.name] = own;
  }
  if (asked.empty()) {
    return result;
  }
  const int all = bits * total / 100;
  const std::optional<Sizes> sizes = Deal(asked, all, all, total, least);
  if (total > 100 || !result.empty() || !sizes.has_value()) {
    return std::nullopt;
  }
  int next = 0;
  for (const auto& [name, size] : *sizes) {
    result[name] = From(next, size);
    next += size;
  }
  return result;
}

/// The part of `whole` that `share` describes.
std::optional<BitSet> ClassBits(const BitSet& whole, const ModelShare& share, int least) {
  const std::vector<int> places(whole.begin(), whole.end());
  const int count = static_cast<int>(places.size());
  BitSet indices;
  if (share.percent) {
    // Each percent is in one bit: the class has the bits of its percents.
    for (int percent = std::max(share.low, 1); percent <= share.high; ++percent) {
      indices.insert((percent - 1) * count / 100);
    }
    while (static_cast<int>(indices.size()) < least) {
      indices.insert(*indices.begin() > 0 ? *indices.begin() - 1 : *indices.rbegin() + 1);
    }
  } else {
    indices = From(share.low, share.high - share.low + 1);
    if (static_cast<int>(indices.size()) < least) {
      return std::nullopt;
    }
  }
  BitSet bits;
  for (const int index : indices) {
    if (index >= count) {
      return std::nullopt;
    }
    bits.insert(places[static_cast<std::size_t>(index)]);
  }
  return bits;
}

}  // namespace

std::optional<std::map<std::string, BitSet>> ModelBits(
    const std::vector<ModelPartition>& partitions, int bits, int least) {
  const auto asking =
      std::count_if(partitions.begin(), partitions.end(),
                    [](const auto& partition) { return partition.share.has_value(); });
  const bool divided = asking != 0;
  if (divided && asking != static_cast<std::ptrdiff_t>(partitions.size())) {
    return std::nullopt;
  }
  std::map<std::string, BitSet> parts;
  if (divided) {
    auto made = PartitionBits(partitions, bits, least);
    if (!made.has_value()) {
      return std::nullopt;
    }
    parts = *std::move(made);
  }
  std::map<std::string, BitSet> classes;
  for (const ModelPartition& partition : partitions) {
    const BitSet whole = divided ? parts.at(partition.name) : From(0, bits);
    for (const auto& [name, share] : partition.classes) {
      if (share.has_value() && !divided) {
        return std::nullopt;
      }
      const std::optional<BitSet> own =
          share.has_value() ? ClassBits(whole, *share, least) : std::optional(whole);
      if (!own.has_value()) {
        return std::nullopt;
      }
      classes[name] = *own;
    }
  }
  return classes;
}

}  // namespace qrm::test
