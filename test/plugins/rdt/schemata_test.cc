// The kernel's schemata lines.
#include "plugins/rdt/schemata.h"

#include <gtest/gtest.h>

namespace qrm::rdt::schemata_test {
namespace {

TEST(SchemataTest, ReadsPaddedNamesAndIdsWithGaps) {
  EXPECT_EQ(ParseSchemata("    MB:0= 100;16=  20\n    L3:0=fffff;16=000ff\n"),
            (Schemata{{"L3", {{0, 0xfffff}, {16, 0xff}}}, {"MB", {{0, 100}, {16, 20}}}}));
}

TEST(SchemataTest, LeavesOutWhatIsNotALineOfValues) {
  EXPECT_EQ(ParseSchemata("L3:uninitialized\nL2\n\nL2:0=3\n"), (Schemata{{"L2", {{0, 3}}}}));
}

TEST(SchemataTest, WritesMasksInHexAndANewlineAfterEachLine) {
  const Schemata schemata{{"L3CODE", {{0, 0xff0}, {8, 1}}}, {"MB", {{0, 50}}}};
  EXPECT_EQ(ToString(schemata), "L3CODE:0=ff0;8=1\nMB:0=50\n");
  EXPECT_EQ(OneLine(schemata), "L3CODE:0=ff0;8=1 MB:0=50");
}

}  // namespace
}  // namespace qrm::rdt::schemata_test
