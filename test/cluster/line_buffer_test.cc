#include "cluster/line_buffer.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::cluster::line_buffer_test {
namespace {

using testing::ElementsAre;

TEST(LineBufferTest, LinesComeWholeHoweverTheyAreCut) {
  LineBuffer buffer;
  std::vector<std::string> lines;
  for (const std::string_view part : {"a", "b\nc", "", "d\n\ne\n", "rest"}) {
    EXPECT_TRUE(buffer.Append(part, [&](std::string_view line) { lines.emplace_back(line); }));
  }
  EXPECT_THAT(lines, ElementsAre("ab", "cd", "", "e"));
}

TEST(LineBufferTest, ALineWithoutAnEndIsNotKeptForEver) {
  LineBuffer buffer;
  const std::string much(LineBuffer::kMostBytes, 'x');
  EXPECT_TRUE(buffer.Append(much, [](std::string_view) {}));
  EXPECT_FALSE(buffer.Append("x", [](std::string_view) {}));
}

}  // namespace
}  // namespace qrm::cluster::line_buffer_test
