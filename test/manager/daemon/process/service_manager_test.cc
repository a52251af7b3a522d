// Notifications to systemd.
#include "manager/daemon/process/service_manager.h"

#include <chrono>
#include <cstdlib>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::manager::service_manager_test {
namespace {

using boost::asio::local::datagram_protocol;

class ServiceManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("NOTIFY_SOCKET", (dir_ / "notify").c_str(), 1);
    ::setenv("WATCHDOG_USEC", "2000", 1);
  }
  void TearDown() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
  }
  std::string Receive() {
    std::string line(100, ' ');
    line.resize(socket_.receive(boost::asio::buffer(line)));
    return line;
  }

  test::TempDir dir_;
  boost::asio::io_context io_;
  datagram_protocol::socket socket_{io_, datagram_protocol::endpoint(dir_ / "notify")};
  bool alive_ = true;
};

TEST_F(ServiceManagerTest, IsNotifiedThatTheDaemonServesLivesAndEnds) {
  ServiceManager manager(io_, [this] { return alive_; });
  manager.Ready();
  EXPECT_EQ(Receive(), "READY=1");
  io_.run_one();
  EXPECT_EQ(Receive(), "WATCHDOG=1");
  io_.run_one();
  EXPECT_EQ(Receive(), "WATCHDOG=1");
  manager.Ending();
  EXPECT_EQ(Receive(), "STOPPING=1");
  io_.run();  // nothing is left to do
}

TEST_F(ServiceManagerTest, IsNotNotifiedByADaemonThatHangs) {
  alive_ = false;
  ServiceManager manager(io_, [this] { return alive_; });
  manager.Ready();
  EXPECT_EQ(Receive(), "READY=1");
  io_.run_one();
  io_.run_one();
  manager.Ending();
  EXPECT_EQ(Receive(), "STOPPING=1") << "no sign of life comes before it";
}

TEST_F(ServiceManagerTest, FeedsNoWatchdogOfAnotherProcess) {
  ::setenv("WATCHDOG_PID", "1", 1);
  ServiceManager manager(io_, [this] { return alive_; });
  manager.Ready();
  EXPECT_EQ(io_.poll(), 0U);
}

TEST_F(ServiceManagerTest, NothingIsSentWithoutASocket) {
  ::unsetenv("NOTIFY_SOCKET");
  ServiceManager manager(io_, [this] { return alive_; });
  manager.Ready();
  EXPECT_EQ(io_.poll(), 0U);
  EXPECT_EQ(socket_.available(), 0U);
}

}  // namespace
}  // namespace qrm::manager::service_manager_test
