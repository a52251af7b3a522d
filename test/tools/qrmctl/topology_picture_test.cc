#include "tools/qrmctl/topology_picture.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

namespace qrm::manager::cli::topology_picture_test {
namespace {

using testing::ElementsAre;

constexpr char kNode[] = R"({
  "cpus": [{"id": 0, "core": 0, "node": 0, "package": 0}, {"id": 1, "core": 0, "node": 0},
           {"id": 2, "core": 1, "node": 1, "package": 1}],
  "nodes": [{"id": 0, "package": 0, "memory_bytes": 2048}, {"id": 1, "package": 1}],
  "use": [{"node": 0, "exclusive_cpus": "0", "shared_cpus": "1", "free_cpus": "", "containers": [
            {"container": "shop/<db>&/main", "cpus": "0", "exclusive": true, "memory_bytes": 1024},
            {"container": "shop/web/main", "cpus": "1", "exclusive": false}]}]})";

/// The tooltip of each CPU.
std::vector<std::string> Titles(const pugi::xml_document& picture) {
  std::vector<std::string> titles;
  for (const pugi::xpath_node title : picture.select_nodes("//title")) {
    titles.emplace_back(title.node().child_value());
  }
  return titles;
}

std::string FillOf(const pugi::xml_document& picture, const std::string& title) {
  return picture.select_node(("//g[title='" + title + "']/rect").c_str())
      .node()
      .attribute("fill")
      .value();
}

TEST(TopologyPictureTest, ShowsTheContainerOfEachCpu) {
  pugi::xml_document picture;
  ASSERT_TRUE(picture.load_string(TopologySvg(Document::parse(kNode)).c_str()));
  EXPECT_THAT(Titles(picture), ElementsAre("CPU 0, core 0: shop/<db>&/main",
                                           "CPU 1, core 0: shared", "CPU 2, core 1: free"));
  const std::string own = FillOf(picture, "CPU 0, core 0: shop/<db>&/main");
  const std::string shared = FillOf(picture, "CPU 1, core 0: shared");
  EXPECT_NE(own, shared);
  EXPECT_NE(shared, FillOf(picture, "CPU 2, core 1: free"));
  EXPECT_FALSE(picture.select_nodes("//text[.='node 0: 2Ki']").empty());
  EXPECT_FALSE(picture.select_nodes("//text[.='shop/<db>&/main: CPUs 0, memory 1Ki']").empty());
}

TEST(TopologyPictureTest, DrawsEveryCpuWithinItsFrame) {
  Document machine = Document::parse(kNode);
  machine.erase("use");
  for (int cpu = 3; cpu < 67; ++cpu) {
    machine["cpus"].push_back({{"id", cpu}, {"core", cpu}, {"node", 1}});
  }
  pugi::xml_document picture;
  ASSERT_TRUE(picture.load_string(TopologySvg(machine).c_str()));
  EXPECT_EQ(Titles(picture).size(), 67U);
  const pugi::xml_node root = picture.child("svg");
  for (const pugi::xpath_node found : picture.select_nodes("//g[title]/rect")) {
    int x = found.node().attribute("width").as_int();
    int y = found.node().attribute("height").as_int();
    for (pugi::xml_node group = found.node().parent(); group != root; group = group.parent()) {
      const std::string move = group.attribute("transform").value();  // "translate(8,26)"
      x += std::stoi(move.substr(move.find('(') + 1));
      y += std::stoi(move.substr(move.find(',') + 1));
    }
    EXPECT_LE(x, root.attribute("width").as_int());
    EXPECT_LE(y, root.attribute("height").as_int());
  }
}

}  // namespace
}  // namespace qrm::manager::cli::topology_picture_test
