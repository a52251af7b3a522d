// The sample configurations reproduce the proposal's examples.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/config/machine_config.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/nic/nic_plugin.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::samples_test {
namespace {

using test::Drive;
using test::Request;

constexpr double kGB = 1e9;

/// The three plugins of docs/samples/exampleN.
struct Sample {
  explicit Sample(int example)
      : folder("docs/samples/example" + std::to_string(example) + "/"),
        cpu(*cpu::MakeCpuPlugin(*cpu::ParseCpuConfig(File("cpu.yaml")), MachineOf("cpu.yaml"))),
        memory(*memory::MakeMemoryPlugin(*memory::ParseMemoryConfig(File("memory.yaml")),
                                         MachineOf("memory.yaml"))),
        nic(*nic::MakeNicPlugin(*nic::ParseNicConfig(File("nic.yaml")), MachineOf("nic.yaml"),
                                {})) {}

  config::Section File(const std::string& name) const {
    const StatusOr<config::Section> section = config::Section::Load(folder + name);
    EXPECT_TRUE(section.ok()) << section.status();
    return config::WithoutMachineKeys(*section);
  }

  Machine MachineOf(const std::string& name) const {
    const StatusOr<config::MachineConfig> config = config::ParseMachineConfig(File(name));
    EXPECT_TRUE(config.ok()) << config.status();
    const StatusOr<Machine> machine = config::LoadMachine(*config);
    EXPECT_TRUE(machine.ok()) << machine.status();
    return *machine;
  }

  std::string folder;
  Drive cpu;
  Drive memory;
  Drive nic;
};

TEST(SamplesTest, FirstExampleUsesTwoPools) {
  Sample sample(1);
  EXPECT_EQ(sample.cpu.Admit(Request("pod1", "online-micro_service", "cpu", 4))->value,
            "0-37,40-77");
  EXPECT_EQ(sample.cpu.Admit(Request("pod2", "ETL", "cpu", 2))->value, "38-39,78-79");
  EXPECT_EQ(sample.cpu.Admit(Request("pod3", "online-micro_service", "cpu", 4))->value,
            "0-37,40-77");
  ASSERT_TRUE(sample.cpu.plugin()
                  .SetPools({{"online", *CpuSet::Parse("0-13,40-53")},
                             {"offline", *CpuSet::Parse("14-39,54-79")}})
                  .ok());
  sample.cpu.Reconcile();
  EXPECT_EQ(sample.cpu.Value("pod1"), "0-13,40-53");
  EXPECT_EQ(sample.cpu.Value("pod2"), "14-39,54-79");
  EXPECT_EQ(sample.cpu.Value("pod3"), "0-13,40-53");
}

TEST(SamplesTest, SecondExampleKeepsServicesApart) {
  Sample sample(2);
  EXPECT_EQ(sample.cpu.Admit(Request("pod1", "storage-service", "cpu", 20))->value, "2-21");
  EXPECT_EQ(sample.memory.Admit(Request("pod1", "storage-service", "memory", 40 * kGB))->value,
            "0");
  EXPECT_EQ(sample.cpu.Admit(Request("pod2", "reranker", "cpu", 10))->value, "42-51");
  EXPECT_EQ(sample.memory.Admit(Request("pod2", "reranker", "memory", 20 * kGB))->value, "1");
}

TEST(SamplesTest, ThirdExampleSharesNodeAndNic) {
  Sample sample(3);
  EXPECT_EQ(sample.cpu.Admit(Request("filler", "storage-service", "cpu", 38))->value, "2-39");
  EXPECT_EQ(sample.memory.Admit(Request("filler", "storage-service", "memory", 40 * kGB))->value,
            "0");
  const char* const want_cpus[] = {"42-51", "52-61"};
  for (int pod = 0; pod < 2; ++pod) {
    const std::string name = "pod" + std::to_string(pod + 1);
    EXPECT_EQ(sample.cpu.Admit(Request(name, "numa-enhancement", "cpu", 10))->value,
              want_cpus[pod]);
    EXPECT_EQ(sample.memory.Admit(Request(name, "numa-enhancement", "memory", 20 * kGB))->value,
              "1");
    const auto nic = sample.nic.plugin().Allocate(Request(name, "numa-enhancement", "NIC", 1),
                                                  {.nodes = {1}, .preferred = true});
    ASSERT_TRUE(nic.ok()) << nic.status();
    EXPECT_EQ(nic->envs, (StringMap{{"AFFINITY_NIC_ADDR_IPV6", "fdbd:dc05:3:155::20"}}));
    EXPECT_EQ(nic->annotations,
              (StringMap{{"kubernetes.io/host-netns-path", "/var/run/netns/ns1"}}));
  }
}

TEST(SamplesTest, LiveFileFitsMachineOfSixteenCpus) {
  const StatusOr<config::Section> file = config::Section::Load("docs/samples/live.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  const config::Section plugins = *file->Child("plugins");
  const Machine machine =
      *config::LoadMachine({.source = "synthetic:package:2 [numa] core:4 pu:2"});
  const auto cpu = cpu::ParseCpuConfig(*plugins.Child("cpu"));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_TRUE(cpu::MakeCpuPlugin(*cpu, machine).ok());
  const auto memory = memory::ParseMemoryConfig(*plugins.Child("memory"));
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(memory::MakeMemoryPlugin(*memory, machine).ok());
  const auto nic = nic::ParseNicConfig(*plugins.Child("nic"));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_TRUE(nic::MakeNicPlugin(*nic, machine, {}).ok());
}

}  // namespace
}  // namespace qrm::samples_test
