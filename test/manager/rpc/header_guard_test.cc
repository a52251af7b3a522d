#include "manager/rpc/header_guard.h"

#include <string>

#include <gtest/gtest.h>

namespace qrm::manager::header_guard_test {
namespace {

constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kResetStream = 3;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kPing = 6;
constexpr uint8_t kWindowUpdate = 8;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kEndHeaders = 4;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kAck = 1;
constexpr uint8_t kWholeCall = kEndHeaders | kEndStream;
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Kind {
  uint8_t type = 0;
  uint8_t flags = 0;
};

std::string Frame(Kind kind, std::size_t size) {
  std::string frame = {static_cast<char>(size >> 16),
                       static_cast<char>(size >> 8),
                       static_cast<char>(size),
                       static_cast<char>(kind.type),
                       static_cast<char>(kind.flags),
                       0,
                       0,
                       0,
                       1};
  return frame + std::string(size, '\x09');
}

/// The bytes of a client that has taken the server's settings.
std::string Greeting() {
  return kPreface + Frame({kSettings, kAck}, 0);
}

class HeaderGuardTest : public testing::Test {
 protected:
  bool Take(const std::string& bytes) { return guard_.Take(bytes, now_); }
  bool IsIncomplete() const { return guard_.incomplete_since().has_value(); }

