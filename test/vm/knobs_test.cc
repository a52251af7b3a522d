// The settings of the reference compute driver on a real machine, this one or that of
// scripts/vm.sh: its kernel's interrupts, idle latency and cgroups.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include "api/base/file_descriptor.h"
#include "api/base/number.h"
#include "plugins/cci/cci_driver.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/kernel_values.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"
#include "topology/discovery.h"

namespace qrm::cci::knobs_test {
namespace {

using std::chrono::milliseconds;
using test::Await;
using test::IsOk;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{120};  // the emulated machine is slow

/// Interrupt -> CPU -> how many of it that CPU has handled.
using Counts = std::map<std::string, std::map<int, int64_t>>;

/// Source: /proc/interrupts has a column for each CPU that is online, and lines of numbered
/// interrupts before those of every CPU.
Counts ReadCounts() {
  std::ifstream file("/proc/interrupts");
  std::string line;
  std::getline(file, line);
  std::istringstream header(line);
  std::vector<int> cpus;
  for (std::string word; header >> word;) {
    cpus.push_back(ParseNumber<int>(word.substr(3)).value_or(-1));
  }
  Counts counts;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    name.pop_back();
    if (ParseNumber<int>(name).has_value()) {
      for (const int cpu : cpus) {
        words >> counts[name][cpu];
      }
    }
  }
  return counts;
}

int64_t OnCpu(const Counts& counts, int cpu) {
  int64_t sum = 0;
  for (const auto& [name, by_cpu] : counts) {
    sum += by_cpu.at(cpu);
  }
  return sum;
}

int64_t OfInterrupt(const Counts& counts, const std::string& name) {
  int64_t sum = 0;
  for (const auto& [cpu, count] : counts.at(name)) {
    sum += count;
  }
  return sum;
}

/// The address of the default route, as the kernel has it; 0 where there is none.
uint32_t Gateway() {
  std::ifstream routes("/proc/net/route");
  for (std::string line; std::getline(routes, line);) {
    std::istringstream words(line);
    std::string device;
    std::string destination;
    std::string gateway;
    words >> device >> destination >> gateway;
    if (destination == "00000000") {
      return ParseNumber<uint32_t>(gateway, 16).value_or(0);
    }
  }
  return 0;
}

/// Has a disk and a network device work, in a separate thread, until it goes.
class Work {
 public:
  explicit Work(const std::string& file) : thread_([this, file] { Run(file); }) {}
  ~Work() {
    is_over_ = true;
    thread_.join();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Until so many more blocks are on the disk and as many echoes are back. False when it takes
  /// too long.
  bool Go(int64_t times) const {
    const int64_t writes = writes_;
    const int64_t echoes = echoes_;
    return Await([&] { return writes_ >= writes + times && echoes_ >= echoes + times; }, kPatience);
  }

 private:
  void Run(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const FileDescriptor network(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
    if (file.get() < 0 || network.get() < 0) {
      return;
    }
    const timeval patience{.tv_usec = 100'000};
    ::setsockopt(network.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const sockaddr_in gateway{.sin_family = AF_INET, .sin_addr = {.s_addr = Gateway()}};
    std::array<char, 4096> block{};
    while (!is_over_) {
      block[0] = static_cast<char>(writes_.load());
      writes_ +=
          ::pwrite(file.get(), block.data(), block.size(), 0) > 0 && ::fdatasync(file.get()) == 0
              ? 1
              : 0;
      icmphdr echo{.type = ICMP_ECHO};
      echo.checksum = static_cast<uint16_t>(~uint16_t{ICMP_ECHO});
      ::sendto(network.get(), &echo, sizeof(echo), 0, reinterpret_cast<const sockaddr*>(&gateway),
               sizeof(gateway));
      echoes_ += ::recv(network.get(), block.data(), block.size(), 0) > 0 ? 1 : 0;
    }
  }

  std::atomic<bool> is_over_ = false;
  std::atomic<int64_t> writes_ = 0;
  std::atomic<int64_t> echoes_ = 0;
  std::thread thread_;
};

class KnobsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root may set values of the machine";
    }
    auto machine = Discover(*MachineSource::Parse("live"));
    ASSERT_TRUE(IsOk(machine.status()));
    online_ = machine->cpu_set();
    auto knobs = kernel::KernelValues::Open(files_, dir_ / "knobs.json");
    ASSERT_TRUE(IsOk(knobs.status()));
    driver_ = std::make_unique<CciDriver>(*std::move(machine), Policies(), files_,
                                          *std::move(knobs), FindScheduling("/sys/fs/cgroup"));
  }
  void TearDown() override {
    if (driver_ != nullptr) {
      EXPECT_TRUE(IsOk(driver_->Remove(key_)));
    }
    for (const auto& [path, value] : before_) {
      EXPECT_TRUE(IsOk(files_.Write(path, value)));
    }
  }

  static std::string FileOf(const std::string& interrupt) {
    return "proc/irq/" + interrupt + "/smp_affinity_list";
  }
  std::string Read(const std::string& path) const { return files_.Read(path).value_or(""); }
  /// Sets a file until the test is over.
  Status Set(const std::string& path, const std::string& value) {
    const std::string before = Read(path);
    QRM_RETURN_IF_ERROR(files_.Write(path, value));
    before_.emplace(path, before);
    return OkStatus();
  }

  Status Admit(int cpu, const std::string& attributes) {
    return driver_
        ->Admit({.key = key_,
                 .spec = fmt::format("{{cores: 'cpu:{}', attributes: '{}'}}", cpu, attributes),
                 .available = online_,
                 .milli_cpus = 1000})
        .status();
  }
  Status Start(const std::string& cgroup = "") {
    return driver_->Add({.key = key_, .container_id = "c1", .cgroup = cgroup});
  }
  Status Run(int cpu, const std::string& attributes) {
    QRM_RETURN_IF_ERROR(Admit(cpu, attributes));
    return Start();
  }

  const ContainerKey key_{"uid", "main"};
  const test::TempDir dir_;
  kernel::SystemFiles files_{"/"};
  CpuSet online_;
  std::unique_ptr<CciDriver> driver_;
  std::map<std::string, std::string> before_;
};

class QuietCpuTest : public KnobsTest {
 protected:
  void SetUp() override {
    KnobsTest::SetUp();
    if (!IsSkipped() && (Gateway() == 0 || online_.Count() < 2)) {
      GTEST_SKIP() << "it takes two CPUs and a gateway that answers";
    }
    if (!IsSkipped()) {
      work_ = std::make_unique<Work>(dir_ / "block");
      if (!work_->Go(10)) {
        GTEST_SKIP() << "the gateway answers no echo";
      }
    }
  }

