// Discovery of odd machines and of bad input.
#include "topology/discovery.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/foreign_text.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"
#include "test/support/xml_machine.h"
#include "topology/cpu_layout.h"
#include "topology/machine_objects.h"

namespace qrm::discovery_test {
namespace {

using test::MachineFromXml;
using testing::Contains;
using testing::HasSubstr;

Machine Synthetic(const std::string& description) {
  StatusOr<Machine> machine =
      Discover({.kind = MachineSource::Kind::kSynthetic, .argument = description});
  EXPECT_TRUE(machine.ok()) << MessageOf(machine.status());
  return machine.ok() ? *machine : Machine();
}

/// Package with cores 0-1; whatever `inside` is goes beside them.
std::string SmallMachine(const std::string& version, const std::string& inside) {
  std::string xml = R"(<?xml version="1.0" encoding="UTF-8"?>
<topology version=")" +
                    version + R"(">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x7" allowed_cpuset="0x1" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x7" nodeset="0x3" complete_nodeset="0x3" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x7" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1073741824"><page_type size="4096" count="1"/><page_type size="2097152" count="7"/></object>
   <object type="NUMANode" os_index="1" cpuset="0x3" complete_cpuset="0x7" nodeset="0x2" complete_nodeset="0x2" gp_index="4" local_memory="4096"/>
   <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x3" complete_nodeset="0x3" gp_index="5"><object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x3" complete_nodeset="0x3" gp_index="6"/></object>
   <object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x3" complete_nodeset="0x3" gp_index="7"><object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x3" complete_nodeset="0x3" gp_index="8"/></object>
)";
  return xml + inside + "  </object>\n </object>\n</topology>\n";
}

TEST(DiscoveryTest, ReadsSyntheticMachines) {
  const Machine machine = Synthetic("package:2 [numa] l3:2 core:3 pu:2");
  EXPECT_EQ(machine.package_count(), 2);
  EXPECT_EQ(machine.nodes().size(), 2u);
  EXPECT_EQ(machine.l3_count(), 4);
  EXPECT_EQ(machine.core_count(), 12);
  EXPECT_EQ(ToString(machine.CpusOf({1})), "12-23");
  EXPECT_EQ(ToString(machine.CoresOf({3, 5})), "2-5");
}

TEST(DiscoveryTest, HidesCpusOutsideTheCpusetUnlessAskedToKeepThem) {
  const StatusOr<Machine> hidden = MachineFromXml(SmallMachine("2.0", ""));
  ASSERT_TRUE(hidden.ok()) << MessageOf(hidden.status());
  EXPECT_EQ(ToString(hidden->cpu_set()), "0");
  EXPECT_EQ(ToString(hidden->parts().disallowed), "1");
  EXPECT_EQ(ToString(hidden->parts().offline), "2");
  const StatusOr<Machine> kept =
      MachineFromXml(SmallMachine("2.0", ""), MachineSource::OutsideCpuset::kKeep);
  ASSERT_TRUE(kept.ok()) << MessageOf(kept.status());
  EXPECT_EQ(ToString(kept->cpu_set()), "0-1");
}

TEST(DiscoveryTest, GivesCpusToTheirFirstNodeAndKeepsCpuLessOnes) {
  const StatusOr<Machine> machine = MachineFromXml(SmallMachine("2.0", ""));
  ASSERT_TRUE(machine.ok()) << MessageOf(machine.status());
  ASSERT_EQ(machine->nodes().size(), 2u);
  EXPECT_EQ(machine->FindCpu(0)->node, 0);
  EXPECT_TRUE(machine->FindNode(1)->cpus.Empty());
  EXPECT_EQ(machine->FindNode(1)->memory_kind, MemoryKind::kCpuLess);
  EXPECT_EQ(machine->FindNode(0)->memory_kind, MemoryKind::kDram);
  EXPECT_EQ(machine->FindNode(0)->hugepages.at(2097152), 7u);
  EXPECT_THAT(machine->parts().warnings, Contains(HasSubstr("no L3 cache")));
}

struct KindCase {
  const char* subtype;
  bool is_dax;
  const char* dax_type;
  std::optional<MemoryKind> want;
};

TEST(DiscoveryTest, KnowsKindsOfMemoryByWhatHwlocCallsThem) {
  const KindCase cases[] = {
      {"", false, "", std::nullopt},
      {"DRAM", false, "", MemoryKind::kDram},
      {"HBM", false, "", MemoryKind::kHbm},
      {"MCDRAM", false, "", MemoryKind::kHbm},
      {"NVM", false, "", MemoryKind::kPmem},
      {"", true, "NVM", MemoryKind::kPmem},
      {"CXL-DRAM", false, "", MemoryKind::kCxl},
      {"CXL-NVM", true, "NVM", MemoryKind::kCxl},
      {"GPUMemory", false, "", MemoryKind::kGpu},
      {"SPM", true, "SPM", MemoryKind::kCpuLess},
      {"", true, "", MemoryKind::kCpuLess},
  };
  for (const KindCase& one : cases) {
    EXPECT_EQ(MemoryKindOf(one.subtype, one.is_dax, one.dax_type), one.want)
        << one.subtype << " " << one.dax_type;
  }
}

TEST(DiscoveryTest, HighBandwidthMemoryIsBesideItsCpus) {
  const StatusOr<Machine> machine = Discover(
      {.kind = MachineSource::Kind::kXml, .argument = QRM_MACHINES_DIR "/64intel64-heteromem.xml"});
  ASSERT_TRUE(machine.ok()) << machine.status();
  const std::map<int, int> homes = {{4, 1}, {5, 2}, {6, 3}, {7, 0}};
  for (const NumaNode& node : machine->nodes()) {
    const auto home = homes.find(node.id);
    EXPECT_EQ(node.memory_kind, home == homes.end() ? MemoryKind::kDram : MemoryKind::kHbm)
        << node.id;
    EXPECT_EQ(node.homes, (NumaMask{home == homes.end() ? node.id : home->second})) << node.id;
  }
}

TEST(DiscoveryTest, ReadsFormat3WithItsNics) {
  const std::string nic =
      R"(<object type="Bridge" gp_index="20" bridge_type="0-1" depth="0" bridge_pci="0000:[00-01]">
<object type="PCIDev" gp_index="21" pci_busid="0000:01:00.0" pci_type="0200 [8086:1521] [0000:0000] 01" pci_link_speed="0.0">
<object type="OSDev" gp_index="22" name="eth0" osdev_type="16"/></object></object>)";
  const StatusOr<Machine> machine = MachineFromXml(SmallMachine("3.0", nic));
  ASSERT_TRUE(machine.ok()) << MessageOf(machine.status());
  ASSERT_EQ(machine->parts().nics.size(), 1u);
  EXPECT_EQ(machine->parts().nics[0].name, "eth0");
  EXPECT_EQ(machine->parts().nics[0].pci_address, "0000:01:00.0");
  EXPECT_EQ(machine->parts().nics[0].node, 0);
}

