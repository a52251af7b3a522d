// Random configurations on random machines: each mask equals a second model's.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/rdt/resolve.h"
#include "test/plugins/rdt/share_model.h"

namespace qrm::rdt::resolve_property_test {
namespace {

using test::BitSet;
using test::ModelPartition;
using test::ModelShare;

/// What a configuration asks of one use of a cache at one cache id.
enum class Use { kUnified, kCode, kData };

/// One random configuration: as text, and as the model's input for each cache id and use.
class RandomConfig {
 public:
  RandomConfig(unsigned seed, bool code_and_data) : random_(seed) {
    const int count = 1 + Below(4);
    by_percent_ = Below(4) != 0;
    // Half of the configurations separate code and data, in every partition as the rules require.
    apart_ = code_and_data && Below(2) == 0;
    const bool divided = Below(10) != 0;
    free_percent_ = std::vector<int>(kPlaces, 100);
    next_bit_ = std::vector<int>(kPlaces, 0);
    text_ = "partitions:\n";
    for (int partition = 0; partition < count; ++partition) {
      AddPartition(fmt::format("p{}", partition), divided, count);
    }
  }

  const std::string& text() const { return text_; }
  /// The request at `id` for `use`; where code and data are not separated, the unified request.
  const std::vector<ModelPartition>& At(int id, Use use) const {
    return asked_[Place(id == kSpecial, apart_ ? use : Use::kUnified)];
  }

  static constexpr int kSpecial = 8;  ///< the cache id with a separate share

 private:
  static constexpr std::size_t kPlaces = 6;
  static std::size_t Place(bool special, Use use) {
    return (special ? 3 : 0) + static_cast<std::size_t>(use);
  }

  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  ModelShare PartitionShare(std::size_t place, int count) {
    if (by_percent_) {
      int& left = free_percent_[place];
      const int most = std::min(left, 3 * 100 / count / 2);
      const int percent = Below(15) == 0 ? Below(101) : Below(most + 1);
      left = std::max(0, left - percent);
      return {.low = 1, .high = percent};
    }
    int& next = next_bit_[place];
    const int first = std::max(0, next + Below(3) - (Below(12) == 0 ? 2 : 0));
    const int last = first + Below(6);
    next = last + 1;
    return {.percent = false, .low = first, .high = last};
  }

  ModelShare ClassShare() {
    switch (Below(3)) {
      case 0:
        return {.low = 1, .high = 1 + Below(100)};
      case 1: {
        const int low = Below(101);
        return {.low = low, .high = std::max(1, low + Below(101 - low))};
      }
      default: {
        const int first = Below(3);
        return {.percent = false, .low = first, .high = first + Below(3)};
      }
    }
  }

  static std::string Text(const ModelShare& share, bool partition) {
    if (!share.percent) {
      uint64_t mask = 0;
      for (int bit = share.low; bit <= share.high; ++bit) {
        mask |= uint64_t{1} << bit;
      }
      return mask % 3 == 0 ? fmt::format("'0x{:x}'", mask)
                           : fmt::format("'{}-{}'", share.low, share.high);
    }
    return partition || share.low == 1 ? fmt::format("{}%", share.high)
                                       : fmt::format("{}-{}%", share.low, share.high);
  }

  /// `{all: ..., 8: ...}`, with the shares that `make` gives for each place.
  template <typename Make>
  std::string Shares(bool partition, Make make) {
    std::string text = "{";
    for (const bool special : {false, true}) {
      const ModelShare unified = make(Place(special, Use::kUnified));
      text += special ? fmt::format(", {}: ", kSpecial) : "all: ";
      if (apart_) {
        const ModelShare code = make(Place(special, Use::kCode));
        const ModelShare data = make(Place(special, Use::kData));
        text += fmt::format("{{unified: {}, code: {}, data: {}}}", Text(unified, partition),
                            Text(code, partition), Text(data, partition));
      } else {
        text += Text(unified, partition);
      }
    }
    return text + "}";
  }

