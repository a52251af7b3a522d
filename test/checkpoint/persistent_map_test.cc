#include "checkpoint/persistent_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::checkpoint::persistent_map_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Model = std::map<std::string, int>;
using Map = PersistentMap<int>;

Model Contents(const Map& map) {
  std::vector<std::string> order;
  Model contents;
  map.ForEach([&](const SharedText& key, int value) {
    order.push_back(key);
    contents[key] = value;
  });
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), map.size());
  return contents;
}

/// A map, its expected content, and random edits of both.
struct Pair {
  Map map;
  Model model;

  void Edit(std::mt19937& random, int keys, int edits) {
    Map::Editor editor(map);
    for (int i = 0; i < edits; ++i) {
      const std::string key = "key-" + std::to_string(random() % static_cast<unsigned>(keys));
      if (random() % 3 == 0) {
        editor.Erase(key);
        model.erase(key);
      } else {
        const int value = static_cast<int>(random());
        editor.Put(key, value);
        model[key] = value;
      }
    }
  }
};

TEST(PersistentMapTest, HoldsAddedEntriesUntilErasedAndSoDoFormerCopies) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same each time
  Pair now;
  std::vector<Pair> former;
  for (int i = 0; i < 300; ++i) {
    former.push_back(now);
    now.Edit(random, 200, 1 + static_cast<int>(random() % 20));
    ASSERT_EQ(Contents(now.map), now.model) << i;
    for (const auto& [key, value] : now.model) {
      const int* const found = now.map.Find(key);
      ASSERT_TRUE(found != nullptr && *found == value) << key;
    }
    ASSERT_EQ(now.map.Find("no such key"), nullptr);
  }
  for (const Pair& pair : former) {
    ASSERT_EQ(Contents(pair.map), pair.model);
  }
}

TEST(PersistentMapTest, KnowsTheKeysThatItDoesNotShareWithAnother) {
  std::mt19937 random(11);  // NOLINT(cert-msc51-cpp): the same each time
  Pair now;
  now.Edit(random, 3000, 3000);
  for (int i = 0; i < 500; ++i) {
    const Pair before = now;
    now.Edit(random, 3000, static_cast<int>(random() % 10));
    PodSet unlike;
    for (const auto& [key, value] : now.model) {
      const auto old = before.model.find(key);
      if (old == before.model.end() || old->second != value) {
        unlike.insert(key);
      }
    }
    for (const auto& [key, value] : before.model) {
      if (!now.model.contains(key)) {
        unlike.insert(key);
      }
    }
    ASSERT_EQ(now.map.KeysUnlike(before.map), unlike) << i;
    ASSERT_EQ(before.map.KeysUnlike(now.map), unlike) << i;
  }
  EXPECT_THAT(now.map.KeysUnlike(now.map), IsEmpty());
  EXPECT_EQ(now.map.KeysUnlike(Map()).size(), now.map.size());
}

TEST(PersistentMapTest, IsBuiltOfEntriesInOrder) {
  const Map map({{"a", 1}, {"b", 2}, {"c", 3}});
  EXPECT_EQ(Contents(map), (Model{{"a", 1}, {"b", 2}, {"c", 3}}));
  EXPECT_EQ(Contents(Map()), Model());
  Map edited = map;
  Map::Editor(edited).Put("d", 4);
  EXPECT_THAT(edited.KeysUnlike(map), ElementsAre("d"));
  EXPECT_EQ(map.size(), 3u);
}

// The keys of pods come in their order, or leave in it, on most nodes.
TEST(PersistentMapTest, StaysBalancedWhateverTheOrderOfEdits) {
  for (const bool grows : {true, false}) {
    std::vector<std::pair<SharedText, int>> entries;
    entries.reserve(4096);
    for (int i = 0; i < 4096; ++i) {
      entries.emplace_back(std::to_string(100000 + i), i);
    }
    Map map = grows ? Map() : Map(entries);
    for (int i = 0; i < (grows ? 4096 : 4000); ++i) {
      Map::Editor editor(map);
      grows ? editor.Put(entries[static_cast<std::size_t>(i)].first, i)
            : editor.Erase(entries[static_cast<std::size_t>(i)].first.str());
    }
    // Source: as the map's; each step down takes at least a quarter of the weight away.
    EXPECT_LE(static_cast<double>(map.depth()), std::log(map.size() + 1) / std::log(4.0 / 3))
        << grows;
    EXPECT_LE(map.depth(), 24u) << grows;
  }
}

}  // namespace
}  // namespace qrm::checkpoint::persistent_map_test
