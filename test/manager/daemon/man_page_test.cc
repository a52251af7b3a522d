#include "manager/daemon/man_page.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/daemon/config_table.h"

namespace qrm::manager::man_page_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ManPageTest, HasEveryFlagAndEveryKey) {
  const std::string page = ManPage("1.2.3");
  EXPECT_THAT(page, StartsWith(".TH QRMD 8 \"\" \"qrm 1.2.3\""));
  for (const ProgramFlag& flag : kProgramFlags) {
    EXPECT_THAT(page, HasSubstr("\n.B " + Roff(flag.flag) + "\n"));
  }
  Config defaults;
  for (const config::ConfigKey& key : ConfigKeys(defaults)) {
    EXPECT_THAT(page, HasSubstr("\n.B " + Roff("--" + key.name) + "=VALUE\n"));
  }
}

TEST(RoffTest, TakesNoTextForAnOrder) {
  EXPECT_EQ(Roff(".so /etc/passwd\n'x \\fB-"), "\\&.so /etc/passwd\n\\&'x \\efB\\-");
}

}  // namespace
}  // namespace qrm::manager::man_page_test