  HeaderGuard guard_;
  HeaderGuard::Time now_{std::chrono::hours(1)};
};

TEST_F(HeaderGuardTest, ACallPassesHoweverItsBytesAreCut) {
  const std::string call = kPreface + Frame({kHeaders, 0}, 5000) +
                           Frame({kContinuation, kEndHeaders}, 5000) + Frame({kData, 1}, 100'000) +
                           Frame({kHeaders, kEndHeaders}, 0);
  for (std::size_t piece = 1; piece < call.size(); piece = 7 * piece + 1) {
    HeaderGuard guard;
    for (std::size_t at = 0; at < call.size(); at += piece) {
      ASSERT_TRUE(guard.Take(std::string_view(call).substr(at, piece), now_)) << piece;
    }
    EXPECT_FALSE(guard.incomplete_since().has_value()) << piece;
  }
}

TEST_F(HeaderGuardTest, HeadersAreIncompleteUntilTheirLastByte) {
  const std::string headers = kPreface + Frame({kHeaders, kEndHeaders}, 10);
  EXPECT_TRUE(Take(headers.substr(0, headers.size() - 1)));
  EXPECT_TRUE(IsIncomplete());
  EXPECT_TRUE(Take(headers.substr(headers.size() - 1)));
  EXPECT_FALSE(IsIncomplete());
}

TEST_F(HeaderGuardTest, LongHeadersOfOneFrameEndTheConnection) {
  EXPECT_TRUE(Take(kPreface + Frame({kHeaders, kEndHeaders}, HeaderGuard::kMaxBytes)));
  EXPECT_FALSE(Take(Frame({kHeaders, kEndHeaders}, HeaderGuard::kMaxBytes + 1)));
}

TEST_F(HeaderGuardTest, LongHeadersOfSeveralFramesEndTheConnectionAtTheFirstExcessFrame) {
  EXPECT_TRUE(Take(kPreface + Frame({kHeaders, 0}, HeaderGuard::kMaxBytes)));
  EXPECT_FALSE(Take(Frame({kContinuation, 0}, 1).substr(0, 9)));
}

TEST_F(HeaderGuardTest, HeadersOfManyEmptyFramesEndTheConnection) {
  EXPECT_TRUE(Take(kPreface + Frame({kHeaders, 0}, 0)));
  for (int frame = 1; frame < HeaderGuard::kMaxFrames; ++frame) {
    EXPECT_TRUE(Take(Frame({kContinuation, 0}, 0)));
  }
  EXPECT_FALSE(Take(Frame({kContinuation, 0}, 0)));
}

TEST_F(HeaderGuardTest, HeadersThatAreIncompleteForTooLongEndTheConnection) {
  EXPECT_TRUE(Take(kPreface + Frame({kHeaders, 0}, 10)));
  now_ += HeaderGuard::kMaxTime - std::chrono::milliseconds(1);
  EXPECT_TRUE(Take(Frame({kContinuation, 0}, 1)));
  now_ += std::chrono::milliseconds(1);
  EXPECT_FALSE(Take(Frame({kContinuation, kEndHeaders}, 1)));
}

TEST_F(HeaderGuardTest, CallsDoNotAddUp) {
  EXPECT_TRUE(Take(Greeting()));
  for (int call = 0; call < 100; ++call) {
    EXPECT_TRUE(Take(Frame({kHeaders, kEndHeaders}, 1000) + Frame({kData, 1}, 10)));
    now_ += HeaderGuard::kMaxTime;
  }
}

struct Flood {
  std::string name;  // CamelCase: part of the test's name
  Kind kind;
  std::size_t size = 0;
  int at_once = 0;  ///< so many pass
};

class FloodedHeaderGuardTest : public testing::TestWithParam<Flood> {
 protected:
  void SetUp() override {
    EXPECT_TRUE(guard_.Take(Greeting(), now_));
    now_ += HeaderGuard::kBurst;
  }

  /// How many of `wanted` frames pass.
  int Send(int wanted) {
    const std::string frame = Frame(GetParam().kind, GetParam().size);
    int passed = 0;
    while (passed < wanted && guard_.Take(frame, now_)) {
      ++passed;
    }
    return passed;
  }

  HeaderGuard guard_;
  HeaderGuard::Time now_{std::chrono::hours(1)};
};

TEST_P(FloodedHeaderGuardTest, FramesBeyondABurstEndTheConnection) {
  EXPECT_EQ(Send(1'000'000), GetParam().at_once);
}

TEST_P(FloodedHeaderGuardTest, AsManyASecondPassForEver) {
  for (int second = 0; second < 10; ++second) {
    ASSERT_EQ(Send(GetParam().at_once), GetParam().at_once) << second;
    now_ += std::chrono::seconds(1);
  }
}

const Flood kFloods[] = {
    {"Ping", {kPing, 0}, 8, 1000},
    {"ResetStream", {kResetStream, 0}, 4, 100},
    {"Settings", {kSettings, 0}, 0, 100},
    {"Headers", {kHeaders, kWholeCall}, 1, 20'000},
    {"WindowUpdate", {kWindowUpdate, 0}, 4, 100'000},
    {"EmptyData", {kData, kEndStream}, 0, 100'000},
    {"Unknown", {0xfa, 0}, 0, 100'000},
};
INSTANTIATE_TEST_SUITE_P(Floods, FloodedHeaderGuardTest, testing::ValuesIn(kFloods),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_F(HeaderGuardTest, CountsWhatWasSentOfRequestsThatAreNotComplete) {
  EXPECT_TRUE(Take(kPreface + Frame({kHeaders, kEndHeaders}, 10)));
  EXPECT_TRUE(Take(Frame({kData, 0}, 1000)));
  EXPECT_TRUE(Take(Frame({kData, 0}, 1000)));
  EXPECT_GE(guard_.unfinished_bytes(), 2000u);
  EXPECT_TRUE(Take(Frame({kData, kEndStream}, 10)));
  EXPECT_EQ(guard_.unfinished_bytes(), 0u);
}

TEST_F(HeaderGuardTest, ARequestThatIsResetIsNoMore) {
  EXPECT_TRUE(Take(kPreface + Frame({kHeaders, kEndHeaders}, 10) + Frame({kData, 0}, 1000)));
  EXPECT_TRUE(Take(Frame({kResetStream, 0}, 4)));
  EXPECT_EQ(guard_.unfinished_bytes(), 0u);
}

TEST_F(HeaderGuardTest, EmptyFramesOfARequestCountToo) {
  EXPECT_TRUE(Take(kPreface + Frame({kHeaders, kEndHeaders}, 10)));
  for (int frame = 0; frame < 1000; ++frame) {
    EXPECT_TRUE(Take(Frame({kData, 0}, 0)));
  }
  EXPECT_GE(guard_.unfinished_bytes(), 10'000u);
}

TEST_F(HeaderGuardTest, ACallThatIsBegunCountsAsUnfinished) {
  EXPECT_TRUE(Take(Greeting()));
  EXPECT_TRUE(Take(Frame({kHeaders, kEndHeaders}, 10)));
  EXPECT_GE(guard_.unfinished_bytes(), 4096u);
  EXPECT_TRUE(Take(Frame({kHeaders, kWholeCall}, 10)));  // its trailers
  EXPECT_EQ(guard_.unfinished_bytes(), 0u);
}

TEST_F(HeaderGuardTest, CountsRequestsWhoseMessagesAreCompressed) {
  const std::string compressed = {1, 0, 0, 0, 1, 1};
  const std::string plain = {0, 0, 0, 0, 1, 1};
  const auto call = [](const std::string& message) {
    std::string data = Frame({kData, kEndStream}, message.size());
    return Frame({kHeaders, kEndHeaders}, 10) +
           data.replace(data.size() - message.size(), message.size(), message);
  };
  EXPECT_TRUE(Take(Greeting() + call(plain)));
  EXPECT_EQ(guard_.TakeCompressed(), 0);
  for (const char byte : call(compressed)) {
    EXPECT_TRUE(Take({byte}));
  }
  EXPECT_TRUE(Take(call(compressed) + call(plain)));
  EXPECT_EQ(guard_.TakeCompressed(), 2);
  EXPECT_EQ(guard_.TakeCompressed(), 0);
}

TEST_F(HeaderGuardTest, CallsBeforeTheSettingsAreAcknowledgedAreFew) {
  EXPECT_TRUE(Take(kPreface));
  for (int call = 0; call < HeaderGuard::kMaxCalls; ++call) {
    EXPECT_TRUE(Take(Frame({kHeaders, kWholeCall}, 10)));
  }
  EXPECT_FALSE(Take(Frame({kHeaders, kWholeCall}, 10)));
}

// A client that waits for each answer, and acknowledges its bytes.
TEST_F(HeaderGuardTest, SeveralThousandCallsASecondPass) {
  EXPECT_TRUE(Take(Greeting()));
  for (int call = 0; call < 10'000; ++call) {
    ASSERT_TRUE(Take(Frame({kHeaders, kEndHeaders}, 100) + Frame({kData, kEndStream}, 10) +
                     Frame({kWindowUpdate, 0}, 4)));
    now_ += std::chrono::microseconds(100);
  }
}

}  // namespace
}  // namespace qrm::manager::header_guard_test
