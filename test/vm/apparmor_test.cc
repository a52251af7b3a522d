// qrmd under the AppArmor profile of its chart: all that it does for containers, and groups of rdt,
// on a double of resctrl where the machine has none.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <sys/mount.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/simulated_runtime.h"
#include "test/support/is_ok.h"
#include "test/support/resctrl/resctrl_double.h"
#include "test/vm/machine_test.h"

namespace qrm::test::apparmor_test {
namespace {

using ::testing::HasSubstr;

// Where the image has it.
constexpr char kPrograms[] = "/usr/local/sbin/";
// Which the profile of the chart lets it write.
constexpr char kStateDir[] = "/var/lib/qrm/node";
// As the profiles that runtimes give to containers by default.
constexpr char kRuntimes[] = R"(
profile runtimes-default flags=(attach_disconnected,mediate_deleted) {
  network,
  capability,
  file,
  umount,
  signal,
  ptrace,
  deny mount,
  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
}
)";

/// What a command printed; a command that fails fails the test.
std::string OutputOf(const std::string& command) {
  // NOLINTNEXTLINE(bugprone-command-processor): what an administrator would type
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string text;
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return text;
  }
  for (char part[512]; std::fgets(part, sizeof(part), pipe) != nullptr;) {
    text += part;
  }
  EXPECT_EQ(::pclose(pipe), 0) << command << ": " << text;
  return text;
}

class AppArmorTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (!ReadLine("/sys/module/apparmor/parameters/enabled").starts_with('Y')) {
      GTEST_SKIP() << "the kernel has no AppArmor";
    }
    Load(QRM_SOURCE_DIR "/charts/qrm/files/qrm.apparmor");
    std::ofstream(work_dir_ + "/runtimes.apparmor") << kRuntimes;
    Load(work_dir_ + "/runtimes.apparmor");
    node_dir_ = kStateDir;
    OutputOf("dmesg --clear");
  }
  void TearDown() override {
    MachineTest::TearDown();
    for (const std::string& mounted : mounted_) {
      EXPECT_EQ(::umount2(mounted.c_str(), MNT_DETACH), 0) << mounted;
    }
  }

  static void Load(const std::string& file) {
    OutputOf("apparmor_parser --replace --skip-cache " + file);
  }
  /// Nodes run `programs` under the profile from now on.
  void Confine(const std::vector<std::string>& programs, const std::string& profile) {
    const std::string built = std::filesystem::canonical("/proc/self/exe").parent_path();
    bin_dir_ = work_dir_ + "/" + profile;
    std::filesystem::remove_all(bin_dir_);
    std::filesystem::create_directories(bin_dir_);
    std::filesystem::create_directories(kPrograms);
    for (const std::string& program : programs) {
      std::filesystem::copy_file(std::filesystem::path(built) / program, kPrograms + program,
                                 std::filesystem::copy_options::overwrite_existing);
      const std::string script = std::filesystem::path(bin_dir_) / program;
      std::ofstream(script) << "#!/bin/sh\nexec aa-exec -p " << profile << " -- " << kPrograms
                            << program << " \"$@\"\n";
      std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    }
    std::filesystem::create_symlink(built + "/qrmctl", bin_dir_ + "/qrmctl");
  }
  /// The kernel's lines about what it kept `profile` from.
  static std::string DeniedTo(const std::string& profile) {
    std::istringstream log(OutputOf("dmesg"));
    std::string denied;
    for (std::string line; std::getline(log, line);) {
      if (line.find("apparmor=\"DENIED\"") != std::string::npos &&
          line.find("profile=\"" + profile + "\"") != std::string::npos) {
        denied += line + "\n";
      }
    }
    return denied;
  }
  std::string ProfileOfDaemon() const {
    return ReadLine(fmt::format("/proc/{}/attr/current", node_->daemon_pid()));
  }

  /// /sys/fs of this mount namespace has the double of resctrl beside its cgroups.
  void MountResctrl() {
    OutputOf("modprobe fuse");
    auto made = ResctrlDouble::Create();
    ASSERT_TRUE(IsOk(made.status()));
    resctrl_ = *std::move(made);
    const std::string all = work_dir_ + "/fs";
    Bind("/sys/fs/cgroup", all + "/cgroup");
    Bind(resctrl_->directory() + "/resctrl", all + "/resctrl");
    Bind(resctrl_->directory() + "/proc", all + "/proc");
    Bind(all, "/sys/fs");
    ::setenv("QRM_RESCTRL_DOUBLE", "/sys/fs", 1);
  }
  void Bind(const std::string& from, const std::string& to) {
    std::filesystem::create_directories(to);
    ASSERT_EQ(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr), 0) << to;
    mounted_.push_back(to);
  }
  /// What `qrmctl classes` of a qrmd under the profile prints, which has the type rdt.
  std::string ClassesOfRdt(const std::string& profile) {
    Confine({"qrmd-on-resctrl-double"}, profile);
    std::ofstream(work_dir_ + "/rdt.yaml")
        << "partitions: {all: {l3Allocation: 100%, classes: {gold: {}}}}\n";
    std::ofstream(work_dir_ + "/qrmd.yaml")
        << "qos-classes: true\nclass-types: {rdt: {config-file: " << work_dir_ << "/rdt.yaml}}\n";
    std::filesystem::create_directories(work_dir_ + "/simulated");
    SimulatedRuntime runtime(work_dir_ + "/simulated");
    node_ = std::make_unique<Node>(Node::Options{.bin_dir = bin_dir_,
                                                 .daemon = "qrmd-on-resctrl-double",
                                                 .work_dir = node_dir_,
                                                 .config = work_dir_ + "/qrmd.yaml",
                                                 .nri_socket = runtime.nri_socket(),
                                                 .cri_socket = runtime.cri_socket()});
    EXPECT_TRUE(IsOk(node_->Start(0)));
    EXPECT_EQ(ProfileOfDaemon(), profile + " (enforce)");
    const std::string classes = node_->Qrmctl({"classes", "-o", "json"}).value_or("");
    EXPECT_TRUE(IsOk(node_->Stop()));
    node_.reset();
    return classes;
  }

  std::unique_ptr<ResctrlDouble> resctrl_;
  std::vector<std::string> mounted_;
};

