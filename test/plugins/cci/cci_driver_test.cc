// The driver as qrmd asks it.
#include "plugins/cci/cci_driver.h"

#include <gmock/gmock.h>

#include "test/support/is_ok.h"
#include "topology/discovery.h"

namespace qrm::cci {
namespace {

using testing::HasSubstr;

class CciDriverTest : public testing::Test {
 protected:
  StatusOr<sdk::ComputeGrant> Admit(const std::string& spec, int64_t milli_cpus) {
    return driver_.Admit({.key = {"uid", "main"},
                          .spec = spec,
                          .available = CpuSet::Range(1, 15),
                          .milli_cpus = milli_cpus});
  }

  CciDriver driver_{*Discover(*MachineSource::Parse("synthetic:package:2 [numa] core:4 pu:2")), {}};
};

TEST_F(CciDriverTest, AProgramFindsItsPartsInTheEnvironment) {
  const auto grant = Admit(
      "{cores: ['*2', '9'], attributes: ['smt-sibling-required', 'exclusive, no-balance?']}", 3000);
  ASSERT_TRUE(test::IsOk(grant.status()));
  EXPECT_EQ(grant->envs, (StringMap{{"CCI_CPUS", "2-3,9"},
                                    {"CCI_PARTS", "2-3 smt-sibling-required; 9 exclusive"},
                                    {"CCI_UNMET", "no-balance?"}}));
}

TEST_F(CciDriverTest, NothingUnmetIsNotTold) {
  const auto grant = Admit("", 2000);
  ASSERT_TRUE(test::IsOk(grant.status()));
  EXPECT_EQ(grant->envs, (StringMap{{"CCI_CPUS", "2-3"}, {"CCI_PARTS", "2-3 exclusive"}}));
}

TEST_F(CciDriverTest, PartsOfCpusAreRefused) {
  for (const int64_t milli_cpus : {0, 500, 1500}) {
    EXPECT_THAT(MessageOf(Admit("", milli_cpus).status()), HasSubstr("it gives whole CPUs"));
  }
}

}  // namespace
}  // namespace qrm::cci
