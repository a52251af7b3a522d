// Probes, metrics and admissions beside clients that hold connections to qrmd's ports without
// sending, and clients whose headers on its sockets do not end.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::idle_connections_test {
namespace {

using boost::asio::ip::tcp;
using boost::asio::local::stream_protocol;
using testing::HasSubstr;

constexpr int kIdle = 400;
constexpr int kPods = 20;
constexpr std::chrono::milliseconds kSoon{100};
/// Kubelet's default timeout of a probe.
constexpr std::chrono::seconds kProbeTimeout{1};

tcp::socket Connect(boost::asio::io_context& io, int port) {
  tcp::socket connection(io);
  boost::system::error_code error;
  connection.connect({boost::asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)}, error);
  EXPECT_FALSE(error.failed()) << error.message();
  return connection;
}

/// The status line and the rest of the answer to GET; empty when it takes longer than a probe may.
std::string Get(int port, const std::string& path) {
  const auto begin = std::chrono::steady_clock::now();
  boost::asio::io_context io;
  tcp::socket connection = Connect(io, port);
  boost::system::error_code error;
  boost::asio::write(connection,
                     boost::asio::buffer("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                     error);
  std::string answer;
  boost::asio::read(connection, boost::asio::dynamic_buffer(answer), error);  // to its end
  return std::chrono::steady_clock::now() - begin < kProbeTimeout ? answer : std::string();
}

/// True when qrmd ends a connection to `socket` on which the headers of a call do not end. Source:
/// RFC 9113, 3.4 (preface), 4.1 (frames), 6.2 (HEADERS), 6.10 (CONTINUATION).
bool CutsOffHeadersWithoutEnd(const std::string& socket) {
  using std::string_literals::operator""s;
  constexpr int kFrames = 4000;  // 64 MB
  boost::asio::io_context io;
  stream_protocol::socket connection(io);
  boost::system::error_code error;
  connection.connect(stream_protocol::endpoint(socket), error);
  EXPECT_FALSE(error.failed()) << socket << ": " << error.message();
  const auto send = [&](const std::string& bytes) {
    if (!error.failed()) {
      boost::asio::write(connection, boost::asio::buffer(bytes), error);
    }
  };
  send(
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
      "\0\0\0\4\0\0\0\0\0"             // SETTINGS
      "\0\0\5\1\0\0\0\0\1\0\1a\1b"s);  // HEADERS that are to be continued
  const std::string more = "\0\x3e\x80\x09\0\0\0\0\1"s + std::string(16'000, 'a');
  for (int frame = 0; frame < kFrames && !error.failed(); ++frame) {
    send(more);
  }
  return error.failed();
}

class IdleConnectionsTest : public testing::Test {
 protected:
  IdleConnectionsTest() {
    std::ofstream(config_) << "plugins: {cpu: {default-pool: online, pools: {online: {cpus: "
                              "\"0\"}}}}\n";
  }

  /// Keeps `count` idle connections open to `port`.
  void Hold(int port, int count) {
    held_.reserve(held_.size() + static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      held_.push_back(Connect(io_, port));
    }
  }

  /// How many of kPods pods are admitted at once.
  int AdmittedSoon() {
    int soon = 0;
    for (int number = 0; number < kPods; ++number) {
      const std::string name = "pod" + std::to_string(number);
      EXPECT_TRUE(IsOk(runtime_.RunPod(
          {.name = name, .uid = name, .container = {.name = "main", .milli_cpus = 100}})));
      soon += runtime_.last_creation() < kSoon ? 1 : 0;
    }
    return soon;
  }

  const TempDir dir_;
  const std::string config_ = dir_ / "qrmd.yaml";
  SimulatedRuntime runtime_{dir_.path()};
  Node node_{{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
              .work_dir = dir_ / "node",
              .config = config_,
              .nri_socket = runtime_.nri_socket(),
              .cri_socket = runtime_.cri_socket(),
              .builtin_plugins = "cpu",
              .metrics_address = "127.0.0.1:0",
              .probe_address = "127.0.0.1:0"}};
  boost::asio::io_context io_;
  std::vector<tcp::socket> held_;
};

TEST_F(IdleConnectionsTest, StopNeitherProbesNorScrapesNorAdmissions) {
  ASSERT_TRUE(IsOk(node_.Start(1)));
  Hold(node_.metrics_port(), kIdle);
  Hold(node_.probe_port(), kIdle);
  EXPECT_THAT(Get(node_.probe_port(), "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(Get(node_.probe_port(), "/readyz"), HasSubstr("200 OK"));
  EXPECT_THAT(Get(node_.metrics_port(), "/metrics"), HasSubstr("qrm_ready 1"));
  EXPECT_GT(AdmittedSoon(), kPods / 2);  // others may keep the machine busy
}

using HeaderFloodTest = IdleConnectionsTest;

TEST_F(HeaderFloodTest, IsEndedAndStopsNoAdmissions) {
  ASSERT_TRUE(IsOk(node_.Start(1)));
  std::atomic<bool> over = false;
  std::vector<std::future<void>> floods;
  for (const char* socket : {"node/control.sock", "node/pod-resources.sock"}) {
    floods.push_back(std::async(std::launch::async, [&, path = dir_ / socket] {
      do {
        EXPECT_TRUE(CutsOffHeadersWithoutEnd(path)) << path;
      } while (!over);
    }));
  }
  EXPECT_GT(AdmittedSoon(), kPods / 2);
  over = true;
}

}  // namespace
}  // namespace qrm::test::idle_connections_test
