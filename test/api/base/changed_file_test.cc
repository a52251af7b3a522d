#include "api/base/changed_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::changed_file_test {
namespace {

class ChangedFileTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }

  test::TempDir dir_;
};

TEST_F(ChangedFileTest, ReportsOnceAnotherVersionThatIsNoLongerWritten) {
  Write("config.yaml", "a");
  ChangedFile file(dir_ / "config.yaml");
  EXPECT_FALSE(file.HasSettled());
  Write("config.yaml", "ab");
  EXPECT_FALSE(file.HasSettled());
  Write("config.yaml", "abc");
  EXPECT_FALSE(file.HasSettled());
  EXPECT_TRUE(file.HasSettled());
  EXPECT_FALSE(file.HasSettled());
}

TEST_F(ChangedFileTest, ReportsAnotherFileBehindALink) {
  Write("old", "a");
  Write("new", "a");
  std::filesystem::create_symlink("old", dir_ / "config.yaml");
  ChangedFile file(dir_ / "config.yaml");
  std::filesystem::create_symlink("new", dir_ / "next");
  std::filesystem::rename(dir_ / "next", dir_ / "config.yaml");
  EXPECT_FALSE(file.HasSettled());
  EXPECT_TRUE(file.HasSettled());
}

TEST_F(ChangedFileTest, WaitsForAFileThatIsGone) {
  Write("config.yaml", "a");
  ChangedFile file(dir_ / "config.yaml");
  std::filesystem::remove(dir_ / "config.yaml");
  EXPECT_FALSE(file.HasSettled());
  EXPECT_FALSE(file.HasSettled());
  Write("config.yaml", "ab");
  EXPECT_FALSE(file.HasSettled());
  EXPECT_TRUE(file.HasSettled());
}

TEST_F(ChangedFileTest, SaysNothingOfAVersionThatIsKnown) {
  Write("config.yaml", "a");
  ChangedFile file(dir_ / "config.yaml");
  Write("config.yaml", "ab");
  EXPECT_FALSE(file.HasSettled());
  file.Know();
  EXPECT_FALSE(file.HasSettled());
}

}  // namespace
}  // namespace qrm::changed_file_test
