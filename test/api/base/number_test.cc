// ParseNumber takes all of a text or none.
#include "api/base/number.h"

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

namespace qrm::number_test {
namespace {

TEST(ParseNumberTest, ReadsWholeNumbersOfTheTypesRange) {
  EXPECT_EQ(ParseNumber<int>("-12"), -12);
  EXPECT_EQ(ParseNumber<uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseNumber<uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint32_t>("-1"), std::nullopt);
}

TEST(ParseNumberTest, ReadsNothingThatIsNotANumberToItsEnd) {
  for (const char* const text : {"", " 1", "1 ", "1x", "+1", "0x1", "one"}) {
    EXPECT_EQ(ParseNumber<int>(text), std::nullopt) << text;
  }
}

TEST(ParseNumberTest, ReadsOtherBasesAndFractions) {
  EXPECT_EQ(ParseNumber<uint32_t>("ff", 16), 255U);
  EXPECT_EQ(ParseNumber<uint32_t>("fg", 16), std::nullopt);
  EXPECT_EQ(ParseNumber<double>("0.5"), 0.5);
}

}  // namespace
}  // namespace qrm::number_test
