// Probes, metrics and admissions beside those who hold connections to qrmd's ports and say nothing.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

using boost::asio::ip::tcp;
using testing::HasSubstr;

constexpr int kIdle = 400;
constexpr int kPods = 20;
constexpr std::chrono::milliseconds kSoon{100};
/// What kubelet gives a probe by default.
constexpr std::chrono::seconds kProbeTimeout{1};

/// The status line and the rest of the answer to GET; nothing when it takes longer than a probe
/// may.
std::string Get(int port, const std::string& path) {
  const auto begin = std::chrono::steady_clock::now();
  tcp::iostream stream("127.0.0.1", std::to_string(port));
  stream << "GET " << path << " HTTP/1.1\r\nHost: localhost\r\n\r\n" << std::flush;
  std::string answer{std::istreambuf_iterator<char>(stream), {}};
  return std::chrono::steady_clock::now() - begin < kProbeTimeout ? answer : std::string();
}

class IdleConnectionsTest : public testing::Test {
 protected:
  IdleConnectionsTest() {
    std::ofstream(config_) << "plugins: {cpu: {default-pool: online, pools: {online: {cpus: "
                              "\"0\"}}}}\n";
  }

  /// Keeps `count` connections open to `port`, of which none says a word.
  void Hold(int port, int count) {
    held_.reserve(held_.size() + static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      held_.emplace_back("127.0.0.1", std::to_string(port));
    }
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
  std::vector<tcp::iostream> held_;
};

TEST_F(IdleConnectionsTest, StopNeitherProbesNorScrapesNorAdmissions) {
  ASSERT_TRUE(IsOk(node_.Start(1)));
  Hold(node_.metrics_port(), kIdle);
  Hold(node_.probe_port(), kIdle);
  EXPECT_THAT(Get(node_.probe_port(), "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(Get(node_.probe_port(), "/readyz"), HasSubstr("200 OK"));
  EXPECT_THAT(Get(node_.metrics_port(), "/metrics"), HasSubstr("qrm_ready 1"));
  int soon = 0;
  for (int number = 0; number < kPods; ++number) {
    const std::string name = "pod" + std::to_string(number);
    ASSERT_TRUE(IsOk(runtime_.RunPod(
        {.name = name, .uid = name, .container = {.name = "main", .milli_cpus = 100}})));
    soon += runtime_.last_creation() < kSoon ? 1 : 0;
  }
  EXPECT_GT(soon, kPods / 2);  // others may keep the machine busy
}

}  // namespace
}  // namespace qrm::test
