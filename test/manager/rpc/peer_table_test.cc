// Limits of connections by process and user, with time and peers as arguments.
#include "manager/rpc/peer_table.h"

#include <array>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace qrm::manager::peer_table_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const PeerTable::Time kStart{seconds(1000)};

/// Connected sockets; `fds` has our ends of them.
class Sockets {
 public:
  Sockets() = default;
  ~Sockets() {
    for (const int fd : fds) {
      close(fd);
    }
    for (const int fd : far_) {
      close(fd);
    }
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  int Make() {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    fds.push_back(pair[0]);
    far_.push_back(pair[1]);
    return pair[0];
  }
  /// Closes the latest one.
  void Close() {
    close(fds.back());
    fds.pop_back();
  }
  /// Whether the other end of the latest one sees the end.
  bool IsAtEnd() const {
    char byte = 0;
    return recv(far_.back(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  std::vector<int> fds;

 private:
  std::vector<int> far_;
};

PeerCredentials Process(pid_t pid, uid_t uid = 1) {
  return {.pid = pid, .uid = uid};
}

TEST(PeerTableTest, OneProcessCannotTakeAllOfItsUser) {
  Sockets sockets;
  PeerTable table({.per_user = 3, .per_process = 2});
  EXPECT_TRUE(table.Add(sockets.Make(), Process(1), kStart).ok());
  EXPECT_TRUE(table.Add(sockets.Make(), Process(1), kStart).ok());
  EXPECT_EQ(table.Add(sockets.Make(), Process(1), kStart).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.Add(sockets.Make(), Process(2), kStart).ok());
}

TEST(PeerTableTest, OneUserCannotTakeAllWithManyProcesses) {
  Sockets sockets;
  PeerTable table({.total = 4, .per_user = 3, .per_process = 1});
  for (pid_t pid = 1; pid <= 3; ++pid) {
    EXPECT_TRUE(table.Add(sockets.Make(), Process(pid, 1), kStart).ok());
  }
  EXPECT_EQ(table.Add(sockets.Make(), Process(4, 1), kStart).code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.Add(sockets.Make(), Process(5, 2), kStart).ok());
}

TEST(PeerTableTest, ClosedConnectionsMakeRoomAfterAWhile) {
  Sockets sockets;
  PeerTable table({.per_process = 1});
  EXPECT_TRUE(table.Add(sockets.Make(), Process(1), kStart).ok());
  EXPECT_FALSE(table.Add(sockets.Make(), Process(1), kStart).ok());  // sweeps
  sockets.Close();
  close(sockets.fds.front());
  const int other_kind = open("/dev/null", O_RDONLY | O_CLOEXEC);  // takes the number
  sockets.fds.front() = other_kind;
  EXPECT_FALSE(table.Add(sockets.Make(), Process(1), kStart + milliseconds(1)).ok());
  EXPECT_TRUE(table.Add(sockets.Make(), Process(1), kStart + PeerTable::kSweepInterval).ok());
}

TEST(PeerTableTest, ProcessThatConnectsTooOftenIsRejectedAndOthersAreNot) {
  Sockets sockets;
  PeerTable table({.per_process = 2, .per_second = 10});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(table.Add(sockets.Make(), Process(1), kStart).ok());
    sockets.Close();
  }
  EXPECT_FALSE(table.Add(sockets.Make(), Process(1), kStart).ok());
  EXPECT_TRUE(table.Add(sockets.Make(), Process(2), kStart).ok());
  EXPECT_TRUE(table.Add(sockets.Make(), Process(1), kStart + milliseconds(100)).ok());
}

TEST(PeerTableTest, UserThatConnectsTooOftenWithManyProcessesIsRejectedAndOthersAreNot) {
  Sockets sockets;
  PeerTable table({.per_user = 4, .per_process = 2, .per_second = 10});
  for (pid_t pid = 1; pid <= 4; ++pid) {
    EXPECT_TRUE(table.Add(sockets.Make(), Process(pid), kStart).ok());
    sockets.Close();
  }
  EXPECT_FALSE(table.Add(sockets.Make(), Process(5), kStart).ok());
  EXPECT_TRUE(table.Add(sockets.Make(), Process(6, 2), kStart).ok());
}

TEST(PeerTableTest, DisconnectEndsAConnectionAndNoOther) {
  Sockets sockets;
  PeerTable table({});
  const int fd = sockets.Make();
  table.Disconnect(fd);  // not one of ours
  EXPECT_FALSE(sockets.IsAtEnd());
  ASSERT_TRUE(table.Add(fd, Process(1), kStart).ok());
  table.Disconnect(fd);
  EXPECT_TRUE(sockets.IsAtEnd());
}

}  // namespace
}  // namespace qrm::manager::peer_table_test