TEST(DiscoveryTest, ReportsBadInputInASentence) {
  const test::TempDir directory;
  std::ofstream(directory / "bad.xml") << "<topology version=\"2.0\"><object type=\"Machine\"";
  const struct {
    std::string argument;
    MachineSource::Kind kind;
    StatusCode code;
  } cases[] = {
      {"core:many", MachineSource::Kind::kSynthetic, StatusCode::kInvalidArgument},
      {directory / "absent.xml", MachineSource::Kind::kXml, StatusCode::kNotFound},
      {directory.path(), MachineSource::Kind::kXml, StatusCode::kNotFound},
      {directory / "bad.xml", MachineSource::Kind::kXml, StatusCode::kInvalidArgument},
      {directory.path(), MachineSource::Kind::kFsRoot, StatusCode::kNotFound},
  };
  for (const auto& bad : cases) {
    const StatusOr<Machine> machine = Discover({.kind = bad.kind, .argument = bad.argument});
    EXPECT_EQ(machine.status().code(), bad.code) << bad.argument;
    EXPECT_THAT(MessageOf(machine.status()), HasSubstr("cannot read ")) << bad.argument;
  }
}

TEST(DiscoveryTest, NamesWhatIsWrongInAnXmlAndWhere) {
  const std::string object = R"(<object type="Machine" cpuset="0x1">)";
  const struct {
    std::string xml;
    const char* sentence;
  } cases[] = {
      {"", "the outermost tag is not topology at byte 0"},
      {"<machine/>", "the outermost tag is not topology at byte "},
      {"<topology/><topology/>", "the outermost tag is not topology at byte "},
      {"<topology", "a tag does not end at byte "},
      {"<topology>< /topology>", "a tag has no name at byte "},
      {"<topology version=2.0></topology>", "an attribute has no value in double quotes at byte "},
      {"<topology version=\"2.0", "a value does not end at byte "},
      {"<topology></object></topology>", "a tag is closed that is not open at byte "},
      {"<topology>" + object, "the machine does not end at byte "},
      {"<topology></topology>", "the machine does not end at byte "},
      {"<topology version=\"4.0\"/>", "the format is none of 1, 2 and 3 at byte "},
      {"<topology>" + object + "</object>" + object + "</object></topology>",
       "there are two machines at byte "},
  };
  for (const auto& bad : cases) {
    const StatusOr<Machine> machine = MachineFromXml(bad.xml);
    EXPECT_EQ(machine.status().code(), StatusCode::kInvalidArgument) << bad.xml;
    EXPECT_THAT(MessageOf(machine.status()), HasSubstr(bad.sentence)) << bad.xml;
  }
}

TEST(DiscoveryTest, RejectsXmlThatIsNestedTooDeep) {
  for (const std::size_t depth : {std::size_t{256}, std::size_t{1000000}}) {
    std::string xml = "<topology>";
    for (std::size_t i = 0; i < depth; ++i) {
      xml += "<a>";
    }
    for (std::size_t i = 0; i < depth; ++i) {
      xml += "</a>";
    }
    const StatusOr<Machine> machine = MachineFromXml(xml + "</topology>");
    EXPECT_THAT(MessageOf(machine.status()), HasSubstr("tags are nested too deep at byte "));
  }
}

