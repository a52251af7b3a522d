// The byte work of the mux and of ttrpc.
#include "manager/runtime/nri/frames.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::frames_test {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(MuxDecoderTest, ReassemblesStreamsFromSingleBytes) {
  const std::string trunk = EncodeMuxHeader(1, 5) + "hello" + EncodeMuxHeader(2, 2) + "ab" +
                            EncodeMuxHeader(1, 6) + " world";
  std::map<uint32_t, std::string> streams;
  MuxDecoder decoder;
  for (const char byte : trunk) {
    ASSERT_TRUE(decoder
                    .Feed({&byte, 1}, [&](uint32_t connection,
                                          std::string_view piece) { streams[connection] += piece; })
                    .ok());
  }
  EXPECT_THAT(streams, UnorderedElementsAre(Pair(1, "hello world"), Pair(2, "ab")));
}

TEST(MuxDecoderTest, RejectsLengthThatNoRuntimeSends) {
  MuxDecoder decoder;
  const Status status =
      decoder.Feed(EncodeMuxHeader(1, kMaxReceiveBytes + 1000), [](uint32_t, std::string_view) {});
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
}

std::vector<TtrpcFrame> Decode(TtrpcDecoder& decoder, std::string_view bytes) {
  std::vector<TtrpcFrame> frames;
  decoder.Feed(bytes, [&](TtrpcFrame frame) { frames.push_back(std::move(frame)); });
  return frames;
}

TEST(TtrpcDecoderTest, TakesMessagesBeyondTheSendingLimit) {
  const std::string data(8 << 20, 'x');
  TtrpcDecoder decoder;
  const std::vector<TtrpcFrame> frames =
      Decode(decoder, EncodeTtrpcHeader(7, TtrpcType::kRequest, data.size()) + data);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].stream, 7U);
  EXPECT_EQ(frames[0].oversized, 0U);
  EXPECT_EQ(frames[0].data, data);
}

TEST(TtrpcDecoderTest, TakesMessagesWithoutData) {
  TtrpcDecoder decoder;
  EXPECT_EQ(Decode(decoder, EncodeTtrpcHeader(1, TtrpcType::kResponse, 0)).size(), 1U);
}

TEST(TtrpcDecoderTest, ReadsOnAfterMessageBeyondTheReceivingLimit) {
  TtrpcDecoder decoder;
  const std::size_t size = kMaxReceiveBytes + 1;
  EXPECT_TRUE(Decode(decoder, EncodeTtrpcHeader(1, TtrpcType::kRequest, size)).empty());
  const std::string piece(1 << 20, 'x');
  std::vector<TtrpcFrame> frames;
  for (std::size_t sent = 0; sent < size; sent += piece.size()) {
    frames = Decode(decoder, std::string_view(piece).substr(0, size - sent));
  }
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].oversized, size);
  EXPECT_TRUE(frames[0].data.empty());
  EXPECT_EQ(Decode(decoder, EncodeTtrpcHeader(3, TtrpcType::kRequest, 2) + "ok").size(), 1U);
}

TEST(TtrpcDecoderTest, SkipsUnknownTypes) {
  TtrpcDecoder decoder;
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): as a later runtime would.
  const auto unknown = static_cast<TtrpcType>(9);
  const std::vector<TtrpcFrame> frames =
      Decode(decoder, EncodeTtrpcHeader(1, unknown, 3) + "???" +
                          EncodeTtrpcHeader(3, TtrpcType::kRequest, 2) + "ok");
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].data, "ok");
}

}  // namespace
}  // namespace qrm::manager::frames_test
