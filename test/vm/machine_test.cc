// Reads what the kernel shows of containers, and starts qrmd beside containerd.
#include "test/vm/machine_test.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "test/support/await.h"
#include "test/support/is_ok.h"

namespace qrm::test {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr int64_t kFillPages = (16 << 20) / 4096;

CpuSet ReadCpus(const std::string& file) {
  return CpuSet::Parse(ReadLine(file)).value_or(CpuSet());
}

}  // namespace

std::string ReadLine(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

CpuSet CpusOfNode(int node) {
  return ReadCpus("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
}

CpuSet ThreadsBeside(int cpu) {
  return ReadCpus("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                  "/topology/thread_siblings_list");
}

// 7f0000000000 default anon=4096 dirty=4096 N1=4096 kernelpagesize_kB=4
std::map<int, int64_t> AnonymousPages(uint32_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/numa_maps");
  std::map<int, int64_t> pages;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" anon=") == std::string::npos || line.find(" file=") != std::string::npos) {
      continue;
    }
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (const std::size_t equals = word.find('=');
          word.starts_with('N') && equals != std::string::npos) {
        pages[std::stoi(word.substr(1))] += std::stoll(word.substr(equals + 1));
      }
    }
  }
  return pages;
}

void MachineTest::SetUp() {
  if (FromEnvironment("QRM_VM").empty()) {
    GTEST_SKIP() << "this is not the machine of scripts/vm.sh; run scripts/check.sh vm";
  }
  ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
  bin_dir_ = std::filesystem::canonical("/proc/self/exe").parent_path();
}

void MachineTest::TearDown() {
  if (node_ == nullptr) {
    return;
  }
  EXPECT_TRUE(IsOk(kubelet_.RemoveAllPods()));
  EXPECT_TRUE(IsOk(node_->Stop()));
  if (HasFailure()) {
    std::ifstream log(node_dir_ + "/logs/qrmd.log");
    std::cout << log.rdbuf();
  }
  std::filesystem::remove_all(node_dir_);
}

void MachineTest::StartNode(const std::string& config, const std::string& plugins) {
  std::ofstream(work_dir_ + "/qrmd.yaml") << config;
  node_ = std::make_unique<Node>(Node::Options{.bin_dir = bin_dir_,
                                               .work_dir = node_dir_,
                                               .config = work_dir_ + "/qrmd.yaml",
                                               .nri_socket = FromEnvironment("QRM_NRI_SOCKET"),
                                               .cri_socket = FromEnvironment("QRM_CRI_SOCKET"),
                                               .builtin_plugins = plugins,
                                               .reconcile_period = "2s"});
  const auto count = static_cast<std::size_t>(std::count(plugins.begin(), plugins.end(), ','));
  ASSERT_TRUE(IsOk(node_->Start(plugins.empty() ? 0 : count + 1)));
}

PodSpec MachineTest::Guaranteed(const std::string& name, int cpus, int64_t mebibytes) {
  return {
      .name = name,
      .uid = "uid-" + name,
      .container = {
          .milli_cpus = int64_t{1000} * cpus, .memory_bytes = mebibytes << 20, .cpu_limit = true}};
}

uint32_t MachineTest::PidOf(const RunningPod& pod) {
  const auto info = kubelet_.Inspect(pod.container_id);
  return info.ok() ? info->value("pid", 0U) : 0;
}

manager::CgroupCpuset MachineTest::CpusetOf(const RunningPod& pod) {
  return reader_.ReadByPid(PidOf(pod)).value_or(manager::CgroupCpuset());
}

CpuSet MachineTest::EffectiveCpusOf(const RunningPod& pod) {
  return ReadCpus(CpusetOf(pod).path + "/cpuset.cpus.effective");
}

bool MachineTest::Fill(const RunningPod& pod) {
  const auto fills = [&] {
    const auto lines = kubelet_.ReadLog(pod).value_or(std::vector<std::string>());
    return std::count(lines.begin(), lines.end(), "filled");
  };
  const auto before = fills();
  return ::kill(static_cast<pid_t>(PidOf(pod)), SIGUSR1) == 0 &&
         Await([&] { return fills() > before; }, kPatience);
}

testing::AssertionResult MachineTest::LiesOn(const RunningPod& pod, const NumaMask& nodes) {
  int64_t here = 0;
  int64_t elsewhere = 0;
  std::string shown;
  for (const auto& [node, count] : AnonymousPages(PidOf(pod))) {
    shown += " N" + std::to_string(node) + "=" + std::to_string(count);
    (nodes.Has(node) ? here : elsewhere) += count;
  }
  if (elsewhere > 0 || here < kFillPages) {
    return testing::AssertionFailure() << pod.spec.name << " has its pages on" << shown
                                       << ", where they should be on " << ToString(nodes);
  }
  std::cout << pod.spec.name << ": its pages are on" << shown << "\n";
  return testing::AssertionSuccess();
}

}  // namespace qrm::test
