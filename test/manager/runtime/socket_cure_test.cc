// The cure fits the kernel's error.
#include "manager/runtime/socket_cure.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::socket_cure_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(SocketCureTest, NriIsToBeEnabledOnlyWhereNothingElseIsMissing) {
  EXPECT_THAT(SocketCure(RuntimeSocket::kNri, ENOENT), HasSubstr("enable NRI"));
  EXPECT_THAT(SocketCure(RuntimeSocket::kNri, ECONNREFUSED), HasSubstr("start the runtime"));
  EXPECT_THAT(SocketCure(RuntimeSocket::kNri, EACCES),
              AllOf(HasSubstr("as root"), Not(HasSubstr("NRI"))));
}

TEST(SocketCureTest, CriHasNoOtherCureThanTheRuntimeAndItsKey) {
  EXPECT_THAT(SocketCure(RuntimeSocket::kCri, ENOENT), HasSubstr("cri-socket"));
  EXPECT_EQ(SocketCure(RuntimeSocket::kCri, ECONNREFUSED), "start the runtime");
  EXPECT_THAT(SocketCure(RuntimeSocket::kCri, 0), HasSubstr("hangs"));
}

}  // namespace
}  // namespace qrm::manager::socket_cure_test
