// The states of a socket's path: listening, dead, absent.
#include "api/base/unix_socket.h"

#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::unix_socket_test {
namespace {

/// A socket that is bound to a path, whose file stays.
class BoundSocket {
 public:
  explicit BoundSocket(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    const sockaddr_un address = SocketAddress(path).value_or(sockaddr_un{});
    EXPECT_TRUE(fd_ >= 0 &&
                ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~BoundSocket() { ::close(fd_); }
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  void Listen(int backlog) const { EXPECT_EQ(::listen(fd_, backlog), 0); }

 private:
  const int fd_;
};

class ProbeSocketTest : public testing::Test {
 protected:
  const test::TempDir dir_;
  const std::string path_ = dir_ / "some.sock";
};

TEST_F(ProbeSocketTest, FindsAListenerAlsoWhenItsQueueIsFull) {
  const BoundSocket socket(path_);
  socket.Listen(0);
  for (int i = 0; i < 5; ++i) {  // no server accepts them
    EXPECT_EQ(ProbeSocket(path_), 0);
  }
}

TEST_F(ProbeSocketTest, DistinguishesAnAbsentSocketFromADeadOne) {
  EXPECT_EQ(ProbeSocket(path_), ENOENT);
  {
    const BoundSocket killed(path_);
  }
  EXPECT_EQ(ProbeSocket(path_), ECONNREFUSED);
}

TEST_F(ProbeSocketTest, RejectsAPathThatNoSocketCanHave) {
  EXPECT_EQ(ProbeSocket(std::string(kMaxSocketPath + 1, 'x')), ENAMETOOLONG);
  EXPECT_FALSE(SocketAddress(std::string(kMaxSocketPath + 1, 'x')).has_value());
  EXPECT_TRUE(SocketAddress(std::string(kMaxSocketPath, 'x')).has_value());
  EXPECT_FALSE(SocketAddress("").has_value());
}

}  // namespace
}  // namespace qrm::unix_socket_test