TEST(DiscoveryTest, RejectsFilesThatAreTooLarge) {
  const test::TempDir directory;
  std::ofstream(directory / "huge.xml") << SmallMachine("2.0", "");
  std::filesystem::resize_file(directory / "huge.xml", (std::size_t{64} << 20U) + 1);
  const StatusOr<Machine> machine =
      Discover({.kind = MachineSource::Kind::kXml, .argument = directory / "huge.xml"});
  EXPECT_EQ(machine.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(machine.status()), HasSubstr("not a regular file of up to 67108864 bytes"));
}

TEST(DiscoveryTest, RejectsSyntheticMachinesThatAreTooLarge) {
  for (const char* description :
       {"package:100000 core:1 pu:1", "package:64 [numa(memory=1GiB)] l3:8 core:16 pu:2",
        "2 4096 2", "package:2 core:99999999999999999999 pu:1"}) {
    const Status status =
        Discover({.kind = MachineSource::Kind::kSynthetic, .argument = description}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << description;
    EXPECT_THAT(MessageOf(status), HasSubstr("it has more than 8192 CPUs")) << description;
  }
  EXPECT_EQ(Synthetic("package:2 [numa(memory=9000GiB)] l3:2 core:64 pu:2").cpus().size(), 512u);
}

TEST(DiscoveryTest, EscapesWhatItQuotes) {
  for (const Status& error :
       {Discover({.kind = MachineSource::Kind::kSynthetic, .argument = "\x01"}).status(),
        Discover({.kind = MachineSource::Kind::kSynthetic, .argument = "numa:70000\x01"}).status(),
        MachineSource::Parse("\x01").status()}) {
    EXPECT_THAT(MessageOf(error), HasSubstr("\\x01"));
    EXPECT_EQ(MessageOf(error), Escaped(MessageOf(error)));
  }
}

TEST(DiscoveryTest, ParsesSourcesByTheirPrefix) {
  EXPECT_EQ(MachineSource::Parse("live")->kind, MachineSource::Kind::kLive);
  EXPECT_EQ(MachineSource::Parse("fsroot:/a:b")->argument, "/a:b");
  EXPECT_EQ(MachineSource::Parse("synthetic:numa:2 pu:2")->argument, "numa:2 pu:2");
  for (const char* bad : {"", "xml:", "LIVE", "file:x"}) {
    EXPECT_EQ(MachineSource::Parse(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(DiscoveryTest, ReadsThisMachine) {
  const StatusOr<Machine> machine = Discover({});
  ASSERT_TRUE(machine.ok()) << MessageOf(machine.status());
  EXPECT_GT(machine->cpu_set().Count(), 0);
  EXPECT_GT(machine->nodes().size(), 0u);
}

TEST(DiscoveryTest, ReportsWhichCpusWentOfflineSinceTheMachineWasRead) {
  const test::TempDir dir;
  test::WriteSysfsMachine(dir.path(), {.cpus = 4});
  const auto machine =
      Discover({.kind = MachineSource::Kind::kFsRoot, .argument = std::string(dir.path())});
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->OfflineNow(), CpuSet());
  test::SetOnline(dir.path(), {0, 2});
  EXPECT_EQ(machine->OfflineNow(), (CpuSet{1, 3}));
  test::WriteSysfsFile(std::filesystem::path(dir.path()) / "sys/devices/system/cpu/online", "?");
  EXPECT_EQ(machine->OfflineNow(), CpuSet()) << "it is unknown";
}

TEST(DiscoveryTest, ReportsWhichCpusTheBootParameterIsolates) {
  const test::TempDir dir;
  const std::filesystem::path root(dir.path());
  test::WriteSysfsMachine(dir.path(), {.cpus = 4});
  const auto isolated = [&](const char* command_line) {
    test::WriteSysfsFile(root / "proc/cmdline", command_line);
    const auto machine =
        Discover({.kind = MachineSource::Kind::kFsRoot, .argument = std::string(dir.path())});
    return machine.ok() ? ToString(machine->parts().isolated) : MessageOf(machine.status());
  };
  test::WriteSysfsFile(root / "sys/devices/system/cpu/isolated", "2-3");
  EXPECT_EQ(isolated("root=/dev/vda isolcpus=managed_irq,2-3 quiet"), "2-3");
  EXPECT_EQ(isolated("root=/dev/vda quiet"), "") << "a cpuset isolates them";
  test::WriteSysfsFile(root / "sys/devices/system/cpu/isolated", "");
  EXPECT_EQ(isolated("isolcpus=9"), "");
}

TEST(DiscoveryTest, TakesTheKernelsTotalForTheMemoryOfThisMachine) {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  meminfo >> name >> kibibytes;
  EXPECT_EQ(Discover({})->memory_bytes(), kibibytes * 1024);
}

}  // namespace
}  // namespace qrm::discovery_test