  void AddPartition(const std::string& name, bool divided, int count) {
    text_ += fmt::format("  {}:\n", name);
    for (auto& place : asked_) {
      place.push_back({.name = name});
    }
    if (divided && Below(30) != 0) {
      text_ += "    l3Allocation: " +
               Shares(true,
                      [&](std::size_t place) {
                        const ModelShare share = PartitionShare(place, count);
                        asked_[place].back().share = share;
                        return share;
                      }) +
               "\n";
    }
    text_ += "    classes:\n";
    for (int number = 1 + Below(3); number > 0; --number) {
      const std::string class_name = fmt::format("{}-c{}", name, number);
      for (auto& place : asked_) {
        place.back().classes[class_name];
      }
      text_ += fmt::format("      {}: ", class_name);
      text_ += divided && Below(4) != 0
                   ? "{l3Allocation: " +
                         Shares(false,
                                [&](std::size_t place) {
                                  const ModelShare share = ClassShare();
                                  asked_[place].back().classes[class_name] = share;
                                  return share;
                                }) +
                         "}\n"
                   : "{}\n";
    }
  }

  std::mt19937 random_;
  bool by_percent_ = true;
  bool apart_ = false;
  std::vector<int> free_percent_;
  std::vector<int> next_bit_;
  std::string text_;
  std::vector<std::vector<ModelPartition>> asked_ =
      std::vector<std::vector<ModelPartition>>(kPlaces);
};

RdtInfo RandomMachine(unsigned seed) {
  std::mt19937 random(seed);
  const int bits = 8 + static_cast<int>(random() % 25);
  return {.l3 = CacheInfo{.mask = (uint64_t{1} << bits) - 1,
                          .least_bits = 1 + static_cast<int>(random() % 3),
                          .ids = {0, 1, RandomConfig::kSpecial},
                          .code_and_data = random() % 2 == 0},
          .groups = 16};
}

uint64_t MaskOf(const BitSet& bits) {
  uint64_t mask = 0;
  for (const int bit : bits) {
    mask |= uint64_t{1} << bit;
  }
  return mask;
}

/// The model's schemata of `config` on the machine; nothing where it rejects any part of it.
std::optional<std::map<std::string, Schemata>> ModelOf(const RandomConfig& config,
                                                       const CacheInfo& cache) {
  std::map<std::string, Schemata> all;
  const std::map<Use, std::string> lines =
      cache.code_and_data
          ? std::map<Use, std::string>{{Use::kCode, "L3CODE"}, {Use::kData, "L3DATA"}}
          : std::map<Use, std::string>{{Use::kUnified, "L3"}};
  for (const int id : cache.ids) {
    for (const auto& [use, line] : lines) {
      const auto bits =
          test::ModelBits(config.At(id, use), std::popcount(cache.mask), cache.least_bits);
      if (!bits.has_value()) {
        return std::nullopt;
      }
      for (const auto& [name, own] : *bits) {
        all[name][line][id] = MaskOf(own);
      }
    }
  }
  return all;
}

TEST(ResolvePropertyTest, MasksOf200ConfigurationsEqualTheModels) {
  int resolved = 0;
  int refused = 0;
  for (unsigned seed = 1; resolved < 200; ++seed) {
    const RdtInfo info = RandomMachine(seed);
    const CacheInfo cache = info.l3.value_or(CacheInfo());
    const RandomConfig random(seed, cache.code_and_data);
    SCOPED_TRACE(fmt::format("seed {}, cache {:x}, least {} bits, {}", seed, cache.mask,
                             cache.least_bits, random.text()));
    const auto section = config::Section::Parse(random.text(), "random.yaml");
    const StatusOr<RdtConfig> config = ParseRdtConfig(*section);
    ASSERT_TRUE(config.ok()) << MessageOf(config.status());
    const auto schemata = Resolve(*config, info);
    const auto model = ModelOf(random, cache);
    ASSERT_EQ(schemata.ok(), model.has_value()) << MessageOf(schemata.status());
    if (!schemata.ok()) {
      ++refused;
      continue;
    }
    ++resolved;
    ASSERT_THAT(model, testing::Optional(*schemata));
  }
  EXPECT_GT(refused, 20) << "and so are those that both reject";
}

}  // namespace
}  // namespace qrm::rdt::resolve_property_test