TEST_F(AppArmorTest, QrmdPinsAndLimitsContainersUnderTheProfileOfItsChart) {
  Confine({"qrmd"}, "qrm");
  std::istringstream disks(FromEnvironment("QRM_VM_DISKS"));
  std::string disk;
  disks >> disk;
  std::ofstream(work_dir_ + "/blockio.yaml")
      << "Classes: {slow: [{Devices: [" << disk << "], ThrottleWriteBps: 4Mi}]}\n";
  std::ofstream(work_dir_ + "/oom.yaml") << "classes: {first: {oom_score_adj: 900}}\n";
  StartNode(
      fmt::format("plugins: {{cpu: {{static: true, reserved-cpus: \"0\"}}}}\n"
                  "qos-classes: true\nclass-types:\n"
                  "  blockio: {{config-file: {0}/blockio.yaml, default: slow}}\n"
                  "  oom: {{config-file: {0}/oom.yaml, default: first}}\n",
                  work_dir_));
  ASSERT_EQ(ProfileOfDaemon(), "qrm (enforce)");

  const auto pod = RunGuaranteed("web", 2);
  ASSERT_TRUE(IsOk(pod.status()));

  EXPECT_EQ(CpusetOf(*pod).cpus.Count(), 2);
  EXPECT_THAT(ReadLine(CpusetOf(*pod).path + "/io.max"), HasSubstr("wbps=4194304"));
  EXPECT_EQ(ReadLine(fmt::format("/proc/{}/oom_score_adj", PidOf(*pod))), "900");
  ASSERT_TRUE(IsOk(node_->Reconcile()));
  EXPECT_EQ(DeniedTo("qrm"), "");
}

TEST_F(AppArmorTest, GroupsOfRdtAreMadeUnderTheProfileOfItsChartAndNotUnderThatOfRuntimes) {
  ASSERT_NO_FATAL_FAILURE(MountResctrl());

  EXPECT_THAT(ClassesOfRdt("runtimes-default"), HasSubstr("Permission denied"));
  EXPECT_FALSE(std::filesystem::exists("/sys/fs/resctrl/qrm-gold"));

  EXPECT_THAT(ClassesOfRdt("qrm"), HasSubstr("L3:0="));
  EXPECT_TRUE(std::filesystem::exists("/sys/fs/resctrl/qrm-gold/schemata"));
  EXPECT_EQ(DeniedTo("qrm"), "");
}

}  // namespace
}  // namespace qrm::test::apparmor_test