  /// Interrupts that come while the disk and the network work, those of most first.
  std::vector<std::string> Busy() const {
    const Counts before = ReadCounts();
    EXPECT_TRUE(work_->Go(kTimes));
    const Counts after = ReadCounts();
    std::vector<std::pair<int64_t, std::string>> rises;
    for (const auto& [name, by_cpu] : before) {
      const int64_t rise = OfInterrupt(after, name) - OfInterrupt(before, name);
      if (rise >= kTimes / 2) {
        rises.emplace_back(-rise, name);
      }
    }
    std::sort(rises.begin(), rises.end());
    std::vector<std::string> names;
    names.reserve(rises.size());
    for (const auto& [rise, name] : rises) {
      names.push_back(name);
    }
    return names;
  }
  /// The number of interrupts of `cpu` while the disk and the network work.
  int64_t Rise(int cpu) const {
    const int64_t before = OnCpu(ReadCounts(), cpu);
    EXPECT_TRUE(work_->Go(kTimes));
    return OnCpu(ReadCounts(), cpu) - before;
  }

  static constexpr int64_t kTimes = 200;
  std::unique_ptr<Work> work_;
};

TEST_F(QuietCpuTest, ItsInterruptsStopWhileDiskAndNetworkWorkAndReturnAfterwards) {
  int quiet = -1;
  for (const int cpu : online_) {
    if (Run(cpu, "exclusive, no-irq").ok()) {
      quiet = cpu;
    }
    ASSERT_TRUE(IsOk(driver_->Remove(key_)));
  }
  ASSERT_GE(quiet, 0) << "the kernel manages interrupts of every CPU";
  const std::vector<std::string> busy = Busy();
  const auto moved = std::find_if(busy.begin(), busy.end(), [&](const std::string& interrupt) {
    return Set(FileOf(interrupt), std::to_string(quiet)).ok();
  });
  ASSERT_NE(moved, busy.end()) << "no interrupt comes that may be moved";
  ASSERT_TRUE(Await([&] { return Rise(quiet) >= kTimes / 2; }, kPatience));

  ASSERT_TRUE(IsOk(Run(quiet, "exclusive, no-irq")));
  // An interrupt that is being moved is still handled once on the former CPU, also an interrupt
  // that comes once a minute.
  EXPECT_TRUE(Await([&] { return Rise(quiet) == 0; }, kPatience));
  std::cout << "CPU " << quiet << ": none of " << kTimes << " writes and echoes disturbed it; "
            << "interrupt " << *moved << " is on CPUs " << Read(FileOf(*moved)) << "\n";

  ASSERT_TRUE(IsOk(driver_->Remove(key_)));
  EXPECT_EQ(Read(FileOf(*moved)), std::to_string(quiet));
  EXPECT_TRUE(Await([&] { return Rise(quiet) >= kTimes / 2; }, kPatience));
}

TEST_F(QuietCpuTest, AnInterruptThatTheKernelManagesIsReportedAndNotClaimed) {
  for (const std::string& interrupt : Busy()) {
    const std::string now = Read(FileOf(interrupt));
    if (files_.Write(FileOf(interrupt), now).ok()) {
      continue;  // it may be moved
    }
    const std::string handled = Read("proc/irq/" + interrupt + "/effective_affinity_list");
    const int cpu = ParseNumber<int>(handled).value_or(-1);
    const Status started = Run(cpu, "exclusive, no-irq");
    EXPECT_THAT(MessageOf(started), HasSubstr("no-irq is not possible: the "));
    EXPECT_THAT(MessageOf(started), HasSubstr(interrupt + " "));
    std::cout << MessageOf(started) << "\n";
    EXPECT_TRUE(IsOk(Run(cpu, "exclusive, no-irq?"))) << "as a wish, it is unmet";
    EXPECT_EQ(Read(FileOf(interrupt)), now);
    return;
  }
  GTEST_SKIP() << "this kernel manages no interrupt that comes";
}

TEST_F(KnobsTest, AnIdleLatencyIsSetAndRestored) {
  const int cpu = online_.Last();
  const std::string file =
      fmt::format("sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu);
  if (!files_.MayWrite(file)) {
    GTEST_SKIP() << "there is no /" << file;
  }
  const std::string before = Read(file);
  ASSERT_TRUE(IsOk(Run(cpu, "exclusive, no-idle")));
  EXPECT_EQ(Read(file), "n/a");
  ASSERT_TRUE(IsOk(driver_->Remove(key_)));
  EXPECT_EQ(Read(file), before);
}

/// A container's cgroup, two below the root of cgroup v2, with the last CPU.
class PartitionTest : public KnobsTest {
 protected:
  void SetUp() override {
    KnobsTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (!std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers")) {
      GTEST_SKIP() << "this machine has cgroup v1";
    }
    std::filesystem::create_directories("/" + File(""));
    for (const std::string above : {"", "/qrm-knobs", "/qrm-knobs/pod"}) {
      ASSERT_TRUE(
          IsOk(files_.Write("sys/fs/cgroup" + above + "/cgroup.subtree_control", "+cpuset")));
    }
    ASSERT_TRUE(IsOk(files_.Write(File("cpuset.cpus"), std::to_string(cpu()))));
  }
  void TearDown() override {
    KnobsTest::TearDown();
    for (const std::string cgroup : {"/qrm-knobs/pod/c1", "/qrm-knobs/pod", "/qrm-knobs"}) {
      ::rmdir(("/sys/fs/cgroup" + cgroup).c_str());
    }
  }

  int cpu() const { return online_.Last(); }
  static std::string File(const std::string& name) {
    return std::string("sys/fs/cgroup") + kCgroup + "/" + name;
  }
  static constexpr char kCgroup[] = "/qrm-knobs/pod/c1";
};

TEST_F(PartitionTest, AContainerThatIsNotBalancedIsIsolatedUntilItIsGone) {
  if (!files_.MayWrite(File("cpuset.cpus.exclusive"))) {
    EXPECT_THAT(MessageOf(Admit(cpu(), "no-balance")), HasSubstr("needs cgroup v2, Linux 6.7"));
    return;
  }
  ASSERT_TRUE(IsOk(Admit(cpu(), "no-balance")));
  ASSERT_TRUE(IsOk(Start(kCgroup)));
  EXPECT_EQ(Read(File("cpuset.cpus.partition")), "isolated");
  EXPECT_EQ(Read("sys/fs/cgroup/cpuset.cpus.isolated"), std::to_string(cpu()));
  ASSERT_TRUE(IsOk(driver_->Remove(key_)));
  EXPECT_EQ(Read(File("cpuset.cpus.partition")), "member");
  EXPECT_EQ(Read("sys/fs/cgroup/cpuset.cpus.isolated"), "");
  EXPECT_EQ(Read("sys/fs/cgroup/qrm-knobs/cpuset.cpus.exclusive"), "");
}

TEST_F(PartitionTest, APartitionThatTheKernelCallsInvalidIsDetectedAndUndone) {
  const auto knobs = kernel::KernelValues::Open(files_, dir_ / "other.json");
  ASSERT_TRUE(IsOk(knobs.status()));
  // CPUs that are not exclusive to the cgroup above.
  const kernel::Claim partition = PartitionClaims(kCgroup, {cpu()}).back();
  const auto held = (*knobs)->Hold("a", {partition});
  EXPECT_THAT(MessageOf(held.status()),
              HasSubstr("the kernel accepted it but shows isolated invalid ("));
  std::cout << MessageOf(held.status()) << "\n";
  EXPECT_EQ(Read(File("cpuset.cpus.partition")), "member");
}

}  // namespace
}  // namespace qrm::cci::knobs_test
