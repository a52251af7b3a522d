// Foreign text: what is escaped, and where it is cut.
#include "api/base/foreign_text.h"

#include <gtest/gtest.h>

namespace qrm::foreign_text_test {
namespace {

TEST(ForeignTextTest, EscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(Escaped("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(Escaped(std::string_view("\0\x1b\x7f", 3)), "\\x00\\x1b\\x7f");
  EXPECT_EQ(Escaped("\xc2\x9b"), "\\xc2\\x9b") << "C1, which some terminals obey";
  EXPECT_EQ(Escaped("\x9b \xc3 \xe2\x82 \xff"), "\\x9b \\xc3 \\xe2\\x82 \\xff");
}

TEST(ForeignTextTest, EscapesFormatCharacters) {
  EXPECT_EQ(Escaped("gpj.\u202egnp"), "gpj.\\u202egnp") << "reads as a picture otherwise";
  EXPECT_EQ(Escaped("we\u200bb"), "we\\u200bb") << "it looks like web";
  EXPECT_EQ(Escaped("\u00ad \u2028 \u2066 \ufeff"), "\\u00ad \\u2028 \\u2066 \\ufeff");
  EXPECT_EQ(Escaped("\U000e0041"), "\\udb40\\udc41") << "a tag";
}

TEST(ForeignTextTest, JsonMeansTheSameWithoutThem) {
  EXPECT_EQ(EscapedJson("{\n \"a\u202e\x7f\u009b\": \"ä\\n\U000e0041\"\n}"),
            "{\n \"a\\u202e\\u007f\\u009b\": \"ä\\n\\udb40\\udc41\"\n}");
}

TEST(ForeignTextTest, LeavesOtherCharactersAsTheyAre) {
  EXPECT_EQ(Escaped("plain, ä, €, 😀"), "plain, ä, €, 😀");
}

TEST(ForeignTextTest, KnowsWhatIsUtf8) {
  for (const char* text : {"", "plain", "ä€😀", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << Escaped(text);
  }
  for (const char* text :
       {"a\xff", "\x80", "\xc3", "\xc0\xaf" /* a longer form */, "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80" /* a surrogate */, "\xf4\x90\x80\x80" /* beyond Unicode */}) {
    EXPECT_FALSE(IsUtf8(text)) << Escaped(text);
  }
}

TEST(ForeignTextTest, CutsAtAWholeCharacterAndReportsTheLength) {
  EXPECT_EQ(Cut("abc", 3), "abc");
  EXPECT_EQ(Cut("abcd", 3), "abc... (4 bytes)");
  EXPECT_EQ(Cut("ab€", 4), "ab... (5 bytes)");
  EXPECT_EQ(Cut("\x80\x80\x80\x80\x80\x80\x80\x80", 6).size(), 2 + sizeof("... (8 bytes)") - 1)
      << "continuations without a beginning are not a character";
}

TEST(ForeignTextTest, QuotesTwoHundredBytes) {
  EXPECT_EQ(Quoted(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(Quoted(std::string(250'000, 'x')), std::string(200, 'x') + "... (250000 bytes)");
}

}  // namespace
}  // namespace qrm::foreign_text_test
