// The executor on this machine's files, if they exist and it may write them; at the end all of them
// have their former bytes.
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "plugins/kernel/kernel_values.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::real_files_test {
namespace {

using test::IsOk;

TEST(RealFilesTest, AnIdleLatencyIsSetAndComesBack) {
  SystemFiles files("/");
  const std::string path = "sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us";
  const auto before = files.Read(path);
  if (!before.ok() || ::access(("/" + path).c_str(), W_OK) != 0) {
    GTEST_SKIP() << "no /" << path << " to write";
  }
  const test::TempDir dir;
  const auto knobs = KernelValues::Open(files, dir / "knobs.json");
  ASSERT_TRUE(IsOk(knobs.status()));
  const auto held = (*knobs)->Hold("a", {{path, ClaimForm::kLatency, "20"}});
  if (!held.ok()) {
    GTEST_SKIP() << MessageOf(held.status());
  }
  EXPECT_EQ(files.Read(path).value_or(""), "20");
  const auto other = KernelValues::Open(files, dir / "knobs.json");  // as after kill -9
  ASSERT_TRUE(IsOk(other.status()));
  ASSERT_TRUE(IsOk((*other)->KeepOnly({})));
  EXPECT_EQ(files.Read(path).value_or(""), *before);
}

TEST(RealFilesTest, InterruptsThatMayMoveAreMovedAndComeBack) {
  SystemFiles files("/");
  std::vector<Claim> claims;
  std::vector<std::string> before;
  for (const std::string& irq : files.List("proc/irq")) {
    const std::string path = fmt::format("proc/irq/{}/smp_affinity_list", irq);
    if (const auto value = files.Read(path); value.ok()) {
      claims.push_back({path, ClaimForm::kCpuList, "1", true});
      before.push_back(*value);
    }
  }
  if (claims.empty() || ::access("/proc/irq/default_smp_affinity", W_OK) != 0 ||
      files.Read("sys/devices/system/cpu/online").value_or("0") == "0") {
    GTEST_SKIP() << "no interrupts to move";
  }
  const test::TempDir dir;
  const auto knobs = KernelValues::Open(files, dir / "knobs.json");
  ASSERT_TRUE(IsOk(knobs.status()));
  const auto refusals = (*knobs)->Hold("a", claims);
  ASSERT_TRUE(IsOk(refusals.status()));
  for (const JournalRecord& record : (*knobs)->records()) {
    EXPECT_TRUE(test::Await([&] {  // while it is being moved, it shows the former CPU
      const auto now = CpuSet::Parse(files.Read(record.path).value_or(""));
      return now.ok() && !now->Has(1);
    })) << record.path;
  }
  ASSERT_TRUE(IsOk((*knobs)->Release("a")));
  for (std::size_t i = 0; i < claims.size(); ++i) {
    EXPECT_TRUE(test::Await([&] { return files.Read(claims[i].path).value_or("") == before[i]; }))
        << claims[i].path;
  }
}

}  // namespace
}  // namespace qrm::kernel::real_files_test
